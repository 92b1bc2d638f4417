#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/formats.h"
#include "storage/file_list.h"

namespace batchwright {

/// What is known of a file beside its content.
struct AnnotationOptions {
  /// A scalar int32 field `label`: the first folder below the source folder that the file lies
  /// in, with all such folders' names, sorted, as categories.
  bool label_from_folder = false;
  /// A table of lines key TAB text; an independent uint8 field `text` holds the text as it
  /// stands there (UTF-8, not terminated). Empty: no such field.
  std::filesystem::path transcripts;
};

/// The fields that follow the primary one, and their values by key.
/// Immutable. Threads: any. Values point into this object.
class Annotations {
 public:
  /// Errors: invalid_argument, naming table and line: not readable, no TAB, a key twice.
  static Result<Annotations> create(const AnnotationOptions& options,
                                    std::span<const SourceFile> files);

  std::vector<FieldSpec> fields() const;

  /// Appends the values for a sequence, in the order of fields().
  /// Errors: invalid_argument: no folder to take the label from, or no transcript.
  Result<void> append_values(std::string_view key, std::vector<FieldValue>& values) const;

 private:
  bool has_labels_ = false;
  bool has_text_ = false;
  std::map<std::string, std::int32_t, std::less<>> labels_;
  std::map<std::string, std::string, std::less<>> texts_;
};

}  // namespace batchwright
