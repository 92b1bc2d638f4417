#include "storage/ingest/files/npy.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

// A .npy file: "\x93NUMPY", version (major, minor), the header's length (2 bytes little-endian,
// 4 from version 2 on), the header, the elements. The header is a Python dictionary in ASCII
// such as {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }, then spaces, then '\n'.
// Source: numpy.lib.format's documentation. Read by hand, as cnpy and its like trust the header:
// these files come from anywhere, so lengths are checked before anything is allocated or read.

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

Result<Element> element_of(std::string_view text) {
  std::string known;
  for (const Descr& descr : kDescrs) {
    if (descr.text == text) return descr.element;
    known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", descr.text,
                         element_name(descr.element));
  }
  return Error{ErrorCode::invalid_argument,
               fmt::format("elements are \"{}\"; allowed: {}", text, known)};
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

  std::optional<std::uint64_t> number() {
    skip_spaces();
    return take_whole<std::uint64_t>(text_);
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
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n')) text_.remove_prefix(1);
  }
  std::string_view text_;
};

struct Entries {
  std::optional<std::string_view> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::uint64_t>> shape;
};

/// One "name: value". False when the name is unknown, comes twice, or its value is no such thing.
bool read_entry(Literals& literals, Entries& entries) {
  const auto name = literals.quoted();
  if (!name || !literals.token(":")) return false;
  if (*name == "descr" && !entries.descr) {
    return (entries.descr = literals.quoted()).has_value();
  }
  if (*name == "fortran_order" && !entries.fortran_order) {
    return (entries.fortran_order = literals.boolean()).has_value();
  }
  if (*name == "shape" && !entries.shape) {
    return (entries.shape = literals.tuple()).has_value();
  }
  return false;
}

Result<Entries> read_dictionary(std::string_view text) {
  Literals literals(text);
  Entries entries;
  if (!literals.token("{")) return malformed_header("no dictionary");
  bool comma = true;
  while (!literals.token("}")) {
    if (!comma || !read_entry(literals, entries))
      return malformed_header("an entry is not readable");
    comma = literals.token(",");
  }
  if (!literals.at_end()) return malformed_header("something follows the dictionary");
  if (!entries.descr || !entries.fortran_order || !entries.shape) {
    return malformed_header("descr, fortran_order or shape is missing");
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
  if (text.empty() || text.back() != '\n') return malformed_header("no newline at its end");
  const auto entries = read_dictionary(text);
  if (!entries) return entries.error();
  const auto element = element_of(*entries->descr);
  if (!element) return element.error();
  // In one dimension both orders are the same.
  const bool fortran_order = *entries->fortran_order && entries->shape->size() > 1;
  return NpyHeader{*element, fortran_order, *entries->shape, extent->begin + extent->size};
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
