#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/formats.h"
#include "storage/ingest/files/array.h"
#include "storage/ingest/ingest_source.h"

namespace batchwright {

/// The source of a sequence's arrays.
class ArrayReader {
 public:
  virtual ~ArrayReader() = default;
  /// The fields' names, of the primary one first.
  virtual std::vector<std::string> names() const = 0;
  /// The arrays of a sequence, in the order of the names. Threads: any number at once.
  /// Errors: invalid_argument, naming the place.
  virtual Result<std::vector<Array>> read(const SourceFile& file) const = 0;
  /// The place of field `n`'s array, for a message: a path, and more if needed.
  virtual std::string where(const SourceFile& file, std::size_t n) const = 0;
};

/// Arrays as fields: the first usable sequence sets each one's dtype and shape; another's that
/// differs is an error of that sequence. An array without a dimension is a scalar. One whose first
/// extent is T in all of the first hundred sequences is aligned, otherwise independent.
/// Errors: invalid_argument: no sequence is usable, or an option names no field.
Result<std::unique_ptr<IngestSource>> array_source(std::unique_ptr<const ArrayReader> reader,
                                                   const ArrayOptions& options,
                                                   std::span<const SourceFile> files);

}  // namespace batchwright
