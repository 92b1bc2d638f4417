#include <doctest/doctest.h>

#include "tests/storage/ingest/sounds.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// A folder of sound, taken with more options.
struct SoundPlace {
  TemporaryFolder folder;

  Finished ingest(std::vector<std::string> more) const {
    std::vector<std::string> words = {program("batchwright"), "ingest", "audio",
                                      folder / "in",          "--into", folder / "out"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
};

}  // namespace

TEST_CASE("command: ingest tells of samples that were clipped and channels that cancel out") {
  const SoundPlace place;
  std::vector<std::int16_t> opposite;
  for (const std::int16_t sample : tone(4000)) {
    opposite.push_back(sample);
    opposite.push_back(static_cast<std::int16_t>(-sample));
  }
  write_file(place.folder / "in" / "a.wav", wav(opposite, {8000, 2}));
  const auto finished = place.ingest({"--store", "pcm", "--channel", "mix"});
  CHECK(finished.code == 0);
  CHECK(contains(finished.out, "1 files have channels of opposite phase"));
}

TEST_CASE("command: ingest takes each channel, and not of files as they came") {
  const SoundPlace place;
  write_file(place.folder / "in" / "a.wav", wav({100, 300, -200, 0}, {8000, 2}));
  const auto refused = place.ingest({"--store", "encoded", "--channel", "each"});
  CHECK(refused.code == 2);
  CHECK(contains(refused.err, "--channel each: goes with --store features or pcm only"));
  CHECK(place.ingest({"--store", "pcm", "--channel", "each"}).code == 0);
  const auto again = place.ingest({"--store", "pcm", "--channel", "each"});
  CHECK(contains(again.err, "key \"a#1\" is already in dataset"));
  const auto other = place.ingest({"--store", "pcm", "--channel", "mix", "--resume"});
  CHECK(contains(other.err, "was made with channel = each, this ingest has mix"));
}

TEST_CASE("command: ingest bounds the length of stored sound, and says where else it may not") {
  const SoundPlace place;
  write_file(place.folder / "in" / "a.wav", wav(tone(8000)));  // a second
  const auto bounded = place.ingest({"--store", "pcm", "--max-seconds", "0.5"});
  CHECK(bounded.code != 0);
  CHECK(contains(bounded.err, "longer than the 0.5 s that are taken (--max-seconds)"));
  const auto features = place.ingest({"--max-seconds", "5"});
  CHECK(contains(features.err, "goes with --store pcm or encoded only"));
}
