#pragma once

#include <filesystem>
#include <vector>

#include "storage/dataset/c_abi/batchwright/writer.h"
#include "storage/dataset/writer.h"

namespace batchwright {

/// The request of a bw_writer_open.
struct WriterRequest {
  Schema schema;
  WriterLimits limits;
  Opening opening = Opening::either;
};

/// The caller's options, whose header may be older or newer than this library. Without fields the
/// schema is that of the dataset at `path`.
/// Errors: invalid_argument, unsupported (a newer option is set), not_found (neither fields nor a
/// dataset), and those of opening the dataset to read.
Result<WriterRequest> to_writer_request(const std::filesystem::path& path,
                                        const bw_writer_options* options);

/// A schema's fields as the C ABI shows them.
class FieldTable {
 public:
  /// The fields point into the schema, which must stay where it is.
  explicit FieldTable(const Schema& schema);

  std::size_t size() const { return fields_.size(); }
  const bw_field* at(std::size_t i) const { return i < fields_.size() ? &fields_[i] : nullptr; }

 private:
  std::vector<std::vector<const char*>> categories_;
  std::vector<bw_field> fields_;
};

}  // namespace batchwright
