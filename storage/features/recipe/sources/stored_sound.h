#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "storage/dataset/dataset.h"
#include "storage/features/sound/sound.h"

namespace batchwright {

/// Where the sequences of a dataset have their sound, as `batchwright ingest audio --store` puts it
/// there: T counts samples, and a field without content tells the rate by its length.
class StoredSound {
 public:
  /// Empty for a dataset without sound.
  static std::optional<StoredSound> of(const Schema& schema);

  /// Whether a sequence's sound is the bytes of a file, to be decoded.
  bool is_encoded() const { return encoded_.has_value(); }
  /// Errors: unsupported: encoded, in a build without decoders.
  Result<void> check_decodable() const;
  /// Of samples that are stored as they are: int16 or float32.
  DType dtype() const { return dtype_; }
  /// Whether the field has sound, or tells of it: it is nothing that a row needs.
  bool owns(std::size_t field) const;
  /// The field that has the sound: the primary one, or that of the files' bytes.
  std::size_t payload_field() const { return encoded_.value_or(primary_); }
  /// The field whose length is the rate, in Hz.
  std::size_t rate_field() const { return rate_; }

  /// Samples [first, first + samples.size()) of a sequence of `length` samples; all of encoded
  /// sound, which is decoded from its begin. `values` are the record's fields, which may lie in a
  /// map; `bytes` grows to what is read of them.
  /// Errors: corrupt_record (does not decode, another length or rate, NaN or infinity);
  /// store_unavailable (the map cannot be read).
  Result<void> read(std::span<const FieldValue> values, std::uint64_t first,
                    std::span<float> samples, std::vector<std::byte>& bytes) const;

 private:
  StoredSound() = default;

  std::size_t primary_ = 0;
  std::size_t rate_ = 0;
  std::optional<std::size_t> encoded_;
  DType dtype_ = DType::none;
  ChannelChoice channel_ = ChannelChoice::only;
};

}  // namespace batchwright
