#include "storage/ingest/files/kaldi_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <string_view>

#include "formats/formats.h"
#include "storage/ingest/files/kaldi_value.h"
#include "storage/ingest/files/table_lines.h"

namespace batchwright {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFirstBytes = 4096;   // read of a value before its size is known
constexpr std::size_t kMostKeyRead = 4096;  // far above the bytes of any key

Error bad_kaldi(std::string what) { return {ErrorCode::invalid_argument, std::move(what)}; }

std::string_view text_of_bytes(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A file that is read at places, which no thread shares.
class File {
 public:
  explicit File(const fs::path& path) : file_(path, std::ios::binary) {
    std::error_code failed;
    const auto size = fs::file_size(path, failed);
    if (!failed) bytes_ = size;
    if (!file_ || failed) reason_ = failed ? failed.message() : "cannot be opened";
  }
  const std::string& reason() const { return reason_; }  ///< Empty: it is open.
  std::uint64_t bytes() const { return bytes_; }

  /// Fills `buffer` up to `size` bytes from `offset` on, or to the end of the file.
  void read(std::uint64_t offset, std::uint64_t size, std::vector<std::byte>& buffer) {
    const std::size_t there = buffer.size();
    const auto wanted = std::min(size, bytes_ - std::min(offset, bytes_));
    if (wanted <= there) return;
    buffer.resize(wanted);
    // An earlier read that met the end has left its mark, and seekg() would fail.
    file_.clear();
    file_.seekg(static_cast<std::streamoff>(offset + there));
    file_.read(reinterpret_cast<char*>(buffer.data() + there),
               static_cast<std::streamsize>(wanted - there));
    buffer.resize(there + static_cast<std::size_t>(file_.gcount()));
  }

 private:
  std::ifstream file_;
  std::uint64_t bytes_ = 0;
  std::string reason_;
};

/// How many bytes the value at `offset` takes, all of which the file has. Text tells its size at
/// its end only, which is looked for in parts that double.
Result<std::uint64_t> value_size(File& file, std::uint64_t offset, std::vector<std::byte>& bytes) {
  if (offset >= file.bytes()) {
    return bad_kaldi(fmt::format("offset {} of a file of {} bytes", offset, file.bytes()));
  }
  const std::uint64_t there = file.bytes() - offset;
  for (std::uint64_t wanted = kFirstBytes;; wanted *= 2) {
    file.read(offset, wanted, bytes);
    const auto size = kaldi_value_bytes(bytes);
    if (!size) return size.error();
    // kaldi_value_bytes() asks for one byte more where it cannot tell the size yet.
    const bool asks_for_more = *size == bytes.size() + 1;
    if (*size > there || (asks_for_more && bytes.size() < wanted)) {
      return bad_kaldi(
          fmt::format("cut off: it takes {} bytes or more, the file has {}", *size, there));
    }
    if (!asks_for_more) return *size;
  }
}

Result<std::vector<std::byte>> value_bytes(File& file, std::uint64_t offset) {
  std::vector<std::byte> bytes;
  const auto size = value_size(file, offset, bytes);
  if (!size) return size.error();
  file.read(offset, *size, bytes);
  if (bytes.size() < *size) return bad_kaldi("cannot be read");
  // What was read ahead belongs to the next value.
  bytes.resize(*size);
  return bytes;
}

/// Pairs of integers begin like a vector of half as many, and a "\4" is where the next key would.
bool more_integers_follow(File& file, std::uint64_t end, const Array& array) {
  if (array.element != Element::int32 || array.shape[0] == 0) return false;
  std::vector<std::byte> next;
  file.read(end, 1, next);
  return !next.empty() && next[0] == std::byte{4};
}

Result<Array> read_value(const KaldiPlace& place) {
  File file(place.archive);
  if (!file.reason().empty()) return bad_kaldi(file.reason());
  const auto bytes = value_bytes(file, place.offset);
  if (!bytes) return bytes.error();
  auto array = parse_kaldi_value(*bytes);
  if (!array) return array;
  if (more_integers_follow(file, place.offset + bytes->size(), *array)) {
    return bad_kaldi("pairs or lists of integers; allowed: vectors of single ones");
  }
  if (!place.range) return array;
  return cut_range(*array, *place.range);
}

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

/// "path", "path:offset", either with "[range]" behind it.
Result<KaldiPlace> parse_place(std::string_view text) {
  // Running what a data file says would let it do anything as this user.
  if (text.ends_with('|') || text.starts_with('|')) {
    return bad_kaldi(
        "a command (ends in |), which is never run; copy what it prints to an archive");
  }
  KaldiPlace place;
  const std::size_t bracket = text.ends_with(']') ? text.rfind('[') : text.npos;
  if (bracket != text.npos) {
    const std::string_view range = text.substr(bracket + 1, text.size() - bracket - 2);
    place.range = parse_kaldi_range(range);
    if (!place.range) {
      return bad_kaldi(fmt::format("range [{}]; allowed: [first:last] or [rows,columns]", range));
    }
    text = text.substr(0, bracket);
  }
  // The last one: a path may hold colons, and then has no number behind it.
  const std::size_t colon = text.rfind(':');
  if (colon != text.npos) {
    if (const auto offset = parse_whole<std::uint64_t>(text.substr(colon + 1))) {
      place.offset = *offset;
      text = text.substr(0, colon);
    }
  }
  if (text.ends_with(".gz")) return bad_kaldi("compressed by gzip; expand it first");
  if (text.empty()) return bad_kaldi("no path");
  place.archive = text;
  return place;
}

}  // namespace

Result<void> KaldiTable::add(std::string key, KaldiPlace place, const std::string& where) {
  if (!places_.emplace(key, std::move(place)).second) {
    return bad_kaldi(
        fmt::format("{}: {}: key \"{}\" was there before", path_.string(), where, printable(key)));
  }
  keys_.push_back(std::move(key));
  return {};
}

Result<void> KaldiTable::read_scp() {
  std::unordered_map<std::string, fs::path> found;  // paths as they stand, and where they lead
  return each_line("table", path_, [&](std::size_t number, std::string_view line) -> Result<void> {
    const std::string where = fmt::format("line {}", number);
    const std::string_view text = trimmed(line);
    if (text.empty()) return {};
    const std::size_t blank = text.find_first_of(" \t");
    if (blank == text.npos) {
      return bad_kaldi(fmt::format("{}: {} is not key, blank, place", path_.string(), where));
    }
    auto place = parse_place(trimmed(text.substr(blank)));
    if (!place) {
      return bad_kaldi(fmt::format("{}: {} is {}", path_.string(), where, place.error().message));
    }
    const auto [at, is_new] = found.try_emplace(place->archive.string(), place->archive);
    std::error_code ignored;  // a file that is not there is named when it is read
    // Kaldi's paths are relative to where its programs run; here the table's folder is tried next.
    if (is_new && at->second.is_relative() && !fs::exists(at->second, ignored)) {
      at->second = path_.parent_path() / at->second;
    }
    place->archive = at->second;
    return add(std::string(text.substr(0, blank)), std::move(*place), where);
  });
}

/// Keys and values follow each other: key, one blank, value.
Result<void> KaldiTable::read_archive() {
  File file(path_);
  std::vector<std::byte> start;
  file.read(0, kByteOrderMark.size(), start);
  std::uint64_t at = text_of_bytes(start) == kByteOrderMark ? start.size() : 0;
  while (at < file.bytes()) {
    start.clear();
    file.read(at, kMostKeyRead, start);
    const std::string_view text = text_of_bytes(start);
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    // Blanks alone, as between values of a text archive: on to the next part.
    if (first == text.npos) {
      at += text.size();
      if (text.empty()) break;  // the file has become shorter
      continue;
    }
    const std::size_t blank = text.find_first_of(" \t\n", first);
    const std::string where = fmt::format("byte {}", at + first);
    if (blank == text.npos || text[blank] == '\n') {
      return bad_kaldi(fmt::format("{}: {} is not key, blank, value", path_.string(), where));
    }
    std::string key(text.substr(first, blank - first));
    const std::uint64_t begin = at + blank + 1;
    start.clear();
    const auto size = value_size(file, begin, start);
    if (!size) {
      return bad_kaldi(fmt::format("{}: {}: key \"{}\": {}", path_.string(), where, printable(key),
                                   size.error().message));
    }
    if (auto added = add(std::move(key), {path_, begin, {}}, where); !added) return added;
    at = begin + *size;
  }
  return {};
}

Result<KaldiTable> KaldiTable::read(const std::string& name) {
  KaldiTable table;
  const bool is_scp = name.starts_with("scp:");
  const bool named_archive = name.starts_with("ark:");
  table.path_ = is_scp || named_archive ? name.substr(4) : name;
  if (table.path_.extension() == ".gz") {
    return bad_kaldi(fmt::format("{}: compressed by gzip; expand it first", table.path_.string()));
  }
  std::error_code failed;
  if (!fs::is_regular_file(table.path_, failed)) {
    return bad_kaldi(
        fmt::format("{}: {}", table.path_.string(), failed ? failed.message() : "not a file"));
  }
  const bool archive = named_archive || (!is_scp && table.path_.extension() == ".ark");
  auto read = archive ? table.read_archive() : table.read_scp();
  if (!read) return read.error();
  if (table.keys_.empty()) return bad_kaldi(fmt::format("{}: no key in it", table.path_.string()));
  return table;
}

Result<Array> KaldiTable::value(const std::string& key) const {
  const auto found = places_.find(key);
  if (found == places_.end()) {
    return bad_kaldi(fmt::format("{}: no key \"{}\"", path_.string(), printable(key)));
  }
  auto array = read_value(found->second);
  if (array) return array;
  const KaldiPlace& place = found->second;
  return bad_kaldi(fmt::format("{}: key \"{}\": {}:{}: {}", path_.string(), printable(key),
                               place.archive.string(), place.offset, array.error().message));
}

}  // namespace batchwright
