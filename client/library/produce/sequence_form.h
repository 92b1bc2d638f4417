#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/library/batchwright/client.h"
#include "formats/formats.h"

namespace batchwright {

/// What a live feed takes: the fields of its sequences that are pushed, and their limits. It checks
/// what a program pushes before anything is sent, and lays it out as the wire wants it
/// (formats/PROTOCOL.md). Threads: immutable.
class SequenceForm {
 public:
  explicit SequenceForm(const bw_feed& feed);

  std::size_t fields() const { return schema_.fields.size(); }
  const Schema& schema() const { return schema_; }

  /// Reads a sequence's values into `values`, one for each field, and returns its bytes as it is
  /// laid out. Its numbers are looked at when they are copied.
  /// Errors: schema_mismatch, does_not_fit, invalid_argument, which name key and field.
  Result<std::uint64_t> check(const bw_sequence& sequence, std::span<FieldValue> values) const;
  /// The places of the values of a sequence with these lengths, one for each field.
  /// Errors: schema_mismatch, does_not_fit.
  Result<std::vector<ValuePlace>> places(std::span<const std::uint32_t> lengths) const;
  /// Errors: invalid_argument.
  static Result<void> check_origin(const bw_origin& origin);
  /// Whether a sequence names a row where the feed joins one, and no other. Errors:
  /// invalid_argument.
  Result<void> check_row(const bw_of* of) const;

  /// Lays checked values out in `room`, which has the bytes that check() said.
  /// Errors: schema_mismatch for NaN or infinity, unless the feed allows them.
  Result<void> write(std::string_view key, std::span<const FieldValue> values,
                     std::span<std::byte> room) const;
  /// The same for values that lie there already.
  Result<void> check_written(std::string_view key, std::span<const ValuePlace> places,
                             std::span<const std::byte> room) const;

 private:
  Result<void> check_limits(std::string_view key, std::uint64_t length, std::uint64_t bytes) const;
  Error not_finite(std::string_view key, std::size_t field, std::size_t place) const;

  Schema schema_;
  std::size_t primary_ = 0;
  std::uint32_t max_length_;  ///< 0: no limit.
  std::uint64_t max_bytes_;   ///< 0: no limit.
  bool allow_nan_;
  std::string joins_;  ///< The feed whose rows are joined; empty: none are.
};

}  // namespace batchwright
