#include "daemon/delivery/feed/record_writer.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <span>
#include <utility>
#include <variant>

namespace batchwright {
namespace {

/// Its disk may take long: the records before it are told of before it begins.
bool stands_alone(const Record& record) {
  return std::holds_alternative<BeginJournal>(record) || std::holds_alternative<CloseFiles>(record);
}

/// Whether one file has both.
bool go_together(const Record& a, const Record& b) {
  const auto is_of_queue = [](const Record& record) {
    return std::holds_alternative<JournalRecord>(record) ||
           std::holds_alternative<SpoolTurn>(record);
  };
  return a.index() == b.index() || (is_of_queue(a) && is_of_queue(b));
}

}  // namespace

/// What the loop and the thread of the files share.
struct RecordWriter::Queue {
  using Records = std::vector<Record>;

  explicit Queue(RecordFiles its_files) : files(std::move(its_files)) {}

  /// Returns how many more times write() is to be called.
  std::size_t add(Records records) {
    const MutexLock lock(mutex);
    std::size_t added = 0;
    for (Record& record : records) {
      const bool joins =
          !pending.empty() && !stands_alone(record) && !stands_alone(pending.back().front());
      if (!joins) {
        pending.emplace_back();
        ++added;
      }
      pending.back().push_back(std::move(record));
    }
    return added;
  }

  /// Writes all that has gathered. On the thread of the files.
  Written write() {
    Records records;
    {
      const MutexLock lock(mutex);
      records = std::move(pending.front());
      pending.pop_front();
    }
    for (auto first = records.begin(); first != records.end();) {
      const auto next = std::find_if(first, records.end(), [first](const Record& record) {
        return !go_together(record, *first);
      });
      write({first, next});
      first = next;
    }
    const MutexLock lock(mutex);
    current.reset();
    return {written, failure};
  }

  /// Records of one kind. A lack of memory is a failure like any other: nothing is written then.
  void write(std::span<const Record> records) {
    if (std::holds_alternative<CloseFiles>(records.front())) return close();
    if (failure) return;
    if (std::holds_alternative<RecordedStep>(records.front())) return write_steps(records);
    const bool is_line = std::holds_alternative<LedgerLine>(records.front());
    if (!is_line && files.spool) return write_turns(records);
    if (!is_line && !files.journal) {  // a live feed's queue, which ends with the daemon
      written += records.size();
      return;
    }
    note_current(is_line ? *files.ledger : *files.journal);
    const auto done = as_result(ErrorCode::busy, "", [&]() -> Result<void> {
      if (const auto* epoch = std::get_if<BeginJournal>(&records.front())) return begin(*epoch);
      std::string bytes;
      for (const Record& record : records) append(record, bytes);
      return (is_line ? files.ledger : files.journal)->write(std::as_bytes(std::span(bytes)));
    });
    note(done, records.size());
  }

  void write_steps(std::span<const Record> records) {
    note_current(*files.record);
    const auto done = as_result(ErrorCode::busy, "", [&]() -> Result<void> {
      std::vector<const RecordedStep*> steps;
      for (const Record& record : records) steps.push_back(&std::get<RecordedStep>(record));
      return files.record->write(steps);
    });
    note(done, records.size());
  }

  void write_turns(std::span<const Record> records) {
    note_current(*files.spool);
    note(as_result(ErrorCode::busy, "", [&] { return files.spool->write(records); }),
         records.size());
  }

  void note(const Result<void>& done, std::size_t records) {
    if (done) {
      written += records;
    } else {
      failure = done.error();
    }
  }

  static void append(const Record& record, std::string& bytes) {
    if (const auto* line = std::get_if<LedgerLine>(&record)) {
      bytes += line->text;
      return;
    }
    const JournalRecord sealed = std::get<JournalRecord>(record).sealed();
    bytes.append(reinterpret_cast<const char*>(sealed.bytes().data()), sealed.bytes().size());
  }

  Result<void> begin(const BeginJournal& epoch) {
    auto file = begin_journal(files.journal->path(), epoch, files.sync);
    if (!file) return file.error();
    files.journal = std::move(*file);
    return {};
  }

  /// This may wait for their file systems, too.
  void close() {
    for (auto* file : {&files.journal, &files.ledger}) {
      if (*file) note_current(**file);
      file->reset();
    }
    if (files.record) note_current(*files.record);
    files.record.reset();
    if (files.spool) note_current(*files.spool);
    files.spool.reset();
  }

  /// For lack of memory it is not known.
  template <class File>
  void note_current(const File& file) {
    static_cast<void>(as_result(ErrorCode::busy, "", [this, &file]() -> Result<void> {
      AtWork now{file.name(), Time::clock::now()};
      const MutexLock lock(mutex);
      current = std::move(now);
      return {};
    }));
  }

  Mutex mutex;
  std::deque<Records> pending GUARDED_BY(mutex);  // one for each write() to come
  std::optional<AtWork> current GUARDED_BY(mutex);
  RecordFiles files;             // of the thread of the files alone
  std::uint64_t written = 0;     // the same
  std::optional<Error> failure;  // the same
};

RecordWriter::RecordWriter(RecordFiles files, Elsewhere elsewhere)
    : elsewhere_(std::move(elsewhere)), queue_(std::make_shared<Queue>(std::move(files))) {}

void RecordWriter::put(std::vector<Record> records) {
  for (std::size_t works = queue_->add(std::move(records)); works > 0; --works) {
    elsewhere_([queue = queue_] { return queue->write(); });
  }
}

Written RecordWriter::told(Written written) {
  if (has_told_failure_) written.failure.reset();
  has_told_failure_ |= written.failure.has_value();
  return written;
}

std::optional<Error> RecordWriter::untold() const {
  return has_told_failure_ ? std::optional<Error>() : queue_->failure;
}

std::optional<RecordWriter::AtWork> RecordWriter::at_work() const {
  const MutexLock lock(queue_->mutex);
  return queue_->current;
}

}  // namespace batchwright
