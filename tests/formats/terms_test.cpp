#include <doctest/doctest.h>

#include "formats/formats.h"

using namespace batchwright;

namespace {

const Fingerprint kBefore{1, 2, 3};

std::string change(std::string_view before, std::string_view now, const Fingerprint& has) {
  return describe_change({kBefore, before}, {has, now});
}

}  // namespace

TEST_CASE("formats: a change of terms is told setting by setting, with both values") {
  CHECK(change("size = 16\nseed = 3\n", "size = 24\nseed = 4\n", {1, 5, 4}) ==
        "size: 16 before, 24 now; seed: 3 before, 4 now");
  CHECK(change("size = 16\n", "size = 16\nchunk = 40\n", {1, 5, 3}) ==
        "chunk: not set before, 40 now");
  CHECK(change("size = 16\nchunk = 40", "size = 16", {1, 5, 3}) == "chunk: 40 before, not set now");
  CHECK(change("size = 16\n", "size = 24\n", {7, 5, 3}) == "data changed; size: 16 before, 24 now");
}

TEST_CASE("formats: terms without a version of the draws are told what continues them") {
  const std::string line = "draws = 1 under [feed.features] continues this run";
  const std::string told = change("size = 16\n", "size = 16\nfeatures.draws = 2\n", {1, 5, 3});
  CHECK(told == "features.draws: not set before, 2 now (" + line + ")");
  CHECK(
      change("server 0 size = 16\n", "server 0 size = 16\nserver 0 features.draws = 2\n", {1, 5, 3})
          .find(line) != std::string::npos);
  // The other way round there is nothing to be continued by it.
  CHECK(change("features.draws = 2\n", "size = 16\n", {1, 5, 3}).find(line) == std::string::npos);
}

TEST_CASE("formats: where the texts do not tell what changed, the parts are named") {
  CHECK(change("", "size = 16\n", {1, 5, 3}) == "settings (or planner) changed");
  CHECK(change("size = 16\n", "", {7, 2, 4}) == "data and seed changed");
  CHECK(change("size = 16\n", "size = 16\n", {7, 2, 3}) == "data changed");
  CHECK(change("size = 16\n", "size = 24\n", kBefore).empty());
}

TEST_CASE(
    "formats: a fingerprint of the plan alone is no change where plan, data and seed are equal") {
  // 0xCBF29CE484222325, FNV-1a's basis, then the lines "planner=1" and "size=16".
  const Fingerprint had{1, 0x879275dc00528a12, 3};
  const std::string_view now = "planner = 1\nsize = 16\nseed = 3\nlayout = batch-major\n";
  CHECK(is_older_form(had, {{1, 9, 3}, now}));
  CHECK(describe_change({had, ""}, {{1, 9, 3}, now}).empty());
  CHECK(!is_older_form(had, {{2, 9, 3}, now}));
  CHECK(!is_older_form(had, {{1, 9, 4}, now}));
  CHECK(!is_older_form(had, {{1, 9, 3}, ""}));
  CHECK(!is_older_form(had, {{1, 9, 3}, "planner = 1\nsize = 17\nlayout = batch-major\n"}));
  // A recipe was in no such fingerprint.
  CHECK(!is_older_form(had,
                       {{1, 9, 3}, "planner = 1\nsize = 16\nfeatures.like = kaldi\nlayout = a\n"}));
}

TEST_CASE("formats: a change of terms that is no text of ours is told in bounds") {
  std::string many;
  for (int i = 0; i < 100; ++i)
    many += "key" + std::to_string(i) + " = " + std::string(500, 'x') + "\n";
  const std::string told = change(many, "\n\n = \nno value\n", {1, 5, 3});
  CHECK(told.find("key15: ") != std::string::npos);
  CHECK(told.find("key16: ") == std::string::npos);
  CHECK(told.ends_with("; and 86 more"));
  CHECK(told.size() < 16 * 140);
}
