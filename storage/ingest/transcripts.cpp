#include "storage/ingest/transcripts.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_set>
#include <vector>

#include "formats/formats.h"
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

struct Line {
  std::size_t number = 0;
  std::string text;
};

struct Entry {
  std::string_view key;
  std::string_view text;
};

std::string_view trimmed_end(std::string_view text) {
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);  // npos + 1 is 0
}

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

/// The format that all lines have; whatever their order, the same. Keys may hold blanks where all
/// lines have a TAB, or all a | that comes before the blanks in one of them at least.
/// Errors: the number of the first line, where none is divided.
Result<TranscriptFormat> detect(const fs::path& path, const std::vector<Line>& lines) {
  std::size_t tabs = 0;
  std::size_t bars = 0;
  bool tab_inside = false;  // not only at the end, where it is no text's
  bool bar_first = false;
  bool divided = false;
  for (const auto& [number, line] : lines) {
    const std::size_t first = line.find_first_of(" \t|");
    if (first == line.npos) continue;
    divided = true;
    if (line.find('\t') != line.npos) ++tabs;
    tab_inside = tab_inside || trimmed_end(line).find('\t') != line.npos;
    if (line.find('|') != line.npos) ++bars;
    bar_first = bar_first || line[first] == '|';
  }
  if (tabs == lines.size() && tab_inside) return TranscriptFormat::tab;
  if (bars == lines.size() && bar_first) return TranscriptFormat::ljspeech;
  if (divided) return TranscriptFormat::kaldi;
  return wrong(path, fmt::format("line {} is not key TAB text, key|text or key blank text",
                                 lines.empty() ? 1 : lines.front().number));
}

/// The columns of a table, by place from 0, and the names in its first line, if it has them.
struct Chosen {
  char divider = '\t';
  std::size_t key = 0;
  std::size_t text = 0;
  bool named = false;  // the first line has the names
};

