#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/formats.h"
#include "storage/ingest/file_list.h"
#include "storage/ingest/labels.h"
#include "storage/ingest/transcripts.h"

namespace batchwright {

/// A scalar int32 field whose labels are the texts of a table.
struct LabelTable {
  std::string field;
  std::filesystem::path table;       ///< Lines key blank label, such as Kaldi's utt2spk.
  std::optional<Texts> labels = {};  ///< By key, if they are known: then `table` only names them.
};

/// The annotations of a file, beside its content.
struct AnnotationOptions {
  /// A scalar int32 field `label`: the first folder below the source folder that the file lies
  /// in, with all such folders' names as categories.
  bool label_from_folder = false;
  /// A table of texts, which an independent uint8 field `text` holds as they stand there (UTF-8,
  /// not terminated). Empty: no such field.
  std::filesystem::path transcripts;
  TranscriptFormat transcript_format = TranscriptFormat::detect;
  TextColumns transcript_columns;
  std::optional<Texts> texts = {};  ///< In place of `transcripts`.
  std::vector<LabelTable> label_tables;
  /// Fields whose labels are fixed. Of others, the dataset's come first, as they are there, then
  /// new ones in the order of their bytes.
  std::vector<LabelSet> label_sets;
  /// Fields of the dataset that the files go into; none when it is not there.
  std::vector<FieldSpec> present;
};

/// The fields that follow the source's, and their values by key.
/// Immutable. Threads: any. Values point into this object, and it into the files' keys.
class Annotations {
 public:
  /// Errors: invalid_argument, naming table and line, or the set of labels that goes with no field.
  static Result<Annotations> create(const AnnotationOptions& options,
                                    std::span<const SourceFile> files);

  std::vector<FieldSpec> fields() const;

  /// Appends the values for a sequence, in the order of fields().
  /// Errors: invalid_argument: no folder to take the label from, no such label, no transcript.
  Result<void> append_values(const SourceFile& file, std::vector<FieldValue>& values) const;

  /// "3 keys of transcripts t.tsv are of no file, such as \"x\""; empty when all are of a file.
  const std::vector<std::string>& unmatched() const { return unmatched_; }
  /// The columns of the transcripts, where that is not plain; or empty.
  const std::string& note() const { return note_; }

 private:
  struct Column {
    std::string field;
    std::string table;  // empty: by folder
    FileTexts names;
    Labels labels;
  };

  Result<void> add_column(const AnnotationOptions& options, const LabelTable& wanted,
                          std::span<const SourceFile> files);
  std::optional<std::string_view> name_in(const Column& column, std::string_view key) const;
  void tell_unmatched(const std::string& table, const FileTexts& texts);

  std::vector<Column> columns_;
  bool has_text_ = false;
  FileTexts texts_;
  std::string note_;
  std::vector<std::string> unmatched_;
};

}  // namespace batchwright
