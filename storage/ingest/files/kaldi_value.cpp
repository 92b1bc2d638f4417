#include "storage/ingest/files/kaldi_value.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

// Numbers are little-endian. A binary value begins with "\0B"; "\4" stands before each int32 of a
// size.
//   "FM " "DM "        \4 rows \4 columns, then rows x columns floats or doubles, row after row
//   "FV " "DV "        \4 elements, then as many
//   "CM "              min f32, range f32, rows i32, columns i32; for each column four u16, its
//                      0, 25, 75 and 100 % points; then columns x rows u8, column after column
//   "CM2 " "CM3 "      the same 16 bytes; then rows x columns u16 or u8, row after row
//   "\4"               elements i32, then as many times "\4" and an i32: a vector of integers
// Text is "[ 1 2 ]" for a vector of floats, " [\n 1 2\n 3 4 ]" or "[ 1 2\n 3 4 ]" for a matrix, and
// a line of numbers without brackets for a vector of integers. Source: Kaldi's documentation of its
// I/O mechanisms, and files that its readers accept.

namespace batchwright {
namespace {

constexpr std::size_t kCompressedHeader = 16;
constexpr std::size_t kColumnPoints = 8;  // bytes of a CM column's four u16

Error malformed(std::string_view what) {
  return {ErrorCode::invalid_argument, fmt::format("not a Kaldi matrix or vector: {}", what)};
}

enum class Form : std::uint8_t { matrix, vector, integers, cm, cm2, cm3 };

/// What the first bytes of a binary value say.
struct Header {
  Form form = Form::matrix;
  bool is_double = false;
  std::uint64_t rows = 0;
  std::uint64_t columns = 1;
  std::size_t begin = 0;  // where the numbers begin; of compressed ones: where min stands
};

template <class T>
T number_at(std::span<const std::byte> bytes, std::size_t at) {
  T number;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

struct Token {
  std::string_view text;
  Form form;
  bool is_double;
  std::size_t sizes;  // bytes of the sizes that follow
};
constexpr std::array kTokens = {Token{"FM ", Form::matrix, false, 10},
                                Token{"DM ", Form::matrix, true, 10},
                                Token{"FV ", Form::vector, false, 5},
                                Token{"DV ", Form::vector, true, 5},
                                Token{"CM ", Form::cm, false, kCompressedHeader},
                                Token{"CM2 ", Form::cm2, false, kCompressedHeader},
                                Token{"CM3 ", Form::cm3, false, kCompressedHeader},
                                Token{"\4", Form::integers, false, 4}};

bool is_compressed(Form form) { return form >= Form::cm; }

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_binary(std::string_view text) { return text.starts_with(std::string_view("\0B", 2)); }

Result<const Token*> token_of(std::string_view text) {
  for (const Token& token : kTokens) {
    if (text.starts_with(token.text)) return &token;
  }
  std::string shown;
  for (const char c : text.substr(0, 3)) shown += c > 0x20 && c < 0x7F ? c : '?';
  return malformed(
      fmt::format("type \"{}\"; allowed: FM, DM, FV, DV, CM, CM2, CM3, vectors of int32", shown));
}

/// One size, behind its "\4" unless it is of a compressed matrix.
Result<std::uint64_t> size_at(std::span<const std::byte> bytes, std::size_t at, bool marked) {
  if (marked && bytes[at] != std::byte{4}) return malformed("a size is not marked as 4 bytes");
  const auto size = number_at<std::int32_t>(bytes, at + (marked ? 1 : 0));
  if (size < 0) return malformed(fmt::format("a size of {}", size));
  return static_cast<std::uint64_t>(size);
}

/// Nothing: there are too few bytes to tell.
Result<std::optional<Header>> read_header(std::span<const std::byte> bytes) {
  const std::string_view text = text_of(bytes.subspan(2));
  if (text.size() < 4) return std::optional<Header>();
  const auto token = token_of(text);
  if (!token) return token.error();
  const std::size_t sizes = 2 + (*token)->text.size();
  if (bytes.size() < sizes + (*token)->sizes) return std::optional<Header>();
  Header header{(*token)->form, (*token)->is_double, 0, 1, sizes + (*token)->sizes};
  const bool compressed = is_compressed(header.form);
  const bool has_columns = compressed || header.form == Form::matrix;
  const std::size_t rows_at = sizes + (compressed ? 8 : 0);
  const auto rows = size_at(bytes, rows_at, !compressed && header.form != Form::integers);
  if (!rows) return rows.error();
  header.rows = *rows;
  if (has_columns) {
    const auto columns = size_at(bytes, rows_at + (compressed ? 4 : 5), !compressed);
    if (!columns) return columns.error();
    header.columns = *columns;
  }
  if (compressed) header.begin = sizes;
  return std::optional<Header>(header);
}

/// Bytes of the value. Errors: invalid_argument: its sizes are those of no file.
Result<std::uint64_t> bytes_of(const Header& header) {
  const bool is_plain = header.form == Form::matrix || header.form == Form::vector;
  const std::uint64_t size = is_plain                        ? (header.is_double ? 8 : 4)
                             : header.form == Form::integers ? 5
                             : header.form == Form::cm2      ? 2
                                                             : 1;
  std::uint64_t before = header.begin;
  if (is_compressed(header.form)) before += kCompressedHeader;
  if (header.form == Form::cm) before += kColumnPoints * header.columns;
  // Divided, not multiplied: both sizes are the file's own claim. Rows without columns would be a
  // claim that no byte of the file bears out; Kaldi's empty matrix is 0 x 0.
  const std::uint64_t most = (std::numeric_limits<std::uint64_t>::max() - before) / size;
  if (header.columns == 0 ? header.rows > 0 : header.rows > most / header.columns) {
    return malformed(fmt::format("sizes of {} x {}", header.rows, header.columns));
  }
  return before + size * header.rows * header.columns;
}

/// Values that stand for the steps of a compressed matrix. `range` is that of the whole matrix.
struct Scale {
  float least;
  float range;
};

float value_at(const Scale& scale, float step, float share) { return scale.least + step * share; }

/// The four points of a column of CM, between which its bytes are spread.
struct Points {
  std::array<float, 4> at;

  float value(std::uint8_t step) const {
    const auto n = static_cast<float>(step);
    // Kaldi has 64 steps up to the 25 % point, 128 up to the 75 % point and 63 above.
    if (step <= 64) return at[0] + (at[1] - at[0]) * n * (1 / 64.0F);
    if (step <= 192) return at[1] + (at[2] - at[1]) * (n - 64) * (1 / 128.0F);
    return at[2] + (at[3] - at[2]) * (n - 192) * (1 / 63.0F);
  }
};

Points points_of(std::span<const std::byte> bytes, std::size_t at, const Scale& scale) {
  Points points{};
  const float share = scale.range * (1 / 65535.0F);
  for (std::size_t i = 0; i < 4; ++i) {
    points.at[i] =
        value_at(scale, static_cast<float>(number_at<std::uint16_t>(bytes, at + 2 * i)), share);
  }
  return points;
}

std::vector<float> expand_columns(const Header& header, std::span<const std::byte> bytes,
                                  const Scale& scale) {
  std::vector<float> values(header.rows * header.columns);
  const std::size_t points_begin = header.begin + kCompressedHeader;
  const std::size_t steps_begin = points_begin + kColumnPoints * header.columns;
  for (std::size_t c = 0; c < header.columns; ++c) {
    const Points points = points_of(bytes, points_begin + kColumnPoints * c, scale);
    for (std::size_t r = 0; r < header.rows; ++r) {
      const auto step = number_at<std::uint8_t>(bytes, steps_begin + c * header.rows + r);
      values[r * header.columns + c] = points.value(step);
    }
  }
  return values;
}

template <class Step>
std::vector<float> expand_rows(const Header& header, std::span<const std::byte> bytes,
                               const Scale& scale) {
  std::vector<float> values(header.rows * header.columns);
  const double steps = std::numeric_limits<Step>::max();
  // One rounding, after the division.
  const auto share = static_cast<float>(scale.range * (1.0 / steps));
  const std::size_t begin = header.begin + kCompressedHeader;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto step = number_at<Step>(bytes, begin + i * sizeof(Step));
    values[i] = value_at(scale, static_cast<float>(step), share);
  }
  return values;
}

template <class T>
std::vector<std::byte> bytes_from(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

Array expand(const Header& header, std::span<const std::byte> bytes) {
  const Scale scale{number_at<float>(bytes, header.begin),
                    number_at<float>(bytes, header.begin + 4)};
  const auto values = header.form == Form::cm    ? expand_columns(header, bytes, scale)
                      : header.form == Form::cm2 ? expand_rows<std::uint16_t>(header, bytes, scale)
                                                 : expand_rows<std::uint8_t>(header, bytes, scale);
  return {Element::float32, {header.rows, header.columns}, bytes_from(values)};
}

Result<Array> read_integers(const Header& header, std::span<const std::byte> bytes) {
  std::vector<std::int32_t> values(header.rows);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t at = header.begin + 5 * i;
    if (bytes[at] != std::byte{4}) return malformed("an integer is not marked as 4 bytes");
    values[i] = number_at<std::int32_t>(bytes, at + 1);
  }
  return Array{Element::int32, {header.rows}, bytes_from(values)};
}

Result<Array> parse_binary(std::span<const std::byte> bytes) {
  const auto header = read_header(bytes);
  if (!header) return header.error();
  if (!*header) return malformed("cut off");
  const auto size = bytes_of(**header);
  if (!size) return size.error();
  if (*size != bytes.size()) return malformed("cut off");
  if (is_compressed((*header)->form)) return expand(**header, bytes);
  if ((*header)->form == Form::integers) return read_integers(**header, bytes);
  const auto numbers = bytes.subspan((*header)->begin);
  Array array{(*header)->is_double ? Element::float64 : Element::float32,
              {(*header)->rows},
              {numbers.begin(), numbers.end()}};
  if ((*header)->form == Form::matrix) array.shape.push_back((*header)->columns);
  return array;
}

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string_view skip_blanks(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  return text;
}

/// The next word of a line, or an empty one at its end.
std::string_view take_word(std::string_view& line) {
  line = skip_blanks(line);
  std::size_t size = 0;
  while (size < line.size() && !is_blank(line[size])) ++size;
  const std::string_view word = line.substr(0, size);
  line.remove_prefix(size);
  return word;
}

/// A number, all of the word. Nothing when it is none or T does not hold it.
template <class T>
std::optional<T> parse_number(std::string_view word) {
  // Through a double, since a float's from_chars refuses what rounds to zero.
  std::conditional_t<std::is_floating_point_v<T>, double, T> value{};
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != word.data() + word.size()) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isfinite(value) && std::fabs(value) > std::numeric_limits<T>::max()) {
      return std::nullopt;
    }
  }
  return static_cast<T>(value);
}

