#include "storage/ingest/segments.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "storage/ingest/files/table_lines.h"

namespace batchwright {
namespace {

constexpr std::string_view kSegmentsTable = "segments";

/// The columns of a line: between TABs where it has one, since names may hold blanks.
std::vector<std::string_view> columns_of(std::string_view line) {
  if (line.find('\t') != line.npos) return split(line, '\t');
  std::vector<std::string_view> columns = split(line, ' ');
  std::erase(columns, std::string_view());
  return columns;
}

/// Begin and end; nothing where they are no times, or nothing lies between them.
std::optional<SoundPart> part_of(std::string_view begin_text, std::string_view end_text) {
  constexpr double kToTheEnd = -1;  // Kaldi's
  const auto begin = parse_real(begin_text);
  auto end = parse_real(end_text);
  if (!begin || !end) return std::nullopt;
  if (*end == kToTheEnd) end = SoundPart().end;
  // Written so that NaN is refused, too.
  if (!(*begin >= 0 && *begin < *end && std::isfinite(*begin))) return std::nullopt;
  return SoundPart{*begin, *end};
}

/// The files by the names that a table may have for them.
class Recordings {
 public:
  explicit Recordings(std::span<const SourceFile> files) {
    for (std::size_t i = 0; i < files.size(); ++i) {
      const std::string_view key = files[i].key;
      by_key_.emplace(key, i);
      const auto [known, is_new] = by_name_.emplace(key.substr(key.rfind('/') + 1), i);
      // Two files of one short name: it stands for neither.
      if (!is_new) known->second = kSeveral;
    }
  }

  std::optional<std::size_t> find(std::string_view name) const {
    if (const auto key = by_key_.find(name); key != by_key_.end()) return key->second;
    const auto short_name = by_name_.find(name);
    if (short_name == by_name_.end() || short_name->second == kSeveral) return std::nullopt;
    return short_name->second;
  }

 private:
  static constexpr std::size_t kSeveral = std::numeric_limits<std::size_t>::max();
  std::unordered_map<std::string_view, std::size_t> by_key_;
  std::unordered_map<std::string_view, std::size_t> by_name_;
};

/// A table while it is read.
class Reader {
 public:
  Reader(const std::filesystem::path& table, std::span<const SourceFile> files)
      : table_(table), files_(files), recordings_(files), of_file_(files.size()) {}

  Result<void> take(std::size_t number, std::string_view line) {
    const auto columns = columns_of(line);
    const auto part = columns.size() == 4 ? part_of(columns[2], columns[3]) : std::nullopt;
    if (!part) {
      return bad_table(kSegmentsTable, table_,
                       fmt::format("line {} is not key, recording, begin and end in seconds, with "
                                   "0 <= begin < end, or an end of -1",
                                   number));
    }
    std::string key(columns[0]);
    if (!keys_.insert(key).second) {
      return bad_table(
          kSegmentsTable, table_,
          fmt::format("line {}: key \"{}\" was there before", number, printable(std::move(key))));
    }
    const auto file = recordings_.find(columns[1]);
    if (file) {
      of_file_[*file].push_back({std::move(key), files_[*file].path, *part});
    } else if (unknown_.emplace(columns[1]).second && first_unknown_.empty()) {
      first_unknown_ = columns[1];
    }
    return {};
  }

  Result<Segments> finish() && {
    Segments made;
    for (auto& segments : of_file_) {
      if (segments.empty()) ++made.files_without;
      std::move(segments.begin(), segments.end(), std::back_inserter(made.files));
    }
    if (!unknown_.empty()) {
      made.unmatched = fmt::format(
          "{} recordings of segments {} are no file, or several of one "
          "name, such as \"{}\"",
          unknown_.size(), table_.string(), printable(first_unknown_));
    }
    if (!made.files.empty()) return made;
    return made.unmatched.empty() ? bad_table(kSegmentsTable, table_, "no segment in it")
                                  : Error{ErrorCode::invalid_argument, made.unmatched};
  }

 private:
  const std::filesystem::path& table_;
  std::span<const SourceFile> files_;
  Recordings recordings_;
  std::vector<std::vector<SourceFile>> of_file_;
  std::unordered_set<std::string> keys_;
  std::unordered_set<std::string> unknown_;
  std::string first_unknown_;
};

}  // namespace

Result<Segments> read_segments(const std::filesystem::path& table,
                               std::span<const SourceFile> files) {
  Reader reader(table, files);
  auto read = each_line(
      kSegmentsTable, table,
      [&reader](std::size_t number, std::string_view line) { return reader.take(number, line); });
  if (!read) return read.error();
  return std::move(reader).finish();
}

}  // namespace batchwright
