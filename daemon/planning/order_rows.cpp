#include "daemon/planning/order_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace batchwright {
namespace {

/// Frames of a sequence, and of what lies in it.
constexpr std::uint32_t kLastFrame = std::numeric_limits<std::uint32_t>::max() / 2;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr const char* kRowForm =
    "KEY or #ORDINAL, then START COUNT for a part, then *WEIGHT, with one space between; or - for "
    "no sequence";

/// What can be read on any terminal: other bytes as \xNN.
std::string shown(std::string_view text) {
  constexpr std::size_t kShown = 60;
  std::string out;
  for (const char c : text.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte >= 0x20 && byte < 0x7F;
    out += plain ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  return out + (text.size() > kShown ? "..." : "");
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

/// Reads the lines of a file one after the other.
class OrderParser {
 public:
  OrderParser(std::string file, const OrderNames& names) : names_(names) {
    order_.file = std::move(file);
    order_.line_starts.push_back(0);
  }

  Result<void> add_line(std::string_view line) {
    ++line_;
    if (line.ends_with('\r')) line.remove_suffix(1);  // Windows ends lines by CR and LF
    if (line.size() > kMostOrderLineBytes) {
      return bad(fmt::format("found a line of {} bytes; allowed: up to {}", line.size(),
                             kMostOrderLineBytes));
    }
    if (!is_ascii(line) && utf8(line) != line) {
      return bad("found bytes that are not UTF-8; allowed: UTF-8, and #ORDINAL for such a key");
    }
    // An ordinal follows its # at once, and no key that is written out begins with one.
    if (line == "#" || line.starts_with("# ")) return {};
    row_ = 0;
    for (const std::string_view row : split(line, '\t')) {
      ++row_;
      if (auto added = add_row(row); !added) return added;
    }
    order_.line_starts.push_back(static_cast<std::uint32_t>(order_.rows.size()));
    order_.line_numbers.push_back(static_cast<std::uint32_t>(line_));
    return {};
  }

  Result<OrderRows> finish() {
    if (order_.rows.size() == order_.rows_without) {
      return Error{ErrorCode::bad_configuration,
                   fmt::format("order file {}: found no row with a sequence; allowed: one row or "
                               "more, {}",
                               order_.file, kRowForm)};
    }
    count_sequences();
    note_hashes(order_);
    return std::move(order_);
  }

 private:
  Error bad(const std::string& what) const {
    return {ErrorCode::bad_configuration,
            fmt::format("order file {}, line {}: {}", order_.file, line_, what)};
  }
  Error bad_row(std::string_view found, std::string_view allowed) const {
    return bad(fmt::format("row {}: found {}; allowed: {}", row_, found, allowed));
  }

  Result<void> add_row(std::string_view text) {
    if (order_.rows.size() == std::numeric_limits<std::uint32_t>::max()) {
      return bad("found more than 4294967295 rows; allowed: up to so many");
    }
    if (text.empty()) return bad_row("nothing", kRowForm);
    if (text == "-") {
      ++order_.rows_without;
      order_.has_parts = true;
      order_.rows.emplace_back();
      return add_weight({});
    }
    auto words = split(text, ' ');
    std::string_view weight;
    if (words.size() > 1 && words.back().starts_with('*')) {
      weight = words.back();
      words.pop_back();
    }
    if ((words.size() != 1 && words.size() != 3) || words.front().empty()) {
      return bad_row(fmt::format("\"{}\"", shown(text)), kRowForm);
    }
    const auto ordinal = ordinal_of(words.front());
    if (!ordinal) return ordinal.error();
    ListedRow row{*ordinal, 0, 0};
    if (words.size() == 3) {
      if (auto part = read_part(words[1], words[2], row); !part) return part;
    }
    order_.rows.push_back(row);
    return add_weight(weight);
  }

  Result<std::uint32_t> ordinal_of(std::string_view name) const {
    const auto allowed = [this](const char* or_else) {
      return fmt::format("{}#0 to #{}", or_else, names_.sequences - 1);
    };
    if (name.starts_with('#')) {
      const auto ordinal = parse_whole<std::uint64_t>(name.substr(1));
      if (!ordinal || *ordinal >= names_.sequences) {
        return bad_row(fmt::format("ordinal \"{}\"", shown(name)), allowed(""));
      }
      return static_cast<std::uint32_t>(*ordinal);
    }
    if (!names_.find) {
      return bad_row(fmt::format("key \"{}\" for sequences without keys", shown(name)),
                     allowed("ordinals, "));
    }
    const auto found = names_.find(name);
    if (!found) return found.error();
    if (!*found) {
      return bad_row(fmt::format("key \"{}\", which no sequence has", shown(name)),
                     allowed("a key of the dataset, or an ordinal, "));
    }
    return static_cast<std::uint32_t>(**found);
  }

  Result<void> read_part(std::string_view start, std::string_view count, ListedRow& row) {
    const auto first = parse_whole<std::uint32_t>(start);
    if (!first || *first >= kLastFrame) {
      return bad_row(fmt::format("start \"{}\"", shown(start)), "frames from 0 to 2147483646");
    }
    const auto frames = parse_whole<std::uint32_t>(count);
    if (!frames || *frames == 0 || *frames > kLastFrame - *first) {
      return bad_row(fmt::format("count \"{}\"", shown(count)),
                     fmt::format("frames from 1 to {}", kLastFrame - *first));
    }
    row.start = *first;
    row.frames = *frames;
    order_.has_parts = true;
    return {};
  }

  /// Of the row that was added last; empty: it has none of its own.
  Result<void> add_weight(std::string_view text) {
    float weight = 1.0F;
    if (!text.empty()) {
      const auto value = parse_real(text.substr(1));
      weight = value ? static_cast<float>(*value) : std::numeric_limits<float>::infinity();
      if (!std::isfinite(weight)) {
        return bad_row(fmt::format("weight \"{}\"", shown(text)), "* and a finite number");
      }
      order_.weights.resize(order_.rows.size() - 1, 1.0F);
      order_.own_weights.resize(order_.rows.size() - 1, false);
    } else if (order_.weights.empty()) {
      return {};  // lists of weights begin with the first one that is given
    }
    order_.weights.push_back(weight + 0.0F);  // -0 is 0
    order_.own_weights.push_back(!text.empty());
    return {};
  }

  void count_sequences() {
    std::vector<bool> seen(names_.sequences);
    std::vector<std::uint64_t> parts;
    parts.reserve(order_.rows.size());
    for (const ListedRow& row : order_.rows) {
      if (!row.has_sequence()) continue;
      order_.sequences += seen[row.ordinal] ? 0 : 1;
      seen[row.ordinal] = true;
      parts.push_back(std::uint64_t{row.ordinal} << 32 | row.start);
    }
    std::sort(parts.begin(), parts.end());
    order_.repeats = std::adjacent_find(parts.begin(), parts.end()) != parts.end();
  }

  const OrderNames& names_;
  OrderRows order_;
  std::size_t line_ = 0, row_ = 0;
};

}  // namespace

std::string OrderRows::place_of(std::size_t row) const {
  const auto after = std::upper_bound(line_starts.begin(), line_starts.end(), row);
  const auto line = static_cast<std::size_t>(after - line_starts.begin()) - 1;
  return fmt::format("order file {}, line {}, row {}", file, line_numbers[line],
                     row - line_starts[line] + 1);
}

Result<OrderRows> parse_order(std::string_view text, std::string file, const OrderNames& names) {
  OrderParser parser(std::move(file), names);
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (auto added = parser.add_line(text.substr(0, end)); !added) return added.error();
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return parser.finish();
}

void note_hashes(OrderRows& order) {
  std::uint64_t hash = kFnv1aBasis;
  const auto add = [&hash](std::uint32_t value) {
    const char bytes[] = {static_cast<char>(value), static_cast<char>(value >> 8),
                          static_cast<char>(value >> 16), static_cast<char>(value >> 24)};
    hash = fnv1a(hash, {bytes, sizeof(bytes)});
  };
  for (std::size_t i = 0; i < order.rows.size(); ++i) {
    add(order.rows[i].ordinal);
    add(order.rows[i].start);
    add(order.rows[i].frames);
    add(std::bit_cast<std::uint32_t>(order.weight(i)));
  }
  order.row_hash = hash;
  for (const std::uint32_t start : order.line_starts) add(start);
  order.line_hash = hash;
}

}  // namespace batchwright
