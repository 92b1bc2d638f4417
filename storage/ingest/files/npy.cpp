#include "storage/ingest/files/npy.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

// A .npy file: "\x93NUMPY", version (major, minor), the header's length (2 bytes little-endian,
// 4 from version 2 on), the header, the elements. The header is a Python dictionary in ASCII
// such as {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }, then spaces, then '\n',
// which other writers leave out. Python 2 wrote u'descr' and (3L, 4L) at times, which NumPy reads,
// too. Source: numpy.lib.format's documentation. Read by hand, as cnpy and its like trust the
// header: these files come from anywhere, so lengths are checked before anything is allocated or
// read.

namespace batchwright {
namespace {

/// Far above the header of any plain array; only structured types, which are refused, have more.
constexpr std::size_t kMaxHeaderBytes = 1 << 16;
/// NumPy's own limit before its version 2 (NPY_MAXDIMS).
constexpr std::size_t kMaxDimensions = 32;

struct Descr {
  std::string_view text;
  Element element;
};
constexpr std::array kDescrs = {
    Descr{"<f8", Element::float64}, Descr{"<f4", Element::float32}, Descr{"<f2", Element::float16},
    Descr{"<i8", Element::int64},   Descr{"<i4", Element::int32},   Descr{"<i2", Element::int16},
    Descr{"|i1", Element::int8},    Descr{"<u8", Element::uint64},  Descr{"<u4", Element::uint32},
    Descr{"<u2", Element::uint16},  Descr{"|u1", Element::uint8}};

Error malformed_header(std::string_view what) {
  return {ErrorCode::invalid_argument, fmt::format("malformed .npy header: {}", what)};
}

/// What an element is in the file.
struct Stored {
  Element element = Element::float32;
  bool swapped = false;  // big-endian
  bool is_bool = false;  // any byte but 0 is true
};

/// NumPy's characters for types of the usual C compilers of 64 bits, which old headers have.
constexpr std::array kCharacters = {
    std::pair{'d', Element::float64}, std::pair{'f', Element::float32},
    std::pair{'e', Element::float16}, std::pair{'l', Element::int64},
    std::pair{'q', Element::int64},   std::pair{'i', Element::int32},
    std::pair{'h', Element::int16},   std::pair{'b', Element::int8},
    std::pair{'L', Element::uint64},  std::pair{'Q', Element::uint64},
    std::pair{'I', Element::uint32},  std::pair{'H', Element::uint16},
    std::pair{'B', Element::uint8}};

/// A type as NumPy reads it: a byte order, and kind and bytes ("f4"), a character ("d") or a name.
std::optional<Stored> stored_of(std::string_view text) {
  Stored stored;
  std::string_view rest = text;
  if (!rest.empty() && std::string_view("<>=|").find(rest[0]) != std::string_view::npos) {
    stored.swapped = rest[0] == '>';
    rest.remove_prefix(1);
  }
  stored.is_bool = rest == "b1" || rest == "?" || rest == "bool";
  if (stored.is_bool) {
    stored.element = Element::uint8;
    return stored;
  }
  for (const Descr& descr : kDescrs) {
    if (rest != descr.text.substr(1) && rest != element_name(descr.element)) continue;
    stored.element = descr.element;
    return stored;
  }
  for (const auto& [character, element] : kCharacters) {
    if (rest.size() != 1 || rest[0] != character) continue;
    stored.element = element;
    return stored;
  }
  return std::nullopt;
}

Result<Stored> element_of(std::string_view text) {
  if (const auto stored = stored_of(text)) return *stored;
  std::string known;
  for (const Descr& descr : kDescrs) {
    known += fmt::format("{} ({}), ", descr.text, element_name(descr.element));
  }
  return Error{ErrorCode::invalid_argument,
               fmt::format("elements are \"{}\"; allowed: {}|b1 (bool), in either byte order",
                           printable(std::string(text)), known)};
}

/// Reads Python literals off the front of a text. Each step takes spaces before it, and leaves
/// the text where it is when it does not match.
class Literals {
 public:
  explicit Literals(std::string_view text) : text_(text) {}

  bool token(std::string_view wanted) {
    skip_spaces();
    if (text_.substr(0, wanted.size()) != wanted) return false;
    text_.remove_prefix(wanted.size());
    return true;
  }

