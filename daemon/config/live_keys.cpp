// The rows of a live feed: its keys in [[feed]], [feed.live], and the fields of [feed.fields].

#include <algorithm>
#include <array>
#include <iterator>
#include <tuple>
#include <utility>

#include "daemon/config/live_feed.h"

namespace batchwright {

namespace {

constexpr std::uint32_t kMost = 4'294'967'295;
/// A member that an agent makes may take days.
constexpr std::chrono::hours kMostTimeout{168};

Fault read_pool(const ConfigNode& node, std::uint64_t& out) { return read_bytes(node, out, 1); }

/// A budget in one of four units, and of lanes the frames of a row.
Fault read_step(const ConfigNode& node, LiveSettings& out) {
  if (node.table() == nullptr) return &node;
  const ConfigNode* const unroll = node.find("lanes") == nullptr ? nullptr : node.find("unroll");
  if (node.table()->entries.size() != (unroll == nullptr ? 1 : 2)) return &node;
  for (const ConfigNode& entry : node.table()->entries) {
    if (&entry == unroll) {
      if (const Fault fault = read_count<1, kMost>(entry, out.unroll)) return fault;
      continue;
    }
    const auto* const known =
        std::find_if(std::begin(kStepUnits), std::end(kStepUnits),
                     [&entry](const auto& word) { return word.first == entry.key; });
    if (known == std::end(kStepUnits)) return &entry;
    if (const Fault fault = read_count<1, kMost>(entry, out.step)) return fault;
    out.step_unit = known->second;
  }
  return nullptr;
}

Fault read_milliseconds(const ConfigNode& node, std::uint64_t& out, std::uint64_t min) {
  std::chrono::milliseconds time{};
  if (const Fault fault = read_duration(node, time, kMostTimeout)) return fault;
  if (static_cast<std::uint64_t>(time.count()) < min) return &node;
  out = static_cast<std::uint64_t>(time.count());
  return nullptr;
}

Fault read_timeout(const ConfigNode& node, std::uint64_t& out) {
  return read_milliseconds(node, out, 1);
}

Fault read_linger(const ConfigNode& node, std::optional<std::uint64_t>& out) {
  if (node.text() != nullptr && *node.text() == "never") {
    out.reset();
    return nullptr;
  }
  std::uint64_t time = 0;
  if (const Fault fault = read_milliseconds(node, time, 0)) return fault;
  out = time;
  return nullptr;
}

Fault read_groups(const ConfigNode& node, LiveGroups& out) {
  return read_word_of(node, out, kLiveGroups);
}

Fault read_late_groups(const ConfigNode& node, LateGroups& out) {
  return read_word_of(node, out, kLateGroups);
}

Fault read_spool_sync(const ConfigNode& node, bool& out) {
  return read_word(node, out, {{"none", false}, {"commit", true}});
}

Fault read_staleness(const ConfigNode& node, std::optional<std::uint64_t>& out) {
  std::uint64_t most = 0;
  if (const Fault fault = read_count<0, 1'000'000'000>(node, most)) return fault;
  out = most;
  return nullptr;
}

Fault read_stale(const ConfigNode& node, StalePolicy& out) {
  return read_word_of(node, out, kStalePolicies);
}

Fault read_live_select(const ConfigNode& node, LiveSelect& out) {
  return read_word_of(node, out, kLiveSelects);
}

Fault read_fresh_share(const ConfigNode& node, std::optional<double>& out) {
  double share = 0;
  if (const Fault fault = read_probability(node, share)) return fault;
  out = share;
  return nullptr;
}

/// All of it, or none.
Fault read_join(const ConfigNode& node, LiveJoin& out) {
  const ConfigNode* from = node.table() != nullptr ? node.find("from") : nullptr;
  const ConfigNode* fields = node.table() != nullptr ? node.find("fields") : nullptr;
  if (from == nullptr || fields == nullptr || node.table()->entries.size() != 2) return &node;
  LiveJoin join;
  if (const Fault fault = read_text(*from, join.from)) return fault;
  if (const Fault fault = read_texts(*fields, join.fields)) return fault;
  if (join.from.empty()) return from;
  out = std::move(join);
  return nullptr;
}

Fault read_dtype(const ConfigNode& node, DType& out) {
  if (node.text() == nullptr) return &node;
  const auto dtype = parse_dtype(*node.text());
  if (!dtype) return &node;
  out = *dtype;
  return nullptr;
}

Fault read_field_kind(const ConfigNode& node, FieldKind& out) {
  return read_word(node, out,
                   {{"primary", FieldKind::primary},
                    {"aligned", FieldKind::aligned},
                    {"independent", FieldKind::independent},
                    {"scalar", FieldKind::scalar}});
}

Fault read_shape(const ConfigNode& node, std::vector<std::uint32_t>& out) {
  if (node.list() == nullptr) return &node;
  std::vector<std::uint32_t> shape;
  for (const ConfigNode& entry : *node.list()) {
    if (const Fault fault = read_whole<0, kMaxFrameBytes>(entry, shape.emplace_back())) {
      return fault;
    }
  }
  out = std::move(shape);
  return nullptr;
}

// Not compared are what follows from other keys, which have changed themselves.

std::uint64_t set_length(const LiveSettings& s) {
  const bool follows = s.step_unit == StepUnit::frames && s.max_length == s.step / s.world;
  return follows ? 0 : s.max_length;
}

std::optional<double> set_share(LiveSettings s) {
  const auto share = std::exchange(s.fresh_share, std::nullopt);
  const auto filled = check_live_settings(s);
  return filled && filled->fresh_share == share ? std::nullopt : share;
}

template <auto Read, class... Gets>
constexpr Key<LiveFeedSettings> live_key(KeyRow row, Gets... gets) {
  return key<LiveFeedSettings, Read>(row, gets...);
}

using enum Applies;

const std::array kLiveFeedKeys{
    live_key<read_pool>(
        {"pool", "1 and up, a number of bytes or a text with B, KiB, MiB, GiB or TiB", R"("1GiB")",
         anew, "Of a live feed: bytes of the sequences that wait or are kept"},
        [](auto& l) -> auto& { return l.pool.pool_bytes; }),
    live_key<read_bool>(
        {"allow_nan", "true or false", "false", anew,
         "Of a live feed: whether producers may push numbers that are not finite"},
        [](auto& l) -> auto& { return l.allow_nan; }),
};

constexpr KeyRow kFieldsRow{
    "fields",
    R"(a table of 1 to 64 fields by name, such as { tokens = { dtype = "int32" }, )"
    R"(logprobs = { dtype = "float32", kind = "aligned" } })",
    "", anew, "Of a live feed: what a sequence that is pushed consists of"};

const std::array kFieldKeys{
    key<FieldSpec, read_dtype>(
        {"dtype", "float32 float16 bfloat16 int64 int32 int16 uint8", "", anew, "Type of a value"},
        [](auto& f) -> auto& { return f.dtype; }),
    key<FieldSpec, read_field_kind>(
        {"kind", "primary aligned independent scalar", "", anew, "How many frames it has"},
        [](auto& f) -> auto& { return f.kind; }),
    key<FieldSpec, read_shape>(
        {"shape", "a list of up to 6 numbers, 0 to 16777216", "[]", anew, "Shape of a frame"},
        [](auto& f) -> auto& { return f.shape; }),
};

const std::array kLiveKeys{
    live_key<read_step>(
        {"step",
         "{ sequences = N }, { groups = N } or { frames = N }, with N from 1 to 4294967295, or "
         "{ lanes = N, unroll = U }, with N up to 16777215 and U up to 2147483647",
         "{ sequences = 16 }", anew, "Budget of a step, which is cut into world batches"},
        [](auto& l) -> auto& { return l.pool; },
        [](auto& l) { return std::tuple(l.pool.step_unit, l.pool.step, l.pool.unroll); }),
    live_key<read_count<1, 1'000'000>>(
        {"window", "1 to 1000000", "4", in_place,
         "Steps' worth of waiting sequences from which a step takes those of like lengths"},
        [](auto& l) -> auto& { return l.pool.window; }),
    live_key<read_count<1, 2'147'483'647>>(
        {"max_length", "1 to 2147483647", "", in_place,
         "Frames of the longest sequence; a longer one is refused"},
        [](auto& l) -> auto& { return l.pool.max_length; },
        [](auto& l) { return set_length(l.pool); }),
    live_key<read_linger>(
        {"linger", R"("never", or 0s to 168h, a text with ms, s, min or h)", R"("never")", in_place,
         "How long a trainer waits before it gets a step that is not full"},
        [](auto& l) -> auto& { return l.pool.linger_ms; }),
    live_key<read_groups>(
        {"groups", "none step batch", R"("none")", anew,
         "Whether sequences come in groups, and what holds the whole of one"},
        [](auto& l) -> auto& { return l.pool.groups; }),
    live_key<read_timeout>(
        {"group_timeout", "1ms to 168h, a text with ms, s, min or h", R"("10min")", in_place,
         "How long after its first member a group waits for the others"},
        [](auto& l) -> auto& { return l.pool.group_timeout_ms; }),
    live_key<read_late_groups>(
        {"late_groups", "cut abandon", R"("cut")", in_place,
         "What becomes of the members of a group that stays incomplete"},
        [](auto& l) -> auto& { return l.pool.late_groups; }),
    live_key<read_staleness>(
        {"max_staleness", "0 to 1000000000", "", in_place,
         "Versions by which a sequence may be older than the trainer when its step is cut"},
        [](auto& l) -> auto& { return l.pool.max_staleness; }),
    live_key<read_stale>(
        {"stale", "pace drop zero", R"("pace")", in_place,
         "What becomes of a sequence that is older"},
        [](auto& l) -> auto& { return l.pool.stale; }),
    live_key<read_timeout>(
        {"claim_timeout", "1ms to 168h, a text with ms, s, min or h", R"("10min")", in_place,
         "How long a producer may take to push what it has claimed"},
        [](auto& l) -> auto& { return l.pool.claim_timeout_ms; }),
    live_key<read_count<0, kMost>>(
        {"zero_most_stale", "0 to 4294967295", "0", in_place,
         "Rows of each batch that get weight 0, those with the oldest versions"},
        [](auto& l) -> auto& { return l.pool.zero_most_stale; }),
    live_key<read_count<0, kMost>>(
        {"reuse", "0 to 4294967295", "1", in_place,
         "Most deliveries of a sequence; 0 for any number"},
        [](auto& l) -> auto& { return l.pool.reuse; }),
    live_key<read_live_select>(
        {"select", "fifo uniform", R"("fifo")", anew,
         "Whether a step takes the oldest, or draws from all"},
        [](auto& l) -> auto& { return l.pool.select; }),
    live_key<read_fresh_share>(
        {"fresh_share", "0 to 1", "", in_place,
         "Share of a step that is taken from sequences never delivered"},
        [](auto& l) -> auto& { return l.pool.fresh_share; },
        [](auto& l) { return set_share(l.pool); }),
    live_key<read_count<1, 1'073'741'824>>(
        {"pool_sequences", "1 to 1073741824", "65536", in_place,
         "Sequences that wait or are kept, whatever their bytes"},
        [](auto& l) -> auto& { return l.pool.pool_sequences; }),
    live_key<read_join>(
        {"join", R"({ from = "FEED", fields = ["NAME", ...] }, a feed with a dataset in this file)",
         "", anew, "Fields that no producer pushes: the rows that it names have them"},
        [](auto& l) -> auto& { return l.join; }),
    live_key<read_path>(
        {"record", "path of a folder; \"\" for none", R"("")", anew,
         "Dataset that gets what is delivered, with its order beside it"},
        [](auto& l) -> auto& { return l.record; }),
    live_key<read_path>(
        {"spool", "path of a folder; \"\" for none", R"("")", anew,
         "Folder of what was accepted, so that it outlives the daemon"},
        [](auto& l) -> auto& { return l.spool; }),
    live_key<read_spool_sync>(
        {"spool_sync", "none commit", R"("none")", anew,
         "Whether what is accepted outlives a loss of power as well"},
        [](auto& l) -> auto& { return l.spool_synced; }),
};

}  // namespace

LiveFeedSettings default_live_feed() {
  LiveFeedSettings live;
  live.pool.pool_bytes = std::uint64_t{1} << 30;
  // Sequences of 16 KiB and more fill the bytes first. So many take 20 MiB beside their bytes, and
  // a step that is drawn from all of them some milliseconds (tests/bench/README.md).
  live.pool.pool_sequences = 65'536;
  return live;
}

std::span<const Key<LiveFeedSettings>> live_feed_keys() { return kLiveFeedKeys; }
std::span<const Key<LiveFeedSettings>> live_keys() { return kLiveKeys; }
const KeyRow& fields_row() { return kFieldsRow; }
std::span<const Key<FieldSpec>> field_keys() { return kFieldKeys; }

}  // namespace batchwright
