#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "formats/formats.h"
#include "storage/ingest/file_list.h"
#include "storage/ingest/files/table_names.h"

namespace batchwright {

/// The format of a line in a table of texts.
enum class TranscriptFormat : std::uint8_t {
  detect,       ///< Of a folder librispeech; of a file the divider that all lines have: TAB,
                ///< otherwise |, otherwise blanks.
  tab,          ///< key TAB text
  kaldi,        ///< key blank text; the text may be missing
  ljspeech,     ///< key|text, or key|text|normalised text, of which the last one is taken
  librispeech,  ///< Lines as in kaldi; a folder stands for all .trans.txt files below it.
};

/// The columns of a table between TABs or |. Each is a number from 1, or a name in the table's
/// first line. Empty: as the format has it.
struct TextColumns {
  std::string key;
  std::string text;
};

using Texts = std::map<std::string, std::string, std::less<>>;

struct TextTable {
  Texts texts;
  /// How many columns there were and which were taken, where that is not plain; or empty.
  std::string note;
};

/// Reads a table of texts by key, line by line as each_line() does. Blanks and TABs at the end of a
/// text are cut. How lines are divided does not depend on their order. Without named columns, a
/// first line that has columns `path` and `sentence` (Common Voice's) names them.
/// Threads: any.
/// Errors: invalid_argument, naming file and line: not readable, not so divided, no such column, a
/// key twice.
Result<TextTable> read_transcripts(const std::filesystem::path& path, TranscriptFormat format,
                                   const TextColumns& columns = {});

/// The entries of a table that belong to files. An entry is named as the file's key, or as the file
/// itself ("a.wav"); the path of either may begin further down than the other's, as long as no
/// other entry and no other file fits: corpora give files short names. What fits several stands for
/// none. One that fits a channel ("call#2") goes before one that fits its file ("call"), which all
/// channels without one of their own share.
///
/// Lifetime: the files outlive it, and stay where they are. Threads: any for find().
class FileTexts {
 public:
  FileTexts() = default;  ///< Of an empty table.
  FileTexts(Texts texts, std::span<const SourceFile> files);

  /// The text for a file's key; nullptr where there is none.
  const std::string* find(std::string_view key) const;
  /// A key of the table that may be the file's in another of Unicode's normal forms.
  std::optional<std::string_view> other_form(const SourceFile& file) const;
  /// Entries that belong to no file, and the first of them.
  std::size_t entries() const { return texts_ ? texts_->size() : 0; }
  std::size_t unmatched() const { return unmatched_; }
  std::string_view first_unmatched() const { return first_unmatched_; }

 private:
  std::unique_ptr<const Texts> texts_;  // what the members below point into
  std::unordered_map<std::string_view, const std::string*> by_file_;
  OtherForms other_forms_;
  std::size_t unmatched_ = 0;
  std::string_view first_unmatched_;
};

}  // namespace batchwright
