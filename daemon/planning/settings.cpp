#include "daemon/planning/settings.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <type_traits>
#include <variant>

// The one table of settings: how each is written, what it allows, where it is kept. Command line,
// configuration, help, hash and error texts all come from it.

namespace batchwright {
namespace {

/// The longest length, and the most of anything that is counted in lengths (kLongest).
constexpr std::uint64_t kCount = std::numeric_limits<std::uint32_t>::max() / 2;

/// As long as a path may be.
constexpr std::size_t kMostText = 4095;

/// One of the words in the row's `allowed`, in the order of the enumeration.
struct Word {
  void (*set)(PlanSettings&, std::size_t);
  std::size_t (*get)(const PlanSettings&);
};
struct Whole {
  void (*set)(PlanSettings&, std::uint64_t);
  std::uint64_t (*get)(const PlanSettings&);
  std::uint64_t min, max;
  bool zero_is_unset;
};
struct Real {
  void (*set)(PlanSettings&, double);
  std::optional<double> (*get)(const PlanSettings&);
  double min, max;
  bool min_allowed;
};
struct WholeList {
  std::vector<std::uint32_t> PlanSettings::*member;
};
struct RealList {
  std::vector<double> PlanSettings::*member;
};
struct Text {
  std::string PlanSettings::*member;
};
using Slot = std::variant<Word, Whole, Real, WholeList, RealList, Text>;  // in SettingType's order

template <class T>
struct MemberType;
template <class T>
struct MemberType<T PlanSettings::*> {
  using type = T;
};

template <auto Member>
constexpr Slot word() {
  using T = typename MemberType<decltype(Member)>::type;
  return Word{[](PlanSettings& s, std::size_t i) { s.*Member = static_cast<T>(i); },
              [](const PlanSettings& s) { return static_cast<std::size_t>(s.*Member); }};
}

template <auto Member>
constexpr Slot whole(std::uint64_t min, std::uint64_t max, bool zero_is_unset) {
  using T = typename MemberType<decltype(Member)>::type;
  return Whole{[](PlanSettings& s, std::uint64_t v) { s.*Member = static_cast<T>(v); },
               [](const PlanSettings& s) { return std::uint64_t{s.*Member}; }, min, max,
               zero_is_unset};
}

template <auto Member>
constexpr Slot real(double min, double max, bool min_allowed) {
  return Real{[](PlanSettings& s, double v) { s.*Member = v; },
              [](const PlanSettings& s) { return std::optional<double>(s.*Member); }, min, max,
              min_allowed};
}

struct TableRow {
  SettingRow row;
  Slot slot;
};

using P = PlanSettings;
constexpr double kHalfPi = std::numbers::pi / 2;
constexpr std::uint64_t kAny64 = std::numeric_limits<std::uint64_t>::max();

// clang-format off
// In the order of settings_hash(): rows that change places give all plans other fingerprints.
const std::array kTable = {
  TableRow{{"select", "full fixed linear cosine", "Share of the sequences an epoch uses, by stochastic data sweeping s0 to s3 (Deng et al.)"}, word<&P::select>()},
  TableRow{{"usage", "above 0, up to 1", "Data usage rate over all epochs; alpha, beta or lambda follows from it"}, real<&P::usage>(0, 1, false)},
  TableRow{{"alpha", "above 0, up to 1", "Share used in every epoch, of select = fixed"}, real<&P::alpha>(0, 1, false)},
  TableRow{{"beta", "above 0, up to 1", "Fall of the share per epoch, of select = linear"}, real<&P::beta>(0, 1, false)},
  TableRow{{"lambda", "above 0, up to pi/2", "Angle per epoch in radians, of select = cosine"}, real<&P::lambda>(0, kHalfPi, false)},
  TableRow{{"flat_after", "1 to 1000000", "Last epoch of the falling part of linear and cosine (l)"}, whole<&P::flat_after>(1, 1'000'000, true)},
  TableRow{{"floor", "0 to 1", "Share used after flat_after (c)"}, real<&P::floor>(0, 1, true)},
  TableRow{{"epochs", "1 to 1000000", "Number of epochs over which usage is defined (E)"}, whole<&P::epochs>(1, 1'000'000, true)},
  TableRow{{"chunk", "1 to 2147483647", "Frames of a chunk; without it sequences stay whole (Doetsch et al.)"}, whole<&P::chunk>(1, kCount, true)},
  TableRow{{"hop", "1 to chunk", "Frames from one chunk's start to the next; by default chunk"}, whole<&P::hop>(1, kCount, true)},
  TableRow{{"min_chunk", "1 to chunk", "Frames; a sequence's last chunk is left out when it is shorter"}, whole<&P::min_chunk>(1, kCount, true)},
  TableRow{{"lanes", "1 to 1048576", "Rows of a batch of truncated unrolling (Variani et al.)"}, whole<&P::lanes>(1, 1 << 20, true)},
  TableRow{{"unroll", "1 to 2147483647", "Frames that truncated unrolling moves on per step"}, whole<&P::unroll>(1, kCount, true)},
  TableRow{{"mix_weights", "positive numbers with commas between, one a dataset", "Share of each dataset in every epoch, to scale"}, RealList{&P::mix_weights}},
  TableRow{{"mix_exhausted", "wrap end", "Whether a used-up dataset starts again or ends the epoch"}, word<&P::mix_exhausted>()},
  TableRow{{"min_length", "0 to 2147483647", "Frames; shorter sequences are left out and counted"}, whole<&P::min_length>(0, kCount, true)},
  TableRow{{"max_length", "0 to 2147483647", "Frames; longer sequences are left out and counted; 0 for no limit"}, whole<&P::max_length>(0, kCount, true)},
  TableRow{{"order", "random sorted bucket bucket-span bucket-optimal alternated semi-sorted file", "Order of the sequences before they are cut into batches"}, word<&P::order>()},
  TableRow{{"randomization", "0 to 1000000", "Width of semi-sorted's noise as a share of the range of lengths (LRF, Ge et al.)"}, real<&P::randomization>(0, 1e6, true)},
  TableRow{{"bins", "1 to 2147483647", "Bins of alternated (Doetsch et al.)"}, whole<&P::bins>(1, kCount, true)},
  TableRow{{"bucket_size", "1 to 2147483647", "Sequences of one bucket of ranks, of bucket (Ge et al.)"}, whole<&P::bucket_size>(1, kCount, true)},
  TableRow{{"bucket_span", "1 to 2147483647", "Frames of one bucket of lengths, of bucket-span (Doetsch et al.)"}, whole<&P::bucket_span>(1, kCount, true)},
  TableRow{{"bucket_count", "1 to 65536", "Buckets that bucket-optimal bounds best (Khomenko et al.)"}, whole<&P::bucket_count>(1, 65536, true)},
  TableRow{{"bucket_boundaries", "growing lengths from 1 with commas between", "Longest length of each bucket, of bucket-span"}, WholeList{&P::bucket_boundaries}},
  TableRow{{"order_file", "path of a file with a row or a batch a line", "Rows of an epoch in their order, of order = file: keys or ordinals"}, Text{&P::order_file}},
  TableRow{{"row_weight", "name of a scalar float32 field", "Field that holds the weight of each row, of order = file; rows of weight 0 count in no total"}, Text{&P::row_weight}},
  TableRow{{"cut", "fixed dynamic frames quadratic real-frames file", "When a batch is full"}, word<&P::cut>()},
  TableRow{{"size", "1 to 2147483647", "Sequences of a batch, of fixed; times the longest length the capacity of dynamic"}, whole<&P::size>(1, kCount, false)},
  TableRow{{"rule", "strict overrun", "Whether a batch stays within its capacity or is the first to exceed it"}, word<&P::rule>()},
  TableRow{{"max_frames", "1 to 4611686018427387904", "Capacity of a batch in frames: of frames and quadratic with padding, of real-frames without (Doetsch et al.)"}, whole<&P::max_frames>(1, std::uint64_t{1} << 62, true)},
  TableRow{{"max_padded", "max_frames to 4611686018427387904", "Frames of a batch, padding included, that real-frames never passes; by default 4 times max_frames"}, whole<&P::max_padded>(1, std::uint64_t{1} << 62, true)},
  TableRow{{"quadratic_scale", "1 to 2147483647", "The length at which a frame costs double (a), of quadratic"}, whole<&P::quadratic_scale>(1, kCount, true)},
  TableRow{{"length_multiple", "1 to 65536", "Frames; the length of a batch is a multiple of it, so that few differ"}, whole<&P::length_multiple>(1, 65536, true)},
  TableRow{{"size_multiple", "1 to 65536", "Batches of at least this size have a multiple of it as size"}, whole<&P::size_multiple>(1, 65536, false)},
  TableRow{{"max_size", "0 to 2147483647", "Most sequences of a batch; 0 for no limit"}, whole<&P::max_size>(0, kCount, true)},
  TableRow{{"last", "keep drop", "What becomes of a last batch that is not full"}, word<&P::last>()},
  TableRow{{"seed", "0 to 18446744073709551615", "An epoch is planned from seed + epoch"}, whole<&P::seed>(0, kAny64, false)},
  TableRow{{"shuffle", "off batches groups", "Order of finished batches; groups puts like lengths into one step"}, word<&P::shuffle>()},
  TableRow{{"world", "1 to 65536", "Batches of one global step"}, whole<&P::world>(1, 65536, false)},
  TableRow{{"remainder", "drop spread wrap", "What becomes of batches that fill no global step"}, word<&P::remainder>()},
};
// clang-format on

Error refuse(const SettingRow& row, std::string_view found) {
  return {ErrorCode::bad_configuration,
          fmt::format("{}: found \"{}\", allowed: {}", row.name, found, row.allowed)};
}

bool parse_into(const Word& slot, const SettingRow& row, PlanSettings& settings,
                std::string_view text) {
  // What help and errors list is what is parsed: there is no second list of words.
  const auto words = split(row.allowed, ' ');
  const auto found = std::find(words.begin(), words.end(), text);
  if (found == words.end()) return false;
  slot.set(settings, static_cast<std::size_t>(found - words.begin()));
  return true;
}

bool parse_into(const Whole& slot, const SettingRow&, PlanSettings& settings,
                std::string_view text) {
  const auto value = parse_whole<std::uint64_t>(text);
  if (!value || *value < slot.min || *value > slot.max) return false;
  slot.set(settings, *value);
  return true;
}

bool parse_into(const Real& slot, const SettingRow&, PlanSettings& settings,
                std::string_view text) {
  const auto value = parse_real(text);
  // Written so that NaN fails.
  if (!value || !(*value >= slot.min && *value <= slot.max)) return false;
  if (*value == slot.min && !slot.min_allowed) return false;
  slot.set(settings, *value);
  return true;
}

bool parse_into(const WholeList& slot, const SettingRow&, PlanSettings& settings,
                std::string_view text) {
  std::vector<std::uint32_t> values;
  for (const std::string_view part : split(text, ',')) {
    const auto value = parse_whole<std::uint32_t>(part);
    if (!value || *value > kCount) return false;
    if (*value <= (values.empty() ? 0 : values.back())) return false;
    values.push_back(*value);
  }
  settings.*slot.member = std::move(values);
  return true;
}

bool parse_into(const RealList& slot, const SettingRow&, PlanSettings& settings,
                std::string_view text) {
  std::vector<double> values;
  for (const std::string_view part : split(text, ',')) {
    const auto value = parse_real(part);
    if (!value || !(*value > 0) || !std::isfinite(*value)) return false;
    values.push_back(*value);
  }
  settings.*slot.member = std::move(values);
  return true;
}

bool parse_into(const Text& slot, const SettingRow&, PlanSettings& settings,
                std::string_view text) {
  // It stands in messages of one line.
  if (text.empty() || text.size() > kMostText || printable(std::string(text)) != text) return false;
  settings.*slot.member = text;
  return true;
}

template <class T>
std::string number_text(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return real_text(value);
  } else {
    return std::to_string(value);
  }
}

template <class T>
std::string list_text(const std::vector<T>& values) {
  std::string text;
  for (const T value : values) {
    if (!text.empty()) text += ',';
    text += number_text(value);
  }
  return text;
}

std::string text_of(const Word& slot, const SettingRow& row, const PlanSettings& settings) {
  return std::string(split(row.allowed, ' ')[slot.get(settings)]);
}
std::string text_of(const Whole& slot, const SettingRow&, const PlanSettings& settings) {
  const std::uint64_t value = slot.get(settings);
  // An unset setting has no text, and so no part in the hash.
  return value == 0 && slot.zero_is_unset ? std::string() : number_text(value);
}
std::string text_of(const Real& slot, const SettingRow&, const PlanSettings& settings) {
  const auto value = slot.get(settings);
  return value ? number_text(*value) : std::string();
}
std::string text_of(const WholeList& slot, const SettingRow&, const PlanSettings& settings) {
  return list_text(settings.*slot.member);
}
std::string text_of(const RealList& slot, const SettingRow&, const PlanSettings& settings) {
  return list_text(settings.*slot.member);
}

std::string text_of(const Text& slot, const SettingRow&, const PlanSettings& settings) {
  return settings.*slot.member;
}

const TableRow* find_row(std::string_view name) {
  const auto found = std::find_if(kTable.begin(), kTable.end(),
                                  [name](const TableRow& entry) { return entry.row.name == name; });
  return found == kTable.end() ? nullptr : &*found;
}

}  // namespace

