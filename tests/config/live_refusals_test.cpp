// What a feed with a table [feed.live] cannot have, and where that is told.

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "tests/config/texts.h"

using namespace batchwright;
using namespace batchwright::test;

TEST_CASE("config: a key that concerns stored data is refused in a live feed with both places") {
  const std::map<std::string, std::string> values{
      {"dataset", "\"/d\""},       {"lock", "true"},    {"verify", "\"once\""},
      {"row_cache", "\"1MiB\""},   {"follow", "false"}, {"on_corrupt", "\"stop\""},
      {"max_corrupt_share", "0.1"}};
  std::size_t stored = 0;
  for (const auto& key : feed_keys()) {
    const std::string name(key.row.name);
    CAPTURE(name);
    if (key.row.of != OfFeeds::stored) {
      CHECK_FALSE(values.contains(name));
      continue;
    }
    ++stored;
    const std::string found = values.at(name);
    // Texts are shown as they are written.
    CHECK(fault_of(with_feed_line(name + " = " + found)) ==
          "x.toml:4:1: feed." + name + ": found " + found +
              " beside feed.live at x.toml:5:1; allowed: one of the two, as a live feed has no "
              "stored data");
  }
  CHECK(stored == values.size());
  CHECK(fault_of(kLive + "[feed.features]\n") ==
        "x.toml:6:1: feed.features: found a table beside feed.live at x.toml:4:1; allowed: one of "
        "the two, as a live feed has no stored data");
  CHECK(
      fault_of(kLive + "[[feed.style]]\n").find("feed.style: found a list of 1 beside feed.live") !=
      std::string::npos);
}

TEST_CASE("config: a key of a live feed is refused in one with a dataset") {
  const std::string tail =
      " without [feed.live]; allowed: in a live feed, which has a table [feed.live]";
  CHECK(feed_fault("pool = \"1GiB\"") == "x.toml:4:1: feed.pool: found \"1GiB\"" + tail);
  CHECK(feed_fault("allow_nan = false") == "x.toml:4:1: feed.allow_nan: found false" + tail);
  CHECK(feed_fault("[feed.fields]") == "x.toml:4:1: feed.fields: found a table" + tail);
  CHECK(fault_of("[[feed]]\nname = \"a\"\npool = 5\n") ==
        "x.toml:1:1: feed.dataset: found nothing; allowed: path of a dataset, or a list of paths "
        "of its shards\nx.toml:3:1: feed.pool: found 5" +
            tail);
}

TEST_CASE("config: what a live feed needs is told when it is not there") {
  CHECK(fault_of("[[feed]]\n[feed.live]\nmax_length = 5\n") ==
        "x.toml:1:1: feed.name: found nothing; allowed: 1 to 64 of A-Z a-z 0-9 _ . -\n"
        "x.toml:1:1: feed.fields: found nothing; allowed: " +
            std::string(fields_row().allowed));
  std::string text = kLive;
  text.erase(text.find("max_length"));
  CHECK(fault_of(text) ==
        "x.toml:4:1: feed.live.max_length: found nothing; allowed: 1 to 2147483647, as step is not "
        "of frames");
  CHECK(live_of(text + "step = { frames = 400 }\n[feed.plan]\nworld = 2\n").pool.max_length == 200);
  for (const std::string value : {"true", "false", "3"}) {
    CHECK(fault_of("[[feed]]\nname = \"a\"\nfields.t.dtype = \"int32\"\nlive = " + value + "\n") ==
          "x.toml:4:1: feed.live: found " + value +
              "; allowed: a table [feed.live], which makes the feed a live one");
  }
  // TOML has no key twice: the table alone makes a feed live.
  CHECK(fault_of(with_feed_line("live = true")).starts_with("x.toml:5:1: "));
  CHECK(fault_of(with_live_line("windw = 3"))
            .find("feed.live.windw: unknown key, did you mean window?") != std::string::npos);
}