/// Whether the first line has the names that Common Voice gives its columns.
bool has_known_names(const std::vector<std::string_view>& names) {
  const auto has = [&names](std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return has("path") && has("sentence");
}

/// The columns that the caller has named, or Common Voice's; nothing where the format decides.
Result<std::optional<Chosen>> choose(const fs::path& path, const std::vector<Line>& lines,
                                     TranscriptFormat format, TextColumns columns) {
  const bool asked = !columns.key.empty() || !columns.text.empty();
  if (lines.empty()) return std::optional<Chosen>();
  Chosen chosen;
  if (format == TranscriptFormat::ljspeech) chosen.divider = '|';
  const auto names = split(lines.front().text, chosen.divider);
  if (!asked) {
    if (format != TranscriptFormat::tab || !has_known_names(names)) {
      return std::optional<Chosen>();
    }
    columns = {"path", "sentence"};
  }
  if (format != TranscriptFormat::tab && format != TranscriptFormat::ljspeech) {
    return wrong(path, "columns were named, but not all lines have a TAB, or a |, between them");
  }
  const auto place = [&](const std::string& column, std::size_t otherwise,
                         std::size_t& into) -> Result<void> {
    if (column.empty()) {
      into = otherwise;
      return {};
    }
    if (const auto number = parse_whole<std::uint16_t>(column); number && *number > 0) {
      into = *number - 1U;
      return {};
    }
    const auto found = std::find(names.begin(), names.end(), column);
    if (found == names.end()) {
      return wrong(path, fmt::format("no column \"{}\" in line {}, which has {}", printable(column),
                                     lines.front().number,
                                     printable(fmt::format("{}", fmt::join(names, ", ")))));
    }
    chosen.named = true;
    into = static_cast<std::size_t>(found - names.begin());
    return {};
  };
  if (auto placed = place(columns.key, 0, chosen.key); !placed) return placed.error();
  if (auto placed = place(columns.text, chosen.key + 1, chosen.text); !placed) {
    return placed.error();
  }
  return std::optional(chosen);
}

/// One file's lines, and what becomes of them.
class TranscriptReader {
 public:
  TranscriptReader(const fs::path& path, TextTable& table) : path_(path), table_(table) {}

  Result<void> read(TranscriptFormat format, const TextColumns& columns) {
    auto read = each_line(kTranscriptsTable, path_,
                          [this](std::size_t number, std::string_view line) -> Result<void> {
                            lines_.push_back({number, std::string(line)});
                            return {};
                          });
    if (!read || lines_.empty()) return read;
    if (format == TranscriptFormat::detect) {
      const auto found = detect(path_, lines_);
      if (!found) return found.error();
      format = *found;
    }
    const auto chosen = choose(path_, lines_, format, columns);
    if (!chosen) return chosen.error();
    return *chosen ? take_columns(**chosen) : take_lines(format);
  }

 private:
  Result<void> add(const Line& line, const Entry& entry) {
    // Either text might be the right one, so neither is taken.
    if (table_.texts.emplace(entry.key, trimmed_end(entry.text)).second) return {};
    return wrong(path_, fmt::format("line {}: key \"{}\" was there before", line.number,
                                    printable(std::string(entry.key))));
  }

  Result<void> take_lines(TranscriptFormat format) {
    const char divider = format == TranscriptFormat::ljspeech ? '|' : '\t';
    std::size_t fewest = 2;
    std::size_t most = 2;
    for (const Line& line : lines_) {
      const auto entry = divide(line.text, format);
      if (!entry) {
        return wrong(path_, fmt::format("line {} is not {}", line.number, name_of(format)));
      }
      if (auto added = add(line, *entry); !added) return added;
      const auto columns =
          static_cast<std::size_t>(std::count(line.text.begin(), line.text.end(), divider) + 1);
      fewest = &line == &lines_.front() ? columns : std::min(fewest, columns);
      most = std::max(most, columns);
    }
    const bool has_columns = format == TranscriptFormat::tab || divider == '|';
    if (!has_columns || most < 3) return {};
    table_.note = fmt::format(
        "{} {}: {} columns; column 1 is the key, {}", kTranscriptsTable, path_.string(),
        fewest == most ? fmt::format("{}", most) : fmt::format("{} to {}", fewest, most),
        divider == '|' ? "the last one the text" : "all others together are the text");
    return {};
  }

  Result<void> take_columns(const Chosen& chosen) {
    const auto names = split(lines_.front().text, chosen.divider);
    const std::size_t needed = std::max(chosen.key, chosen.text) + 1;
    for (std::size_t i = chosen.named ? 1 : 0; i < lines_.size(); ++i) {
      const auto columns = split(lines_[i].text, chosen.divider);
      if (columns.size() < needed || columns[chosen.key].empty()) {
        return wrong(
            path_, fmt::format("line {} has {} columns; key and text are columns {} and "
                               "{}, and a key is not empty",
                               lines_[i].number, columns.size(), chosen.key + 1, chosen.text + 1));
      }
      auto added = add(lines_[i], {columns[chosen.key], columns[chosen.text]});
      if (!added) return added;
    }
    const auto shown = [&](std::size_t column) {
      return chosen.named
                 ? fmt::format("{} ({})", column + 1, printable(std::string(names[column])))
                 : fmt::format("{}", column + 1);
    };
    table_.note =
        fmt::format("{} {}: {} columns; column {} is the key, {} the text", kTranscriptsTable,
                    path_.string(), names.size(), shown(chosen.key), shown(chosen.text));
    return {};
  }

  const fs::path& path_;
  TextTable& table_;
  std::vector<Line> lines_;
};

/// The .trans.txt files below a folder.
Result<std::vector<fs::path>> find_tables(const fs::path& folder) {
  constexpr std::array<std::string_view, 1> kText = {".txt"};
  const auto list = find_files(folder, kText);
  if (!list) return list.error();
  std::vector<fs::path> tables;
  for (const SourceFile& file : list->files) {
    if (!file.path.filename().string().ends_with(".trans.txt")) continue;
    if (!file.unusable.empty()) return wrong(file.path, file.unusable);
    tables.push_back(file.path);
  }
  if (tables.empty())
    return wrong(
        folder, "a folder with no .trans.txt file below it; allowed: one that has them, or a file");
  return tables;
}

std::string_view last_part(std::string_view key) { return key.substr(key.rfind('/') + 1); }

/// Entries of a table and files by the ends of their paths.
class NearNames {
 public:
  NearNames(const Texts& texts, std::span<const SourceFile> files) {
    for (const auto& entry : texts) {
      ends_of_entries_.add(without_extension(entry.first), entries_.size());
      entries_.push_back(&entry);
    }
    std::string_view before;
    for (const SourceFile& file : files) {
      ends_of_files_.add(file.key, 0);
      // One file of several channels, which stand together, is one.
      const std::string_view all_channels = key_of_all_channels(file);
      if (all_channels != file.key && all_channels != before) ends_of_files_.add(all_channels, 0);
      before = all_channels;
    }
  }

  /// nullptr where there is none, or several.
  const Texts::value_type* entry_of(std::string_view key) const {
    const auto id = ends_of_entries_.find(key);
    if (!id) return nullptr;
    const std::string_view name = without_extension(entries_[*id]->first);
    // Two files that one entry fits would silently share a text.
    return name == key || ends_of_files_.count(name) == 1 ? entries_[*id] : nullptr;
  }

 private:
  PathEnds ends_of_entries_;
  PathEnds ends_of_files_;
  std::vector<const Texts::value_type*> entries_;
};

}  // namespace

