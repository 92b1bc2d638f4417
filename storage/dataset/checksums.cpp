#include "storage/dataset/checksums.h"

#include <algorithm>

namespace batchwright {

Result<RecordChecksums> RecordChecksums::read(const Transaction& transaction, std::uint64_t stored,
                                              std::uint64_t sequences) {
  auto there = probe_memory(sequences, sizeof(std::uint32_t), "the index");
  if (!there) return there.error();
  RecordChecksums checksums;
  const std::uint64_t chunks = (sequences + kChunkSequences - 1) / kChunkSequences;
  if (auto asked = ask_for_column(transaction, kChecksumColumn, chunks); !asked) {
    return asked.error();
  }
  checksums.values_.resize(sequences);
  checksums.known_.reserve(chunks);
  auto rest = std::as_writable_bytes(std::span(checksums.values_));
  for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
    const auto part = rest.first(std::min(rest.size(), kChunkSequences * kChecksumColumn.width));
    const auto known = read_begun_chunk(transaction, kChecksumColumn, chunk, stored, part);
    if (!known) return known.error();
    checksums.known_.push_back(static_cast<std::uint16_t>(*known));
    rest = rest.subspan(part.size());
  }
  return checksums;
}

}  // namespace batchwright