TEST_CASE("config: a live feed takes four settings of the plan") {
  for (const SettingRow& row : setting_rows()) {
    const std::string name(row.name);
    const std::string text = get_setting(PlanSettings{}, name);
    if (name == "world" || name == "seed" || name == "cut" || text.empty()) continue;
    const bool word = setting_type(name) == SettingType::word;
    const bool list = text.find(',') != text.npos;
    if (list) continue;
    CHECK(fault_of(with_plan_line(name + " = " + (word ? '"' + text + '"' : text)))
              .find("feed.plan." + name + ": found ") != std::string::npos);
  }
  CHECK(fault_of(with_plan_line("order = \"random\"")) ==
        "x.toml:7:1: feed.plan.order: found \"random\" in a live feed; allowed: world seed cut "
        "quadratic_scale there");
  CHECK(fault_of(with_plan_line("oder = \"random\"")).find('\n') == std::string::npos);
  CHECK(fault_of(with_plan_line("cut = \"frames\"")) ==
        "x.toml:7:1: feed.plan.cut: found \"frames\" in a live feed; allowed: fixed dynamic "
        "quadratic there");
  CHECK(
      fault_of(with_plan_line("cut = \"real-frames\"")).starts_with("x.toml:7:1: feed.plan.cut: "));
  CHECK(fault_of(with_plan_line("cut = \"dynamic\"")) == "");
  CHECK(
      fault_of(with_plan_line("quadratic_scale = 5")) ==
      "x.toml:7:1: feed.plan.quadratic_scale: found 5 without cut = \"quadratic\"; allowed: both, "
      "or neither");
  CHECK(fault_of(kLive + "plan = 3\n").find("feed.live.plan: unknown key") != std::string::npos);
}

TEST_CASE("config: what the pool refuses is told at the key") {
  const auto live = [](const std::string& line) { return fault_of(with_live_line(line)); };
  CHECK(fault_of(with_plan_line("cut = \"quadratic\"")) ==
        "x.toml:6:1: feed.plan.quadratic_scale: found 0; allowed: 1 and up with plan.cut = "
        "quadratic");
  CHECK(
      live("step = { sequences = 3 }\n[feed.plan]\nworld = 4") ==
      "x.toml:6:1: feed.live.step: found 3; allowed: plan.world = 4 and up, a row for each batch");
  CHECK(fault_of(with_plan_line("world = 17")) ==
        "x.toml:4:1: feed.live.step: found 16; allowed: plan.world = 17 and up, a row for each "
        "batch");
  CHECK(live("step = { groups = 3 }") ==
        "x.toml:6:1: feed.live.step.groups: found 3; allowed: with live.groups = step or batch "
        "only");
  CHECK(live("pool_sequences = 15") ==
        "x.toml:6:1: feed.live.pool_sequences: found 15; allowed: 16 and up, for a step");
  const std::string frames = "step = { frames = 100 }";
  CHECK(fault_of(with_feed_line("pool = 399") + frames + "\n") ==
        "x.toml:4:1: feed.pool: found 399; allowed: 400 and up, for the frames of a step");
  CHECK(live(frames + "\n[feed.plan]\nworld = 2") ==
        "x.toml:5:1: feed.live.max_length: found 100; allowed: 0 to 50, a batch's share of the "
        "step");
  std::string unbounded = kLive + frames + "\nmax_staleness = 1\n";
  unbounded.replace(unbounded.find("max_length = 100"), 16, "window = 2");
  CHECK(fault_of(unbounded) ==
        "x.toml:4:1: feed.live.max_length: found 0; allowed: 1 and up where live.max_staleness "
        "bounds a step in frames");
  CHECK(live("zero_most_stale = 17") ==
        "x.toml:6:1: feed.live.zero_most_stale: found 17; allowed: 0 to 16, the rows of a batch");
  CHECK(live("stale = \"zero\"") ==
        "x.toml:6:1: feed.live.stale: found zero; allowed: pace or drop, as live.max_staleness is "
        "not set");
  CHECK(
      live("select = \"uniform\"\nmax_staleness = 1") ==
      "x.toml:4:1: feed.live.stale: found pace; allowed: drop or zero with live.select = uniform");
  CHECK(live("fresh_share = 0.5") ==
        "x.toml:6:1: feed.live.fresh_share: found 0.5; allowed: nothing, as live.reuse = 1 makes "
        "all of a step fresh");
  CHECK(live("reuse = 0") ==
        "x.toml:4:1: feed.live.fresh_share: found nothing; allowed: 0 to 1 with live.reuse = 0");
}