  std::optional<std::string_view> quoted() {
    skip_spaces();
    if (text_.starts_with("u'") || text_.starts_with("u\"")) text_.remove_prefix(1);  // Python 2
    if (text_.empty() || (text_[0] != '\'' && text_[0] != '"')) return std::nullopt;
    const std::size_t end = text_.find(text_[0], 1);
    if (end == text_.npos) return std::nullopt;
    const std::string_view inside = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return inside;
  }

  std::optional<bool> boolean() {
    if (token("True")) return true;
    if (token("False")) return false;
    return std::nullopt;
  }

  /// Python 2 wrote an L behind long ones.
  std::optional<std::uint64_t> number() {
    skip_spaces();
    const auto value = take_whole<std::uint64_t>(text_);
    if (value && text_.starts_with('L')) text_.remove_prefix(1);
    return value;
  }

  /// What stands there, for a message.
  std::string shown() {
    skip_spaces();
    constexpr std::size_t kShown = 40;
    return printable(std::string(text_.substr(0, kShown))) + (text_.size() > kShown ? "..." : "");
  }

  /// (), (3,), (3, 4) and (3, 4,), but not (3), which is no tuple.
  std::optional<std::vector<std::uint64_t>> tuple() {
    std::vector<std::uint64_t> values;
    if (!token("(")) return std::nullopt;
    bool comma = true;
    while (!token(")")) {
      const auto value = comma ? number() : std::nullopt;
      if (!value || values.size() == kMaxDimensions) return std::nullopt;
      values.push_back(*value);
      comma = token(",");
    }
    if (values.size() == 1 && !comma) return std::nullopt;
    return values;
  }

  bool at_end() {
    skip_spaces();
    return text_.empty();
  }

 private:
  void skip_spaces() {
    constexpr std::string_view kSpaces = " \t\r\n\f";
    text_.remove_prefix(std::min(text_.find_first_not_of(kSpaces), text_.size()));
  }
  std::string_view text_;
};

struct Entries {
  std::optional<std::string_view> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::uint64_t>> shape;
};

/// One "name: value".
Result<void> read_entry(Literals& literals, Entries& entries) {
  const std::string found = literals.shown();
  const auto name = literals.quoted();
  if (!name) return malformed_header(fmt::format("found {}; expected the name of an entry", found));
  const std::string shown = printable(std::string(*name));
  if (!literals.token(":")) return malformed_header(fmt::format("no colon after \"{}\"", shown));
  const std::string value = literals.shown();
  const auto taken = [&](bool is_first, bool is_read, std::string_view allowed) -> Result<void> {
    if (!is_first) return malformed_header(fmt::format("{} comes twice", shown));
    if (is_read) return {};
    return malformed_header(fmt::format("{} is {}; allowed: {}", shown, value, allowed));
  };
  if (*name == "descr") {
    const bool is_first = !entries.descr;
    entries.descr = literals.quoted();
    return taken(is_first, entries.descr.has_value(),
                 "one plain type, such as '<f4' (no structured types)");
  }
  if (*name == "fortran_order") {
    const bool is_first = !entries.fortran_order;
    entries.fortran_order = literals.boolean();
    return taken(is_first, entries.fortran_order.has_value(), "True, False");
  }
  if (*name == "shape") {
    const bool is_first = !entries.shape;
    entries.shape = literals.tuple();
    return taken(is_first, entries.shape.has_value(),
                 "up to 32 whole numbers, as in (3, 4), (3,) and ()");
  }
  return malformed_header(
      fmt::format("an entry \"{}\"; allowed: descr, fortran_order, shape", shown));
}

Result<Entries> read_dictionary(std::string_view text) {
  Literals literals(text);
  Entries entries;
  if (!literals.token("{")) return malformed_header("no dictionary");
  bool comma = true;
  while (!literals.token("}")) {
    if (!comma)
      return malformed_header(fmt::format("found {}; expected , or }}", literals.shown()));
    if (auto read = read_entry(literals, entries); !read) return read.error();
    comma = literals.token(",");
  }
  if (!literals.at_end()) return malformed_header("something follows the dictionary");
  for (const auto& [name, there] : {std::pair("descr", entries.descr.has_value()),
                                    std::pair("fortran_order", entries.fortran_order.has_value()),
                                    std::pair("shape", entries.shape.has_value())}) {
    if (!there) return malformed_header(fmt::format("{} is missing", name));
  }
  return entries;
}

/// Where the dictionary lies in the file.
struct Extent {
  std::size_t begin = 0;
  std::size_t size = 0;
};

Result<Extent> dictionary_extent(std::span<const std::byte> bytes) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  if (bytes.size() < 10 || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) {
    return malformed_header("it does not begin with \\x93NUMPY, version and length");
  }
  const auto byte_at = [&bytes](std::size_t i) { return std::to_integer<std::size_t>(bytes[i]); };
  const std::size_t major = byte_at(6);
  if (major < 1 || major > 3) {
    return malformed_header(fmt::format("version {}; allowed: 1 to 3", major));
  }
  Extent extent{10, byte_at(8) | byte_at(9) << 8};
  if (major > 1) {
    if (bytes.size() < 12) return malformed_header("cut off");
    extent = {12, extent.size | byte_at(10) << 16 | byte_at(11) << 24};
  }
  if (extent.size > kMaxHeaderBytes)
    return malformed_header(fmt::format("{} bytes long", extent.size));
  // Subtracted, not added: the header's own number is not to be trusted.
  if (extent.size > bytes.size() - extent.begin) return malformed_header("cut off");
  return extent;
}

/// Elements of the other byte order.
void swap_bytes(Array& array) {
  const auto size = static_cast<std::ptrdiff_t>(element_bytes(array.element));
  for (auto at = array.bytes.begin(); at != array.bytes.end(); at += size) {
    std::reverse(at, at + size);
  }
}

Error in_file(const std::filesystem::path& path, std::string_view why) {
  return {ErrorCode::invalid_argument, fmt::format("{}: {}", path.string(), why)};
}

/// All bytes of a file. Errors: invalid_argument, without the file's name.
Result<std::vector<std::byte>> read_all(const std::filesystem::path& path) {
  std::error_code failed;
  const std::uintmax_t size = std::filesystem::file_size(path, failed);
  if (failed) return Error{ErrorCode::invalid_argument, failed.message()};
  if (size == 0) return Error{ErrorCode::invalid_argument, "the file is empty"};
  std::vector<std::byte> bytes(size);
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (!file.good()) return Error{ErrorCode::invalid_argument, "cannot be read"};
  return bytes;
}

}  // namespace

