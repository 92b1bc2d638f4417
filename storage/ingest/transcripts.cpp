#include "storage/ingest/transcripts.h"

#include <fmt/core.h>

#include <array>
#include <optional>
#include <vector>

#include "formats/formats.h"
#include "storage/ingest/file_list.h"
#include "storage/ingest/files/table_lines.h"

namespace batchwright {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTranscriptsTable = "transcripts";
constexpr std::string_view kBlanks = " \t";

Error wrong(const fs::path& path, std::string_view what) {
  return bad_table(kTranscriptsTable, path, what);
}

std::string_view name_of(TranscriptFormat format) {
  constexpr std::array<std::string_view, 5> kNames = {"", "key TAB text", "key blank text",
                                                      "key|text", "key blank text"};
  return kNames[static_cast<std::size_t>(format)];
}

struct Entry {
  std::string_view key;
  std::string_view text;
};

/// The line's two parts; nothing when it is not so divided.
std::optional<Entry> divide(std::string_view line, TranscriptFormat format) {
  const std::string_view dividers = format == TranscriptFormat::tab        ? "\t"
                                    : format == TranscriptFormat::ljspeech ? "|"
                                                                           : kBlanks;
  const std::size_t end = line.find_first_of(dividers);
  // A line of Kaldi's may have a key alone: an empty transcript.
  const bool may_lack_text = dividers == kBlanks;
  if (end == 0 || (end == line.npos && !may_lack_text)) return std::nullopt;
  if (end == line.npos) return Entry{line, ""};
  Entry entry{line.substr(0, end), line.substr(end + 1)};
  if (may_lack_text) {
    const std::size_t begin = entry.text.find_first_not_of(kBlanks);
    entry.text = begin == entry.text.npos ? "" : entry.text.substr(begin);
  }
  if (format == TranscriptFormat::ljspeech) {
    entry.text.remove_prefix(entry.text.rfind('|') + 1);  // npos + 1 is 0
  }
  return entry;
}

/// The format whose divider comes first; a TAB goes before all, since keys may hold the others.
std::optional<TranscriptFormat> detect(std::string_view line) {
  if (line.find('\t') != line.npos) return TranscriptFormat::tab;
  const std::size_t first = line.find_first_of(" |");
  if (first == line.npos) return std::nullopt;
  return line[first] == '|' ? TranscriptFormat::ljspeech : TranscriptFormat::kaldi;
}

Result<void> read_file(const fs::path& path, TranscriptFormat format, Texts& texts) {
  return each_line(
      kTranscriptsTable, path, [&](std::size_t number, std::string_view line) -> Result<void> {
        if (format == TranscriptFormat::detect) {
          const auto found = detect(line);
          if (!found) {
            return wrong(
                path,
                fmt::format("line {} is not key TAB text, key|text or key blank text", number));
          }
          format = *found;
        }
        const auto entry = divide(line, format);
        if (!entry) return wrong(path, fmt::format("line {} is not {}", number, name_of(format)));
        // Either text might be the right one, so neither is taken.
        if (!texts.emplace(entry->key, entry->text).second) {
          return wrong(path, fmt::format("line {}: key \"{}\" was there before", number,
                                         printable(std::string(entry->key))));
        }
        return {};
      });
}

/// The .trans.txt files below a folder.
Result<std::vector<fs::path>> find_tables(const fs::path& folder) {
  constexpr std::array<std::string_view, 1> kText = {".txt"};
  const auto list = find_files(folder, kText);
  if (!list) return list.error();
  std::vector<fs::path> tables;
  for (const SourceFile& file : list->files) {
    if (file.path.filename().string().ends_with(".trans.txt")) tables.push_back(file.path);
  }
  if (tables.empty()) return wrong(folder, "no .trans.txt file below it");
  return tables;
}

std::string_view short_name(std::string_view key) { return key.substr(key.rfind('/') + 1); }

}  // namespace

Result<Texts> read_transcripts(const fs::path& path, TranscriptFormat format) {
  std::vector<fs::path> tables = {path};
  std::error_code ignored;  // what is there is seen when it is opened
  if (fs::is_directory(path, ignored)) {
    if (format != TranscriptFormat::librispeech) {
      return wrong(path, "a folder; allowed: a file, or --transcript-format librispeech");
    }
    auto found = find_tables(path);
    if (!found) return found.error();
    tables = std::move(*found);
  }
  Texts texts;
  for (const fs::path& table : tables) {
    if (auto read = read_file(table, format, texts); !read) return read.error();
  }
  return texts;
}

void ShortNames::add(std::string_view key) { ++counts_[std::string(short_name(key))]; }

Texts::const_iterator ShortNames::find(const Texts& texts, std::string_view key) const {
  const auto exact = texts.find(key);
  if (exact != texts.end()) return exact;
  const std::string_view name = short_name(key);
  const auto count = counts_.find(name);
  // Two files of one short name would silently share a text.
  const bool alone = count != counts_.end() && count->second == 1;
  return alone ? texts.find(name) : texts.end();
}

}  // namespace batchwright