/// Appends the numbers of a line.
template <class T>
Result<void> take_numbers(std::string_view line, std::vector<T>& values) {
  for (auto word = take_word(line); !word.empty(); word = take_word(line)) {
    const auto value = parse_number<T>(word);
    if (!value) {
      std::string shown(word.substr(0, 20));
      std::replace_if(
          shown.begin(), shown.end(), [](char c) { return c < 0x20 || c > 0x7E; }, '?');
      return malformed(fmt::format("\"{}\" is not a {}", shown,
                                   std::is_integral_v<T> ? "32-bit integer" : "float"));
    }
    values.push_back(*value);
  }
  return {};
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

/// The values between the brackets: a vector where they are in one line, otherwise a matrix, whose
/// rows may begin in the line of "[".
Result<Array> parse_brackets(std::string_view text) {
  const bool is_vector = text.find('\n') == text.npos;
  std::vector<float> values;
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  while (!text.empty()) {
    const std::size_t before = values.size();
    if (auto taken = take_numbers(take_line(text), values); !taken) return taken.error();
    const std::uint64_t here = values.size() - before;
    if (here == 0) continue;
    if (rows > 0 && here != columns) {
      return malformed(fmt::format("row {} has {} columns, not {}", rows, here, columns));
    }
    columns = here;
    ++rows;
  }
  if (is_vector || rows == 0) return Array{Element::float32, {columns}, bytes_from(values)};
  return Array{Element::float32, {rows, columns}, bytes_from(values)};
}

Result<Array> parse_text(std::string_view text) {
  const std::string_view inside = skip_blanks(text);
  if (inside.starts_with('[')) {
    const std::size_t end = inside.find(']');
    if (end == inside.npos) return malformed("no ] at its end");
    return parse_brackets(inside.substr(1, end - 1));
  }
  std::vector<std::int32_t> values;
  if (auto taken = take_numbers(take_line(text), values); !taken) return taken.error();
  const std::uint64_t count = values.size();
  return Array{Element::int32, {count}, bytes_from(values)};
}

/// Up to "]", or to the end of the line where there are no brackets: only its newline shows that
/// no number is missing.
std::uint64_t text_bytes(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  const bool brackets = first != text.npos && text[first] == '[';
  const std::size_t end = text.find(brackets ? ']' : '\n');
  return end == text.npos ? text.size() + 1 : end + 1;
}

}  // namespace

Result<std::uint64_t> kaldi_value_bytes(std::span<const std::byte> start) {
  if (start.empty() || (start.size() == 1 && start[0] == std::byte{0})) return start.size() + 1;
  if (!is_binary(text_of(start))) return text_bytes(text_of(start));
  const auto header = read_header(start);
  if (!header) return header.error();
  // The shortest value with a size has 7 bytes, so this never asks for more than there may be.
  if (!*header) return start.size() + 1;
  return bytes_of(**header);
}

Result<Array> parse_kaldi_value(std::span<const std::byte> bytes) {
  return is_binary(text_of(bytes)) ? parse_binary(bytes) : parse_text(text_of(bytes));
}

}  // namespace batchwright