Result<NpyHeader> parse_npy_header(std::span<const std::byte> bytes) {
  const auto extent = dictionary_extent(bytes);
  if (!extent) return extent.error();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + extent->begin,
                              extent->size);
  const auto entries = read_dictionary(text);
  if (!entries) return entries.error();
  const auto element = element_of(*entries->descr);
  if (!element) return element.error();
  // In one dimension both orders are the same.
  const bool fortran_order = *entries->fortran_order && entries->shape->size() > 1;
  return NpyHeader{element->element, fortran_order,   *entries->shape, extent->begin + extent->size,
                   element->swapped, element->is_bool};
}

Result<Array> parse_npy(std::span<const std::byte> bytes) {
  const auto header = parse_npy_header(bytes);
  if (!header) return header.error();
  const auto promised = array_bytes(header->element, header->shape);
  const auto elements = bytes.subspan(header->header_bytes);
  // Exactly as many: a file that was cut, or written twice, is no sequence.
  if (!promised || *promised != elements.size()) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("its header promises {} bytes of elements, the file has {}",
                    promised ? std::to_string(*promised) : "more than 2^64", elements.size())};
  }
  Array array{header->element, header->shape, {elements.begin(), elements.end()}};
  if (header->swapped) swap_bytes(array);
  if (header->is_bool) {
    for (std::byte& each : array.bytes) each = std::byte{each != std::byte{0}};
  }
  if (header->fortran_order) array.bytes = from_fortran_order(array);
  return array;
}

Result<Array> read_npy(const std::filesystem::path& path) {
  const auto bytes = read_all(path);
  if (!bytes) return in_file(path, bytes.error().message);
  auto array = parse_npy(*bytes);
  if (!array) return in_file(path, array.error().message);
  return array;
}

}  // namespace batchwright
