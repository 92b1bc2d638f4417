#include "daemon/assembly/fetch.h"

#include <pthread.h>

#include <utility>
#include <vector>

namespace batchwright {
namespace {

/// Small enough for every machine: a page is no smaller.
constexpr std::size_t kPageBytes = 4096;

bool per_frame(const FieldSpec& field) {
  return field.kind == FieldKind::primary || field.kind == FieldKind::aligned;
}

void touch(std::span<const std::byte> bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += kPageBytes) {
    // volatile: the compiler would leave out a read whose value is not used.
    static_cast<void>(*static_cast<const volatile std::byte*>(&bytes[at]));
  }
  if (bytes.empty()) return;
  static_cast<void>(*static_cast<const volatile std::byte*>(&bytes.back()));
}

/// Fetches only the frames of a chunk: its sequence may be a thousand times as long.
void touch_row(const Schema& schema, const RecordView& record, const Row& row) {
  for (std::size_t f = 0; f < schema.fields.size(); ++f) {
    const FieldValue value = record.field(f);
    const std::size_t frame = frame_bytes(schema.fields[f]);
    // A corrupt record may be shorter than its row; the assembly finds that out, and names it.
    const bool in_bounds = (std::size_t{row.start} + row.length) * frame <= value.bytes.size();
    touch(per_frame(schema.fields[f]) && in_bounds
              ? value.bytes.subspan(row.start * frame, row.length * frame)
              : value.bytes);
  }
}

bool is_whole(const Row& row) { return row.start == 0 && row.flags == (kRowReset | kRowLast); }

}  // namespace

void fetch_pages(const EpochSource& source, BatchIndex index) {
  thread_local std::vector<Row> rows;  // grows to the largest batch once
  if (index.value >= source.plan.batches()) return;
  source.plan.rows(index, rows);
  std::erase_if(rows, [](const Row& row) { return row.length == 0; });
  const Snapshot& snapshot = *source.snapshot;
  // All are asked for before the first is waited for, so that the disk sees them at once.
  for (const Row& row : rows) {
    // Of a chunk only some pages are needed, and will_need() asks for all of its sequence.
    if (is_whole(row)) snapshot.will_need(Ordinal{row.ordinal});
  }
  for (const Row& row : rows) {
    const auto record = snapshot.record(Ordinal{row.ordinal});
    // The assembly meets the same error, and reports it for the batch.
    if (!record) continue;
    static_cast<void>(guarded([&] { touch_row(snapshot.schema(), *record, row); }));
  }
}

Fetcher::~Fetcher() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Fetcher::put(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  work_.push_back(std::move(work));
  if (std::exchange(running_, true)) return changed_.notify_one();
  if (thread_.joinable()) thread_.join();  // it has left run(), or is about to
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "bw-fetch");
}

void Fetcher::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait_for(lock, kLinger, [this] { return stopping_ || !work_.empty(); });
    if (work_.empty()) {
      running_ = false;
      return;
    }
    auto work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    work();
    work = nullptr;  // what it holds is not freed under the lock
    lock.lock();
  }
}

}  // namespace batchwright
