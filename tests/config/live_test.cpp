// Feeds with a table [feed.live].

#include <doctest/doctest.h>

#include <string>

#include "tests/config/texts.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr const char* kEveryKey = R"(
[[feed]]
name = "rollouts"
pool = "4GiB"
allow_nan = true
padding = { logprobs = -1 }
dtype = { logprobs = "float16" }
[feed.fields]
tokens = { dtype = "int32" }
logprobs = { dtype = "float32", kind = "aligned", shape = [2, 3] }
reward = { dtype = "float32", kind = "scalar" }
text = { dtype = "uint8", kind = "independent" }
[feed.live]
step = { groups = 8 }
window = 5
max_length = 2000
linger = "2s"
groups = "step"
group_timeout = "1h"
late_groups = "abandon"
max_staleness = 0
stale = "zero"
claim_timeout = "90s"
zero_most_stale = 2
reuse = 3
select = "uniform"
fresh_share = 0.5
pool_sequences = 1000
record = "/r"
spool = "/s"
spool_sync = "commit"
[feed.plan]
world = 2
seed = 7
cut = "quadratic"
quadratic_scale = 500
)";

/// A live feed with these lines in [feed.fields], from line 4.
std::string with_fields(const std::string& lines) {
  return "[[feed]]\nname = \"live\"\n[feed.fields]\n" + lines + "[feed.live]\nmax_length = 100\n";
}

/// The fields by name, with a comma after each.
std::string order_of(const std::string& lines) {
  std::string names;
  for (const FieldSpec& field : live_of(with_fields(lines)).schema.fields)
    names += field.name + ",";
  return names;
}

}  // namespace

