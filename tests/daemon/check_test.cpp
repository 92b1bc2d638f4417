#include "daemon/check.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace batchwright;

namespace {

/// What is found in a live feed with these lines in [feed.live].
std::vector<Finding> found_with(const std::string& lines) {
  const std::string text =
      "[daemon]\nendpoints = [\"ipc:///tmp/a\"]\nstats = \"\"\n"
      "[[feed]]\nname = \"rollouts\"\npool = \"3MiB\"\n[feed.fields]\n"
      "z = { dtype = \"int32\" }\na = { dtype = \"float32\", kind = \"scalar\" }\n[feed.live]\n" +
      lines;
  const auto config = parse_config(text, "x.toml");
  REQUIRE_MESSAGE(config, (config ? "" : config.error().message));
  return examine(*config);
}

}  // namespace

TEST_CASE("daemon: a check says what a live feed is, and looks for no dataset") {
  const auto found = found_with("max_length = 50\npool_sequences = 99\n[feed.plan]\nworld = 2\n");
  REQUIRE(found.size() == 1);
  CHECK(found[0].grade == Finding::Grade::note);
  CHECK(
      found[0].text ==
      "feed rollouts: a live feed of z, a, up to 50 frames a sequence; steps of 16 sequences in 2 "
      "batches; its pool holds up to 99 sequences and 3 MiB");
  CHECK(exit_code(found) == 0);
}

TEST_CASE("daemon: a check names the unit of a live feed's steps") {
  const auto groups = found_with("max_length = 50\ngroups = \"step\"\nstep = { groups = 3 }\n");
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].text.find("; steps of 3 groups in 1 batch;") != std::string::npos);
  // Where nothing else is said the longest sequence fills a batch.
  const auto frames = found_with("step = { frames = 400 }\n");
  REQUIRE(frames.size() == 1);
  CHECK(frames[0].text.find("up to 400 frames a sequence; steps of 400 frames in 1 batch;") !=
        std::string::npos);
  const auto lanes = found_with("step = { lanes = 4, unroll = 20 }\n");
  REQUIRE(lanes.size() == 1);
  CHECK(lanes[0].text.find("any number of frames a sequence; steps of 4 lanes in 1 batch;") !=
        std::string::npos);
}
