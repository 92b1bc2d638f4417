#include <doctest/doctest.h>

#include "daemon/planning/planning.h"
#include "tests/planning/tables.h"

using namespace batchwright;

namespace {

std::string refusal(std::string_view name, std::string_view value) {
  PlanSettings settings;
  const auto set = set_setting(settings, name, value);
  return set ? "" : set.error().message;
}

}  // namespace

TEST_CASE("planning: every setting's text reads back as the same setting") {
  const auto some = testing::settings(
      {"select=cosine", "usage=0.55", "flat_after=7", "floor=0.2", "epochs=16", "order=semi-sorted",
       "randomization=0.25", "bucket_boundaries=100,200,300", "mix_weights=0.5,2",
       "mix_exhausted=end", "seed=18446744073709551615", "remainder=spread", "world=8"});
  PlanSettings again;
  for (const SettingRow& row : setting_rows()) {
    const std::string value = get_setting(some, row.name);
    if (!value.empty()) REQUIRE(set_setting(again, row.name, value));
  }
  for (const SettingRow& row : setting_rows()) {
    CHECK(get_setting(some, row.name) == get_setting(again, row.name));
  }
  CHECK(settings_hash(some) == settings_hash(again));
}

TEST_CASE("planning: a value out of range is refused with what is allowed") {
  CHECK(refusal("world", "0") == "world: found \"0\", allowed: 1 to 65536");
  CHECK(refusal("order", "longest") ==
        "order: found \"longest\", allowed: random sorted bucket bucket-span bucket-optimal "
        "alternated semi-sorted file");
  for (const char* value : {"nan", "inf", "-0.1", "1000001", "", "0.1x", "0,1"}) {
    CHECK(refusal("randomization", value) ==
          "randomization: found \"" + std::string(value) + "\", allowed: 0 to 1000000");
  }
  CHECK(refusal("usage", "0") == "usage: found \"0\", allowed: above 0, up to 1");
  CHECK_FALSE(refusal("bucket_boundaries", "100,100").empty());
  CHECK_FALSE(refusal("mix_weights", "1,0").empty());
}

TEST_CASE("planning: an unknown setting is refused with the nearest one") {
  CHECK(refusal("bucketsize", "8") ==
        "unknown setting \"bucketsize\"; did you mean \"bucket_size\"?");
}

TEST_CASE("planning: the hash of settings leaves out the seed and nothing else") {
  const std::uint64_t plain = settings_hash(PlanSettings{});
  CHECK(settings_hash(testing::settings({"seed=7"})) == plain);
  CHECK(settings_hash(testing::settings({"size=17"})) != plain);
  CHECK(settings_hash(testing::settings({"remainder=wrap"})) != plain);
}

TEST_CASE("planning: a path or a field's name is text of one line") {
  PlanSettings settings;
  CHECK_FALSE(set_setting(settings, "order_file", ""));
  CHECK_FALSE(set_setting(settings, "order_file", "a\nb"));
  CHECK_FALSE(set_setting(settings, "order_file", std::string(4096, 'a')));
  CHECK(set_setting(settings, "order_file", "/a b"));
  CHECK(get_setting(settings, "order_file") == "/a b");
  CHECK(setting_type("order_file") == SettingType::text);
}
