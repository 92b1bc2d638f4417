#include "storage/features/recipe/draw_keys.h"

#include <algorithm>
#include <array>
#include <string>

#include "storage/features/recipe/sources/stored_sound.h"

namespace batchwright {
namespace {

/// As it lies in the fingerprint of files: the lowest byte first.
std::string bytes_of_crc(std::uint32_t crc) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(crc >> shift & 0xFF);
  return bytes;
}

}  // namespace

Result<std::uint64_t> shard_identity(const Snapshot& of, Ordinal first) {
  const auto place = of.place(first);
  const auto record = place ? of.record(first, *place) : of.record(first);
  if (!record) return record.error();
  std::vector<FieldValue> values(of.schema().fields.size());
  if (auto read = fields_from_map(*record, values); !read) return read.error();
  std::string key(record->key().size(), ' ');
  auto copied = copy_from_map(std::as_writable_bytes(std::span(key)),
                              std::as_bytes(std::span(record->key())));
  if (!copied) return copied.error();
  const std::size_t primary = of.schema().primary();
  const auto sound = StoredSound::of(of.schema());
  const auto payload = values[sound ? sound->payload_field() : primary].bytes;
  std::uint32_t crc = 0;
  bool whole = true;
  const bool readable = guarded([&] {
    crc = crc32c(payload);
    // Whether the feed verifies records or not: damage here would give all rows other draws.
    if (place) whole = crc32c(record_crc_range(place->bytes)) == record_crc(place->bytes);
  });
  if (!readable) return map_faulted();
  if (!whole) return Error{ErrorCode::corrupt_record, "its CRC-32C is not what its record says"};
  if (auto same = of.check_unchanged(); !same) return same.error();
  const std::uint64_t hash = fnv1a(fnv1a(kFnv1aBasis, key), std::uint64_t{values[primary].length});
  return fnv1a(hash, bytes_of_crc(crc));
}

std::size_t DrawKeys::shard_of(std::uint64_t ordinal) const {
  const auto next = std::upper_bound(
      shards_.begin() + 1, shards_.end(), ordinal,
      [](std::uint64_t wanted, const Shard& shard) { return wanted < shard.first; });
  return static_cast<std::size_t>(next - shards_.begin()) - 1;
}

DrawKey DrawKeys::of(Ordinal ordinal, std::uint64_t use) const {
  const Shard& shard = shards_[shard_of(ordinal.value)];
  return {seed_, epoch_.value, ordinal.value - shard.first, count_uses() ? use : 0, shard.identity};
}

StageDraws::StageDraws(const DrawKeys& keys, DrawStage stage) : keys_(keys) {
  for (const DrawKeys::Shard& shard : keys.shards_) {
    epochs_.emplace_back(DrawKey{keys.seed_, keys.epoch_.value, 0, 0, shard.identity}, stage);
  }
}

}  // namespace batchwright