TEST_CASE("config: lanes are a step's budget, and refuse what they do not go with") {
  std::string text = kLive;
  text.replace(text.find("max_length = 100"), 16, "step = { lanes = 6, unroll = 20 }");
  const LiveSettings pool = live_of(text + "[feed.plan]\nworld = 2\n").pool;
  CHECK(pool.step_unit == StepUnit::lanes);
  CHECK(pool.step == 6);
  CHECK(pool.unroll == 20);
  CHECK(pool.max_length == 0);
  CHECK(fault_of(text + "window = 4\n") ==
        "x.toml:6:1: feed.live.window: found 4 with step.lanes; allowed: nothing there, as lanes "
        "take sequences in their order");
  CHECK(fault_of(text + "spool = \"/s\"\n") == "");
  CHECK(fault_of(text + "[feed.plan]\nworld = 4\n") ==
        "x.toml:5:1: feed.live.step: found 6; allowed: a multiple of plan.world = 4, as each rank "
        "has as many lanes");
  CHECK(fault_of(text + "[feed.plan]\ncut = \"dynamic\"\n")
            .find("feed.plan.cut: found dynamic; allowed: fixed with lanes") != text.npos);
  CHECK(fault_of(with_live_line("step = { lanes = 6 }")) ==
        "x.toml:6:1: feed.live.step.unroll: found 0; allowed: 1 to 2147483647");
  for (const char* step : {"{ sequences = 6, unroll = 20 }", "{ unroll = 20 }",
                           "{ lanes = 6, unroll = 0 }", "{ lanes = 6, unroll = 20, frames = 2 }"}) {
    CAPTURE(step);
    const std::string fault = fault_of(with_live_line(std::string("step = ") + step));
    CHECK(fault.find(" feed.live.step") != fault.npos);
    CHECK(fault.find("{ lanes = N, unroll = U }") != fault.npos);
  }
}

TEST_CASE("config: values of a live feed at the edge are taken, those past it refused") {
  for (const char* line :
       {"window = 1", "window = 1000000", "linger = \"0s\"", "linger = \"168h\"",
        "group_timeout = \"1ms\"", "claim_timeout = \"168h\"", "max_staleness = 0",
        "max_staleness = 1000000000", "zero_most_stale = 16", "reuse = 4294967295",
        "reuse = 2\nfresh_share = 0", "reuse = 2\nfresh_share = 1", "pool_sequences = 16",
        "pool_sequences = 1073741824", "step = { sequences = 1 }"}) {
    CAPTURE(line);
    CHECK(fault_of(with_live_line(line)) == "");
  }
  for (const char* line : {"window = 0",
                           "window = 1000001",
                           "window = 2.0",
                           "window = \"4\"",
                           "linger = \"169h\"",
                           "linger = 2",
                           "linger = \"ever\"",
                           "group_timeout = \"0s\"",
                           "group_timeout = \"never\"",
                           "claim_timeout = \"0ms\"",
                           "claim_timeout = \"169h\"",
                           "max_staleness = -1",
                           "max_staleness = 1000000001",
                           "zero_most_stale = 4294967296",
                           "reuse = -1",
                           "fresh_share = 1.5",
                           "fresh_share = nan",
                           "pool_sequences = 0",
                           "pool_sequences = 1073741825",
                           "groups = \"all\"",
                           "late_groups = true",
                           "stale = \"\"",
                           "select = 1"}) {
    CAPTURE(line);
    const std::string name(line, std::string(line).find(' '));
    CHECK(fault_of(with_live_line(line)).starts_with("x.toml:6:1: feed.live." + name + ": found "));
  }
  for (const char* step : {"16", "\"16\"", "{}", "{ sequences = 1, frames = 1 }"}) {
    CHECK(fault_of(with_live_line(std::string("step = ") + step)).starts_with("x.toml:6:1: feed."));
  }
  for (const char* step :
       {"{ rows = 1 }", "{ frames = 0 }", "{ frames = 4294967296 }", "{ groups = 1.5 }"}) {
    CHECK(fault_of(with_live_line(std::string("step = ") + step))
              .starts_with("x.toml:6:10: feed.live.step: found "));
  }
  CHECK(fault_of(with_feed_line("pool = 0")).starts_with("x.toml:4:1: feed.pool: found 0; "));
  CHECK(fault_of(with_feed_line("pool = \"257TiB\"")) ==
        "x.toml:4:1: feed.pool: found 282574488338432; allowed: 1 to 281474976710656");
  CHECK(fault_of(with_feed_line("allow_nan = 1")).starts_with("x.toml:4:1: feed.allow_nan: "));
}

TEST_CASE("config: padding and casts of a live feed name fields that it has") {
  CHECK(fault_of(with_feed_line("padding = { tokens = 7 }")) == "");
  CHECK(fault_of(with_feed_line("padding = { labels = 7 }"))
            .starts_with("x.toml:4:1: feed.padding: "));
  CHECK(fault_of(with_feed_line("dtype = { tokens = \"float16\" }"))
            .starts_with("x.toml:4:1: feed.dtype: "));
}
