#include "formats/journal_records.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "formats/base/base.h"

namespace batchwright {
namespace {

/// Records that are read at once: 1 MiB of them.
constexpr std::size_t kRecordsRead = 32768;
/// What a disk is given at once by the kernel, so that a power cut loses whole ones.
constexpr std::uint64_t kPageBytes = 4096;

std::uint32_t crc_of(const JournalRecord& record) {
  return crc32c(record.bytes().subspan(sizeof record.crc));
}

bool is_zero(const JournalRecord& record) {
  return std::all_of(record.bytes().begin(), record.bytes().end(),
                     [](std::byte byte) { return byte == std::byte{0}; });
}

bool is_known(JournalRecord::Kind kind) {
  return kind == JournalRecord::Kind::plan ||
         (kind >= JournalRecord::Kind::epoch && kind <= JournalRecord::Kind::returned);
}

/// Takes in one record after the other.
class Scan {
 public:
  explicit Scan(const std::function<void(const JournalRecord&)>& take) : take_(take) {}

  void add(const JournalRecord& record) {
    const std::uint64_t at = content.size;
    content.size += sizeof record;
    if (!record.is_sound()) {
      if (at == content.end) gap_is_zero_ = true;  // it begins here
      gap_is_zero_ = gap_is_zero_ && is_zero(record);
      return;
    }
    judge_gap(at);
    ++content.sound;
    content.end = content.size;
    if (!is_known(record.kind)) {
      if (!content.unknown) content.unknown = static_cast<std::uint32_t>(record.kind);
      return;
    }
    content.has_plan = content.has_plan || (at == 0 && record.kind == JournalRecord::Kind::plan);
    content.has_epoch = content.has_epoch || record.kind == JournalRecord::Kind::epoch;
    take_(record);
  }

  JournalContent content;

 private:
  /// What is not sound from the last sound record up to this one.
  void judge_gap(std::uint64_t at) {
    const std::uint64_t records = (at - content.end) / sizeof(JournalRecord);
    if (records == 0) return;
    if (gap_is_zero_ && at % kPageBytes == 0) {
      content.lost += records;
      return;
    }
    if (!content.damaged) content.damaged = content.end;
    content.damaged_records += records;
  }

  const std::function<void(const JournalRecord&)>& take_;
  bool gap_is_zero_ = true;
};

}  // namespace

JournalRecord JournalRecord::sealed() const {
  JournalRecord record = *this;
  record.crc = crc_of(record);
  return record;
}

bool JournalRecord::is_sound() const { return crc == crc_of(*this); }

Result<JournalContent> scan_journal(const ReadAt& read,
                                    const std::function<void(const JournalRecord&)>& take) {
  std::vector<JournalRecord> records(kRecordsRead);
  Scan scan(take);
  while (true) {
    const auto got = read(std::as_writable_bytes(std::span(records)), scan.content.size);
    if (!got) return got.error();
    const std::size_t whole = *got / sizeof(JournalRecord);
    for (std::size_t i = 0; i < whole; ++i) scan.add(records[i]);
    if (*got == kRecordsRead * sizeof(JournalRecord)) continue;
    scan.content.size += *got % sizeof(JournalRecord);
    return scan.content;
  }
}

Result<void> check_journal(const JournalContent& content, const std::string& name) {
  if (content.size == 0) return {};
  const auto refuse = [&name](const std::string& why) {
    return Error{ErrorCode::corrupt_record,
                 fmt::format("journal {}: {}; \"batchwright journal {}\" shows what it holds, and "
                             "--salvage writes one with all that is sound; or remove the file to "
                             "begin the queue anew",
                             name, why, name)};
  };
  if (content.sound == 0) {
    return Error{ErrorCode::corrupt_record,
                 fmt::format("{} is not the journal of a queue: none of its {} bytes are a sound "
                             "record; remove the file to begin the queue anew",
                             name, content.size)};
  }
  if (content.damaged) {
    return refuse(fmt::format(
        "it is damaged: from byte {} on {} of its records {} not sound, and "
        "sound ones follow",
        *content.damaged, content.damaged_records, content.damaged_records == 1 ? "is" : "are"));
  }
  if (!content.has_plan) return refuse("it is damaged: it does not begin with its plan");
  if (!content.has_epoch) return refuse("it is damaged: it has no epoch");
  if (content.unknown) {
    return Error{ErrorCode::unsupported_version,
                 fmt::format("journal {}: a record of kind {}, which a newer version has written",
                             name, *content.unknown)};
  }
  return {};
}

}  // namespace batchwright
