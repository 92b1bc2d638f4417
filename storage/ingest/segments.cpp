#include "storage/ingest/segments.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "storage/ingest/files/table_lines.h"
#include "storage/ingest/files/table_names.h"

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

/// A file of the list, and a channel of it; 0: all.
struct Recording {
  std::size_t file = 0;
  std::uint32_t channel = 0;
};

/// A table while it is read.
class Reader {
 public:
  Reader(const std::filesystem::path& table, std::span<const SourceFile> files, bool by_channel)
      : table_(table), files_(files), by_channel_(by_channel), of_file_(files.size()) {
    for (std::size_t i = 0; i < files.size(); ++i) recordings_.add(files[i].key, i);
  }

  Result<void> take(std::size_t number, std::string_view line) {
    const auto columns = columns_of(line);
    auto part = columns.size() == 4 ? part_of(columns[2], columns[3]) : std::nullopt;
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
    const auto recording = find(columns[1]);
    if (recording) {
      const SourceFile& whole = files_[recording->file];
      part->channel = recording->channel;
      of_file_[recording->file].push_back({std::move(key), whole.path, *part, whole.unusable});
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
  /// As it stands, or otherwise as the name of a file.
  std::optional<std::size_t> find_file(std::string_view name) const {
    const auto file = recordings_.find(name);
    return file ? file : recordings_.find(without_extension(name));
  }

  /// A file, or otherwise a channel of one.
  std::optional<Recording> find(std::string_view name) const {
    if (const auto file = find_file(name)) return Recording{*file};
    const std::size_t mark = name.rfind('#');
    if (!by_channel_ || mark == name.npos) return std::nullopt;
    const auto channel = parse_whole<std::uint32_t>(name.substr(mark + 1)).value_or(0);
    if (channel == 0) return std::nullopt;
    const auto file = find_file(name.substr(0, mark));
    return file ? std::optional(Recording{*file, channel}) : std::nullopt;
  }

  const std::filesystem::path& table_;
  std::span<const SourceFile> files_;
  bool by_channel_;
  PathEnds recordings_;
  std::vector<std::vector<SourceFile>> of_file_;
  std::unordered_set<std::string> keys_;
  std::unordered_set<std::string> unknown_;
  std::string first_unknown_;
};

/// Reads the header of every file that differs from the one before, on any number of threads.
class HeaderReader {
 public:
  explicit HeaderReader(std::span<const SourceFile> files) {
    for (const SourceFile& file : files) {
      if (paths_.empty() || *paths_.back() != file.path) paths_.push_back(&file.path);
    }
    headers_.resize(paths_.size());
  }

  void work() {
    for (std::size_t i = next_++; i < paths_.size(); i = next_++) {
      headers_[i] =
          as_result(ErrorCode::does_not_fit, "", [&] { return read_audio_header(*paths_[i]); });
    }
  }

  /// Of the files in their order, once all work is done.
  const Result<AudioHeader>& next_of(const SourceFile& file) {
    if (*paths_[place_] != file.path) ++place_;
    return *headers_[place_];
  }

 private:
  std::vector<const std::filesystem::path*> paths_;
  std::vector<std::optional<Result<AudioHeader>>> headers_;
  std::atomic<std::size_t> next_ = 0;
  std::size_t place_ = 0;
};

}  // namespace

Result<Segments> read_segments(const std::filesystem::path& table,
                               std::span<const SourceFile> files, bool by_channel) {
  Reader reader(table, files, by_channel);
  auto read = each_line(
      kSegmentsTable, table,
      [&reader](std::size_t number, std::string_view line) { return reader.take(number, line); });
  if (!read) return read.error();
  return std::move(reader).finish();
}

std::vector<SourceFile> by_channels(std::vector<SourceFile> files, unsigned threads) {
  HeaderReader headers(files);
  {
    std::vector<std::optional<std::jthread>> helpers;
    for (unsigned i = 1; i < threads; ++i) {
      helpers.push_back(start_thread(nullptr, [&headers](const auto&) { headers.work(); }));
    }
    headers.work();
  }
  std::vector<SourceFile> channels;
  for (const SourceFile& file : files) {
    const Result<AudioHeader>& header = headers.next_of(file);
    if (file.part.channel > 0) {
      channels.push_back(file);
      continue;
    }
    for (std::uint32_t i = 1; i <= (header ? header->channels : 1); ++i) {
      SourceFile& channel = channels.emplace_back(file);
      channel.key += fmt::format("#{}", i);
      channel.part.channel = i;
      if (!header && channel.unusable.empty()) channel.unusable = header.error().message;
    }
  }
  return channels;
}

SoundFiles::Opened SoundFiles::get(const std::filesystem::path& path) {
  std::shared_ptr<Entry> entry;
  {
    const MutexLock lock(mutex_);
    auto& kept = entries_[path.string()];
    if (!kept) {
      kept = std::make_shared<Entry>();
      order_.push_back(path.string());
    }
    entry = kept;
    if (order_.size() > kMostKept) {
      entries_.erase(order_.front());
      order_.pop_front();
    }
  }
  const MutexLock lock(entry->mutex);
  if (!entry->opened) {
    auto file = SoundFile::open(path);
    if (file) {
      entry->opened.emplace(std::make_shared<const SoundFile>(*std::move(file)));
    } else {
      entry->opened.emplace(file.error());
    }
  }
  return *entry->opened;
}

}  // namespace batchwright
