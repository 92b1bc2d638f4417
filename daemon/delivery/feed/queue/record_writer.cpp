#include "daemon/delivery/feed/queue/record_writer.h"

#include <algorithm>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace batchwright {

/// What the loop and the thread of the files share.
struct RecordWriter::Queue {
  struct Entry {
    std::shared_ptr<KeptFile> file;
    std::string record;  // or the name of `work`
    std::function<void(const std::optional<Error>&)> work;
  };

  /// True where it joins what is to be written already. Work stands alone, so that the records
  /// before it are told of before it begins.
  bool add(Entry entry) {
    const std::lock_guard lock(mutex);
    const bool joins = !entry.work && !pending.empty() && !pending.back().front().work;
    if (!joins) pending.emplace_back();
    pending.back().push_back(std::move(entry));
    return joins;
  }

  /// Writes all that has gathered, or does one piece of work. On the thread of the files.
  Progress write() {
    std::vector<Entry> entries;
    {
      const std::lock_guard lock(mutex);
      entries = std::move(pending.front());
      pending.pop_front();
    }
    for (auto entry = entries.begin(); entry != entries.end();) entry = write(entry, entries.end());
    const std::lock_guard lock(mutex);
    current.reset();
    return {written, failure};
  }

  /// Records of one file that follow each other, or one piece of work.
  std::vector<Entry>::iterator write(std::vector<Entry>::iterator first,
                                     std::vector<Entry>::iterator end) {
    note_current(*first);
    if (first->work) {
      first->work(failure);
      first->work = nullptr;
      first->file = nullptr;  // closed here, if it was the last that holds it
      return first + 1;
    }
    const auto next = std::find_if(first, end, [first](const Entry& entry) {
      return entry.work || entry.file != first->file;
    });
    if (failure) return next;
    // A lack of memory is a failure like any other: nothing is written then.
    const auto done = caught(ErrorCode::busy, "", [first, next]() -> Result<void> {
      for (auto entry = first + 1; entry != next; ++entry) first->record += entry->record;
      return first->file->write(std::as_bytes(std::span(first->record)));
    });
    if (done) {
      written += static_cast<std::uint64_t>(next - first);
    } else {
      failure = done.error();
    }
    return next;
  }

  /// For lack of memory nobody is told of it.
  void note_current(const Entry& entry) {
    static_cast<void>(caught(ErrorCode::busy, "", [this, &entry]() -> Result<void> {
      AtWork now{entry.file ? entry.file->name() : entry.record, Time::clock::now()};
      const std::lock_guard lock(mutex);
      current = std::move(now);
      return {};
    }));
  }

  std::mutex mutex;
  std::deque<std::vector<Entry>> pending;  // guarded by mutex: one for each write() to come
  std::optional<AtWork> current;           // guarded by mutex
  std::uint64_t written = 0;               // of the thread of the files alone
  std::optional<Error> failure;            // the same
};

RecordWriter::RecordWriter(Elsewhere elsewhere)
    : elsewhere_(std::move(elsewhere)), queue_(std::make_shared<Queue>()) {}

void RecordWriter::put(const std::shared_ptr<KeptFile>& file, std::string record) {
  ++last_;
  push(file, std::move(record), nullptr);
}

void RecordWriter::run(const std::string& name,
                       std::function<void(const std::optional<Error>&)> work) {
  push(nullptr, name, std::move(work));
}

void RecordWriter::close(std::shared_ptr<KeptFile> file) {
  if (file) push(std::move(file), {}, [](const auto&) {});
}

void RecordWriter::push(std::shared_ptr<KeptFile> file, std::string record,
                        std::function<void(const std::optional<Error>&)> work) {
  if (queue_->add({std::move(file), std::move(record), std::move(work)})) return;
  elsewhere_([queue = queue_] { return queue->write(); });
}

std::optional<RecordWriter::AtWork> RecordWriter::at_work() const {
  const std::lock_guard lock(queue_->mutex);
  return queue_->current;
}

void RecordWriter::told(const Progress& progress) {
  written_ = std::max(written_, progress.written);
  while (!held_.empty() && has_written(held_.front().record)) {
    const auto send = std::move(held_.front().send);
    held_.pop_front();
    send();
  }
}

bool RecordWriter::lets_pass(const SubscriptionKey& to, std::uint64_t record) const {
  if (!holds_) return true;
  return has_written(record) && std::none_of(held_.begin(), held_.end(),
                                             [&to](const Held& held) { return held.to == to; });
}

/// One that only keeps its place in its subscription's order stands behind one that waits for a
/// record, so records never go down from one to the next where that matters.
void RecordWriter::hold(const SubscriptionKey& to, std::uint64_t record, std::function<void()> send,
                        std::function<void()> drop) {
  held_.push_back({to, record, std::move(send), std::move(drop)});
}

void RecordWriter::stop_holding() {
  holds_ = false;
  for (const Held& held : std::exchange(held_, {})) {
    if (held.drop) held.drop();
  }
}

}  // namespace batchwright