Result<TextTable> read_transcripts(const fs::path& path, TranscriptFormat format,
                                   const TextColumns& columns) {
  std::vector<fs::path> tables = {path};
  std::error_code ignored;  // what is there is seen when it is opened
  if (fs::is_directory(path, ignored)) {
    if (format != TranscriptFormat::detect && format != TranscriptFormat::librispeech) {
      return wrong(path, "a folder; allowed: a file, or --transcript-format librispeech");
    }
    auto found = find_tables(path);
    if (!found) return found.error();
    tables = std::move(*found);
    format = TranscriptFormat::librispeech;
  }
  TextTable table;
  for (const fs::path& each : tables) {
    if (auto read = TranscriptReader(each, table).read(format, columns); !read) return read.error();
  }
  return table;
}

FileTexts::FileTexts(Texts table, std::span<const SourceFile> files)
    : texts_(std::make_unique<const Texts>(std::move(table))) {
  const Texts& texts = *texts_;
  std::unordered_set<std::string_view> used;
  const auto take = [&](const SourceFile& file, const Texts::value_type& entry) {
    by_file_.emplace(file.key, &entry.second);
    used.insert(entry.first);
  };
  std::vector<const SourceFile*> without;  // files whose key is no key of the table
  for (const SourceFile& file : files) {
    const auto exact = texts.find(file.key);
    if (exact == texts.end()) {
      without.push_back(&file);
    } else {
      take(file, *exact);
    }
  }
  if (!without.empty()) {
    for (const auto& entry : texts) other_forms_.add(last_part(without_extension(entry.first)));
    const NearNames near(texts, files);
    for (const SourceFile* file : without) {
      const Texts::value_type* entry = near.entry_of(file->key);
      const std::string_view all_channels = key_of_all_channels(*file);
      if (entry == nullptr && all_channels != file->key) {
        const auto exact = texts.find(all_channels);
        entry = exact == texts.end() ? near.entry_of(all_channels) : &*exact;
      }
      if (entry != nullptr) take(*file, *entry);
    }
  }
  unmatched_ = texts.size() - used.size();
  for (const auto& entry : texts) {
    if (unmatched_ == 0 || !first_unmatched_.empty()) break;
    if (!used.contains(entry.first)) first_unmatched_ = entry.first;
  }
}

const std::string* FileTexts::find(std::string_view key) const {
  const auto found = by_file_.find(key);
  return found == by_file_.end() ? nullptr : found->second;
}

std::optional<std::string_view> FileTexts::other_form(const SourceFile& file) const {
  const auto form = other_forms_.find(last_part(file.key));
  return form ? form : other_forms_.find(last_part(key_of_all_channels(file)));
}

}  // namespace batchwright