TEST_CASE("config: a live feed leaves the rest at its defaults") {
  const Config config = parsed(kLive);
  CHECK(config.feeds.at(0).dataset.empty());
  const LiveFeedSettings live = live_of(kLive);
  CHECK_FALSE(live.allow_nan);
  CHECK(live.pool.pool_bytes == std::uint64_t{1} << 30);
  CHECK(live.pool.pool_sequences == 65'536);
  CHECK(live.pool.step_unit == StepUnit::sequences);
  CHECK(live.pool.step == 16);
  CHECK(live.pool.max_length == 100);
  CHECK_FALSE(live.pool.linger_ms);
  CHECK_FALSE(live.pool.max_staleness);
  CHECK(live.pool.frame_bytes == std::vector<std::uint64_t>{4});
  CHECK(live.schema.fields ==
        std::vector<FieldSpec>{{"tokens", FieldKind::primary, DType::int32, {}, {}}});
  CHECK_FALSE(parsed(kFeed).feeds.at(0).served.live);
}

TEST_CASE("config: every key of a live feed is read") {
  const LiveFeedSettings live = live_of(kEveryKey);
  CHECK(live.allow_nan);
  CHECK(live.record == "/r");
  CHECK(live.spool == "/s");
  CHECK(live.spool_synced);
  REQUIRE(live.schema.fields.size() == 4);
  CHECK(live.schema.fields[1] ==
        FieldSpec{"logprobs", FieldKind::aligned, DType::float32, {2, 3}, {}});
  CHECK(live.schema.fields[3].kind == FieldKind::independent);
  const LiveSettings& pool = live.pool;
  CHECK(pool.frame_bytes == std::vector<std::uint64_t>{4, 24, 4, 1});
  CHECK(pool.pool_bytes == std::uint64_t{4} << 30);
  CHECK(pool.step_unit == StepUnit::groups);
  CHECK(pool.step == 8);
  CHECK(pool.window == 5);
  CHECK(pool.max_length == 2000);
  CHECK(pool.linger_ms == 2000);
  CHECK(pool.groups == LiveGroups::step);
  CHECK(pool.group_timeout_ms == 3'600'000);
  CHECK(pool.late_groups == LateGroups::abandon);
  CHECK(pool.max_staleness == 0);
  CHECK(pool.stale == StalePolicy::zero);
  CHECK(pool.claim_timeout_ms == 90'000);
  CHECK(pool.zero_most_stale == 2);
  CHECK(pool.reuse == 3);
  CHECK(pool.select == LiveSelect::uniform);
  CHECK(pool.fresh_share == 0.5);
  CHECK(pool.pool_sequences == 1000);
  CHECK(pool.world == 2);
  CHECK(pool.seed == 7);
  CHECK(pool.cut == Cut::quadratic);
  CHECK(pool.quadratic_scale == 500);
}

TEST_CASE("config: fields have the order of the file, and the first is the primary one") {
  CHECK(order_of("z = { dtype = \"int32\" }\na = { dtype = \"int32\", kind = \"aligned\" }\n") ==
        "z,a,");
  CHECK(order_of("z.dtype = \"int32\"\nb = { dtype = \"int32\", kind = \"scalar\" }\n"
                 "[feed.fields.a]\ndtype = \"int32\"\nkind = \"aligned\"\n") == "z,b,a,");
  CHECK(order_of("[feed.fields.z]\ndtype = \"int32\"\n[feed.fields.a]\ndtype = \"int32\"\n"
                 "kind = \"aligned\"\n") == "z,a,");
  const LiveFeedSettings inlined = live_of(
      "[[feed]]\nname = \"live\"\nlive = { max_length = 9 }\n"
      "fields = { z = { dtype = \"int16\", kind = \"primary\" }, a = { dtype = \"uint8\", kind = "
      "\"scalar\" } }\n");
  CHECK(inlined.schema.primary() == 0);
  CHECK(inlined.schema.fields[1].name == "a");
  CHECK(inlined.pool.frame_bytes == std::vector<std::uint64_t>{2, 1});
}

TEST_CASE("config: a field that no schema can have is refused with its place") {
  const auto fault = [](const std::string& lines) { return fault_of(with_fields(lines)); };
  const std::string first = "tokens = { dtype = \"int32\" }\n";
  CHECK(fault("") == "x.toml:3:1: feed.fields: found an empty table; allowed: " +
                         std::string(fields_row().allowed));
  CHECK(fault_of(with_feed_line("")) == "");
  CHECK(fault("tokens = {}\n") ==
        "x.toml:4:1: feed.fields.tokens.dtype: found nothing; allowed: float32 float16 bfloat16 "
        "int64 int32 int16 uint8");
  CHECK(fault("tokens = { dtype = \"int31\" }\n")
            .starts_with(
                "x.toml:4:12: feed.fields.tokens.dtype: found \"int31\"; allowed: float32 "));
  CHECK(fault("tokens = 3\n") == "x.toml:4:1: feed.fields.tokens: found 3; allowed: a table");
  CHECK(
      fault("tokens = { dtype = \"int32\", shap = [3] }\n") ==
      "x.toml:4:29: feed.fields.tokens.shap: unknown key, did you mean shape?; allowed: dtype kind "
      "shape");
  CHECK(fault("tokens = { dtype = \"int32\", kind = \"aligned\" }\n") ==
        "x.toml:4:29: feed.fields.tokens.kind: found \"aligned\"; allowed: primary or nothing, as "
        "the first field is the primary one");
  CHECK(
      fault(first + "a = { dtype = \"int32\" }\n") ==
      "x.toml:5:1: feed.fields.a.kind: found nothing; allowed: aligned independent scalar, as the "
      "first field is the primary one");
  CHECK(fault(first + "a = { dtype = \"int32\", kind = \"primary\" }\n") ==
        "x.toml:5:24: feed.fields.a.kind: found \"primary\"; allowed: aligned independent scalar, "
        "as the first field is the primary one");
  CHECK(fault(first + "a = { dtype = \"int32\", kind = \"other\" }\n") ==
        "x.toml:5:24: feed.fields.a.kind: found \"other\"; allowed: primary aligned independent "
        "scalar");
  CHECK(fault("tokens = { dtype = \"int32\", shape = [1, 1, 1, 1, 1, 1, 1] }\n") ==
        "x.toml:4:1: feed.fields: field \"tokens\": at most 6 dimensions a frame");
  CHECK(fault("tokens = { dtype = \"int32\", shape = [4194305] }\n") ==
        "x.toml:4:1: feed.fields: field \"tokens\": a frame takes at most 16 MiB");
  CHECK(fault("tokens = { dtype = \"int32\", shape = [2, -1] }\n")
            .starts_with("x.toml:4:41: feed.fields.tokens.shape: found -1; allowed: "));
  CHECK(fault(first + "a = { dtype = \"int32\", kind = \"aligned\", shape = [0] }\n") ==
        "x.toml:5:1: feed.fields: field \"a\": a dimension of 0");
  CHECK(fault(first + "a = { dtype = \"int32\", kind = \"scalar\", shape = [2] }\n") ==
        "x.toml:5:1: feed.fields: field \"a\": a scalar has no shape");
  CHECK(fault("\"\" = { dtype = \"int32\" }\n") ==
        "x.toml:4:1: feed.fields: field \"\": a name has 1 to 255 bytes");
  std::string many = first;
  for (int i = 0; i < 64; ++i) {
    many += "f" + std::to_string(i) + " = { dtype = \"uint8\", kind = \"scalar\" }\n";
  }
  CHECK(fault(many) == "x.toml:68:1: feed.fields: a schema has at most 64 fields, found 65");
}

TEST_CASE("config: what follows from other keys of a live feed is no change of its own") {
  const auto changed = [](const std::string& a, const std::string& b) {
    const auto changes = compare_configs(parsed(a), parsed(b)).changed;
    return changes.empty() ? "" : changes.at(0).keys;
  };
  CHECK(changed(kLive, with_live_line("reuse = 2")) == "live.reuse");
  CHECK(changed(with_live_line("reuse = 2"), with_live_line("reuse = 2\nfresh_share = 0.5")) == "");
  std::string frames = kLive;
  frames.replace(frames.find("max_length = 100"), 16, "step = { frames = 400 }");
  std::string more = frames;
  more.replace(more.find("400"), 3, "500");
  CHECK(changed(frames, more) == "live.step");
  CHECK(changed(frames, frames + "max_length = 400\n") == "");
  CHECK(changed(frames, frames + "max_length = 399\n") == "live.max_length");
}

TEST_CASE("config: a feed that becomes live, or no longer is, is made again") {
  std::string stored = kFeed;
  stored.replace(stored.find("train"), 5, "live");
  const auto changes = compare_configs(parsed(stored), parsed(kLive)).changed;
  REQUIRE(changes.size() == 1);
  CHECK_FALSE(changes[0].in_place);
  CHECK(changes[0].keys == "dataset, live");
}

TEST_CASE("config: fields that a live feed joins come after those that are pushed") {
  const std::string text =
      "[[feed]]\nname = \"live\"\n[feed.fields]\nd = { dtype = \"float32\", shape = [3] }\n"
      "x = { dtype = \"float32\", shape = [40], kind = \"aligned\" }\n"
      "loss = { dtype = \"float32\", kind = \"scalar\" }\n"
      "y = { dtype = \"int32\", kind = \"aligned\" }\n[feed.live]\nmax_length = 100\n";
  const std::string from = "join = { from = \"train\", fields = [\"y\", \"x\"] }\n";
  const LiveFeedSettings live = live_of(text + from + kFeed);
  CHECK(live.pushed() == 2);
  CHECK(live.join == LiveJoin{"train", {"x", "y"}});
  CHECK(live.schema.fields[1].name == "loss");
  CHECK(live.schema.fields[3].name == "y");
  CHECK(live.pool.frame_bytes == std::vector<std::uint64_t>{12, 4});  // no room for what is joined
  const Config before = parsed(text + kFeed);
  const auto changes = compare_configs(before, parsed(text + from + kFeed));
  REQUIRE(changes.changed.size() == 1);
  CHECK(changes.changed[0].keys.find("live.join") != std::string::npos);
  CHECK_FALSE(changes.changed[0].in_place);
  const auto fault = [&](const std::string& line) { return fault_of(text + line + "\n" + kFeed); };
  const std::string all = "join = { from = \"train\", fields = ";
  CHECK(fault(all + "[\"z\"] }").find("join: found \"z\"; allowed: fields of feed.fields but") !=
        std::string::npos);
  CHECK(fault(all + "[\"d\"] }").find("found \"d\"; allowed") != std::string::npos);
  CHECK(fault(all + "[\"x\", \"x\"] }").find("found \"x\" twice") != std::string::npos);
  CHECK(fault(all + "[] }").find("join: found") != std::string::npos);
  CHECK(fault(all + "[\"x\"], more = 1 }").find("join: found a table") != std::string::npos);
  CHECK(fault("join = { from = \"eval\", fields = [\"x\"] }")
            .find("found from = \"eval\", which is no feed; allowed: a feed with a dataset") !=
        std::string::npos);
  CHECK(fault("join = { from = \"live\", fields = [\"x\"] }").find("which is a live feed") !=
        std::string::npos);
  CHECK(fault("spool = \"/s\"\n" + from).find("found beside feed.live.spool") != std::string::npos);
}
