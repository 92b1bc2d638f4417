#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "formats/formats.h"
#include "storage/dataset/lmdb/map_lock.h"

namespace batchwright {

/// A sequence whose record cannot be trusted.
struct BrokenRecord {
  std::filesystem::path shard;
  Ordinal ordinal;  ///< Within its shard.
  std::string
      key;  ///< The key as far as it could be read; otherwise empty. Unprintable bytes are '?'.
  std::string reason;
};

/// The findings of a full check of a dataset.
struct VerifyReport {
  std::uint64_t sequences = 0;        ///< Sequences by the state of each shard.
  std::uint64_t bytes = 0;            ///< Bytes of the records that could be read.
  std::vector<BrokenRecord> broken;   ///< Broken records, by shard and ordinal.
  std::vector<std::string> problems;  ///< Problems of index, keys and state; each names its shard.
  MapLock lock = MapLock::none;
  bool sound() const { return broken.empty() && problems.empty(); }
};

/// Called now and then with the numbers of sequences checked and in all. Runs on the calling
/// thread.
using VerifyProgress = std::function<void(std::uint64_t checked, std::uint64_t sequences)>;

/// Reads every record and compares its CRC-32C, its key, the length index, the figures of the
/// state and the content fingerprint. What is broken is reported, not an error.
/// Errors: those of Catalog::open(): there is no dataset whose records could be checked; and
/// store_unavailable when it is read without a lock and was written to meanwhile.
/// Threads: any; it reads all the data, so it takes as long as the disk needs.
Result<VerifyReport> verify_dataset(const std::vector<std::filesystem::path>& shards,
                                    const VerifyProgress& progress = {},
                                    Locking locking = Locking::on);

}  // namespace batchwright