std::span<const SettingRow> setting_rows() {
  static const std::vector<SettingRow> rows = [] {
    std::vector<SettingRow> all;
    for (const TableRow& entry : kTable) all.push_back(entry.row);
    return all;
  }();
  return rows;
}

Result<void> set_setting(PlanSettings& settings, std::string_view name, std::string_view value) {
  const TableRow* entry = find_row(name);
  if (entry == nullptr) {
    const auto nearest = std::min_element(
        kTable.begin(), kTable.end(), [name](const TableRow& a, const TableRow& b) {
          return edits_between(a.row.name, name) < edits_between(b.row.name, name);
        });
    return Error{
        ErrorCode::bad_configuration,
        fmt::format("unknown setting \"{}\"; did you mean \"{}\"?", name, nearest->row.name)};
  }
  const bool parsed = std::visit(
      [&](const auto& slot) { return parse_into(slot, entry->row, settings, value); }, entry->slot);
  if (!parsed) return refuse(entry->row, value);
  return {};
}

SettingType setting_type(std::string_view name) {
  const TableRow* entry = find_row(name);
  return entry == nullptr ? SettingType::word : static_cast<SettingType>(entry->slot.index());
}

bool makes_parts(const PlanSettings& settings) {
  const OrderRows* const listed = settings.order_rows.get();
  return settings.chunk != 0 || settings.lanes != 0 || (listed != nullptr && listed->has_parts);
}

std::string get_setting(const PlanSettings& settings, std::string_view name) {
  const TableRow* entry = find_row(name);
  if (entry == nullptr) return {};
  return std::visit([&](const auto& slot) { return text_of(slot, entry->row, settings); },
                    entry->slot);
}

}  // namespace batchwright
