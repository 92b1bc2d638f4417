#include "daemon/delivery/feed/queue/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

namespace batchwright {
namespace {

using Kind = JournalRecord::Kind;

constexpr const char* kWhat = "journal";

/// What its file says of a journal.
struct ReadJournal {
  JournalState state;
  JournalContent content;
};

/// Changes nothing in the file.
Result<ReadJournal> read_journal(const KeptFile& file, WorkQueue& queue) {
  ReadJournal read;
  JournalState& state = read.state;
  state.path = file.path();
  const auto content = scan_journal(
      [&file](std::span<std::byte> into, std::uint64_t offset) { return file.read(into, offset); },
      [&state, &queue](const JournalRecord& record) {
        state.lost_batches += take_record(record, queue);
        if (record.kind == Kind::plan)
          state.fingerprint = {record.first, record.second, record.third};
        if (record.kind == Kind::epoch) state.next_lease = LeaseNumber{record.first};
        if (record.kind == Kind::given) {
          state.next_lease = std::max(state.next_lease, LeaseNumber{record.first + 1});
        }
      });
  if (!content) return content.error();
  if (auto sound = check_journal(*content, file.path()); !sound) return sound.error();
  state.lost_records = content->lost + content->trailing();
  read.content = *content;
  return read;
}

/// A kill can cut a write() off where the file goes on to its next page, and a full disk anywhere.
Result<bool> is_cut_off(const KeptFile& file) {
  const auto size = file.size();
  if (!size) return size.error();
  if (*size == 0) return false;
  char last = '\n';
  const auto got = file.read(std::as_writable_bytes(std::span(&last, 1)), *size - 1);
  if (!got) return got.error();
  return last != '\n';
}

}  // namespace

std::uint64_t take_record(const JournalRecord& record, WorkQueue& queue) {
  const LeaseNumber lease{record.first};
  const QueueOwner owner{record.third};
  switch (record.kind) {
    case Kind::plan: break;
    case Kind::epoch: queue.begin(Epoch{record.second}); break;
    case Kind::given: return queue.give(lease, BatchIndex{record.second}, owner);
    case Kind::done:
      if (record.second == JournalRecord::kSetAside) {
        queue.set_aside(lease, owner);
      } else {
        queue.done(lease, owner);
      }
      break;
    case Kind::returned: queue.give_up(lease, owner); break;
  }
  return 0;
}

Result<OpenedJournal> open_journal(const std::string& path, const Fingerprint& fingerprint,
                                   bool data_may_grow, WorkQueue& queue, const Sync& sync) {
  auto file = KeptFile::open_locked(kWhat, path);
  if (!file) return file.error();
  auto read = read_journal(**file, queue);
  if (!read) return read.error();
  JournalState& state = read->state;
  if (!read->content.has_epoch) {
    queue.begin(Epoch{0});
    state.fingerprint = fingerprint;
    auto begun = begin_journal(path, {Epoch{0}, fingerprint, state.next_lease}, sync);
    if (!begun) return begun.error();
    return OpenedJournal{std::move(state), std::move(*begun)};
  }
  Fingerprint expected = state.fingerprint;
  if (data_may_grow) expected.data = fingerprint.data;
  if (expected != fingerprint) {
    return Error{ErrorCode::fingerprint_mismatch,
                 fmt::format("journal {} is of another plan: {} changed (expected {}, now {}); "
                             "change it back, or remove the file to begin the queue anew",
                             path, describe_difference(expected, fingerprint),
                             to_string(state.fingerprint), to_string(fingerprint))};
  }
  // Behind the last sound record there is what a death has left, and nothing else.
  if (auto cut = (*file)->cut(read->content.end); !cut) return cut.error();
  if (auto room = (*file)->check_room(); !room) return room.error();
  queue.keep_all(WorkQueue::Time::max());
  return OpenedJournal{std::move(state), std::move(*file)};
}

/// A new file takes the old one's place in one step, so that there is a whole one at any moment. It
/// is locked before it is emptied: another daemon's may lie there.
Result<std::unique_ptr<KeptFile>> begin_journal(const std::string& path, const BeginJournal& begin,
                                                const Sync& sync) {
  const Fingerprint& plan = begin.fingerprint;
  const std::array records = {
      JournalRecord{0, Kind::plan, plan.data, plan.settings, plan.seed}.sealed(),
      JournalRecord{0, Kind::epoch, begin.next_lease.value, begin.epoch.value, 0}.sealed()};
  const std::string fresh = path + ".new";
  auto file = KeptFile::open_locked(kWhat, fresh);
  if (!file) return file.error();
  if (auto emptied = (*file)->cut(0); !emptied) return emptied.error();
  if (auto written = (*file)->write(std::as_bytes(std::span(records))); !written) {
    return written.error();
  }
  const int descriptor = (*file)->descriptor();
  if ((sync ? sync(descriptor) : ::fdatasync(descriptor)) != 0) return (*file)->failed("sync");
  if (std::rename(fresh.c_str(), path.c_str()) != 0) return (*file)->failed("rename");
  (*file)->moved(path);
  return file;
}

Result<std::unique_ptr<KeptFile>> open_ledger(const std::string& path) {
  auto file = KeptFile::open("ledger", path);
  if (!file) return file.error();
  if (auto room = (*file)->check_room(); !room) return room.error();
  const auto cut_off = is_cut_off(**file);
  if (!cut_off) return cut_off.error();
  if (*cut_off) {
    if (auto ended = (*file)->write(std::as_bytes(std::span("\n", 1))); !ended)
      return ended.error();
  }
  return file;
}

}  // namespace batchwright
