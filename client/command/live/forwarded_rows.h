#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "client/library/batchwright/client.hpp"

namespace batchwright {

/// The rows of a batch as sequences of a live feed, whose fields are found by their names.
/// Threads: one at a time.
class ForwardedRows {
 public:
  /// Throws client::Error (BW_SCHEMA_MISMATCH), where the feed lacks a field of the live feed, or
  /// has another one of its name.
  ForwardedRows(const bw_feed& from, const bw_feed& to);

  /// Takes the rows of `batch`, which must live until clear(). Throws client::Error
  /// (BW_UNSUPPORTED), where a row has no frames.
  void take(const client::Batch& batch);
  std::size_t size() const { return rows_; }
  /// Valid until the next take().
  bw_sequence sequence(std::size_t row) const;
  float weight(std::size_t row) const;
  std::uint64_t epoch() const { return batch_->header().epoch; }
  std::uint64_t bytes(std::size_t row) const;  ///< Of all of its values.

 private:
  void take_field(const client::Batch& batch, std::size_t field);

  std::vector<std::string> fields_;
  std::size_t rows_ = 0;
  std::vector<bw_value> values_;                  ///< Row after row.
  std::vector<std::vector<std::byte>> gathered_;  ///< A field of a time-major batch, row after row.
  const client::Batch* batch_ = nullptr;
};

}  // namespace batchwright
