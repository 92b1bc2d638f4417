#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "formats/base/base.h"

namespace batchwright {

/// One record of a queue's journal, as it lies in the file (daemon/delivery/feed/README.md).
struct JournalRecord {
  enum class Kind : std::uint32_t {
    plan = 0x31515742,  ///< "BWQ1", little-endian: the first record of a file.
    epoch = 1,
    given = 2,
    done = 3,
    returned = 4,
  };

  std::uint32_t crc = 0;  ///< CRC-32C of all that follows.
  Kind kind = Kind::epoch;
  std::uint64_t first = 0;   ///< plan: data; epoch: next free lease; else the lease.
  std::uint64_t second = 0;  ///< plan: settings; epoch: its number; given, returned: the batch's
                             ///< index; done: kSetAside for a batch that was set aside, or 0.
  std::uint64_t third = 0;   ///< plan: seed; given, done, returned: the owner.

  static constexpr std::uint64_t kSetAside = 1;

  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(this, 1)); }
  /// The same with its checksum.
  JournalRecord sealed() const;
  bool is_sound() const;
};
static_assert(sizeof(JournalRecord) == 32);

/// What a journal's file holds, beside its sound records.
///
/// Records are appended, so a crash of the daemon leaves at most a torn one at the end. A power cut
/// may also lose pages of which later ones reached the disk: a run of zeros that ends where a page
/// does. All else that is not sound before a sound record is damage.
struct JournalContent {
  std::uint64_t size = 0;                ///< Of the file, in bytes.
  std::uint64_t sound = 0;               ///< Records.
  std::uint64_t end = 0;                 ///< Of the last sound record, in bytes.
  std::uint64_t lost = 0;                ///< Records in runs of zeros that a power cut has left.
  std::optional<std::uint64_t> damaged;  ///< The byte where the first damage begins.
  std::uint64_t damaged_records = 0;
  std::optional<std::uint32_t> unknown;  ///< The first kind that this version does not know.
  bool has_plan = false;                 ///< It begins with its plan.
  bool has_epoch = false;

  /// Whole records at the end that are not sound.
  std::uint64_t trailing() const { return (size - end) / sizeof(JournalRecord); }
};

/// Reads up to the size of `into` from `offset`; fewer bytes only at the file's end.
using ReadAt = std::function<Result<std::size_t>(std::span<std::byte> into, std::uint64_t offset)>;

/// Reads a whole file. `take` gets each sound record of a known kind, in order, behind damage too:
/// what may be done with it is the caller's to decide. Errors: those of `read`.
Result<JournalContent> scan_journal(const ReadAt& read,
                                    const std::function<void(const JournalRecord&)>& take);

/// Why a file is no journal that a queue can go on with; nothing for an empty one. `name` is its
/// path. Errors: corrupt_record, unsupported_version.
Result<void> check_journal(const JournalContent& content, const std::string& name);

}  // namespace batchwright
