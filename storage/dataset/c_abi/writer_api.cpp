// The C ABI: arguments checked, errors reported, exceptions stopped. The work is DatasetWriter's.

#include <fmt/core.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "formats/formats.h"
#include "storage/dataset/c_abi/batchwright/writer.h"
#include "storage/dataset/c_abi/writer_options.h"
#include "storage/dataset/writer.h"

using namespace batchwright;

// The codes are those of all the project; client.h has the same, and the same names.
static_assert(BW_NOT_FOUND == static_cast<int>(ErrorCode::not_found));
static_assert(BW_BUSY == static_cast<int>(ErrorCode::busy));
static_assert(BW_INTERNAL == static_cast<int>(ErrorCode::internal));
static_assert(BW_PRIMARY == static_cast<int>(FieldKind::primary));
static_assert(BW_SCALAR == static_cast<int>(FieldKind::scalar));
static_assert(BW_FLOAT32 == static_cast<int>(DType::float32));
static_assert(BW_UINT8 == static_cast<int>(DType::uint8));
static_assert(BW_CREATE == static_cast<int>(Opening::create));
static_assert(BW_APPEND == static_cast<int>(Opening::append));

struct bw_writer {
  explicit bw_writer(DatasetWriter opened)
      : writer(std::move(opened)), fields(writer.schema()), values(fields.size()) {}

  Mutex in_use;
  DatasetWriter writer GUARDED_BY(in_use);
  FieldTable fields;                                  // points into the writer's schema
  std::vector<FieldValue> values GUARDED_BY(in_use);  // of the sequence that is being added
  const pid_t process = getpid();
};

namespace {

bw_status report_invalid(const char* what) { return report({ErrorCode::invalid_argument, what}); }

/// Runs `call` for the thread that has the writer, in the process that opened it. Where it
/// `ends_it`, the writer goes with its success.
template <class Call>
bw_status alone_with(bw_writer* writer, const Call& call, bool ends_it = false) noexcept {
  if (writer == nullptr) return report_invalid("no writer");
  if (writer->process != getpid()) {
    return report({ErrorCode::forked,
                   "this writer was opened before fork(); a child process must open its own"});
  }
  // Not waited for: two threads on one writer are a mistake that should show.
  if (!writer->in_use.try_lock()) {
    return report({ErrorCode::busy, "another thread is in a call on this writer"});
  }
  bw_status done = BW_OK;
  {
    const MutexLock alone(writer->in_use, std::adopt_lock);
    // The analysis does not follow a lock into a lambda.
    done = at_border([&]() NO_THREAD_SAFETY_ANALYSIS { return call(); });
  }
  // The mutex is the writer's own, and must not be locked when it is destroyed.
  if (ends_it && done == BW_OK) delete writer;
  return done;
}

bw_status open(const char* path, const bw_writer_options* options, bw_writer** writer) {
  const auto request = to_writer_request(path, options);
  if (!request) return report(request.error());
  auto opened = DatasetWriter::open(path, request->schema, request->limits, request->opening);
  if (!opened) return report(opened.error());
  *writer = new bw_writer(std::move(*opened));  // the program owns it until it closes or aborts
  return BW_OK;
}

bw_status add(bw_writer& writer, const bw_sequence& sequence, std::uint64_t* ordinal)
    REQUIRES(writer.in_use) {
  const auto taken = read_values(sequence, writer.writer.schema(), "the dataset", writer.values);
  if (!taken) return report(taken.error());
  const std::string_view key(sequence.key, sequence.key_bytes);
  const auto added = writer.writer.append({key, writer.values});
  if (!added) return report(added.error());
  if (ordinal != nullptr) *ordinal = added->value;
  return BW_OK;
}

bw_status commit(bw_writer& writer) REQUIRES(writer.in_use) {
  const auto done = writer.writer.commit();
  return done ? BW_OK : report(done.error());
}

}  // namespace

extern "C" {

uint32_t bw_writer_abi_version(void) { return BW_WRITER_ABI_VERSION; }

const char* bw_writer_library_version(void) { return BATCHWRIGHT_VERSION; }

const char* bw_writer_error_message(void) { return last_error_text(); }

const char* bw_writer_status_name(bw_status status) { return status_name(status); }

bw_status bw_writer_open(const char* path, const bw_writer_options* options, bw_writer** writer) {
  if (writer == nullptr) return report_invalid("no place for the writer is given");
  // A program that does not look at the status finds no writer, rather than an old pointer.
  *writer = nullptr;
  if (path == nullptr || *path == '\0') return report_invalid("no path is given");
  return at_border([&] { return open(path, options, writer); });
}

// Without the lock: a writer's fields stay as they are from its opening on.
size_t bw_writer_field_count(const bw_writer* writer) {
  return writer != nullptr ? writer->fields.size() : 0;
}

const bw_field* bw_writer_field_at(const bw_writer* writer, size_t i) {
  return writer != nullptr ? writer->fields.at(i) : nullptr;
}

bw_status bw_writer_add(bw_writer* writer, const bw_sequence* sequence, uint64_t* ordinal) {
  return alone_with(writer, [&]() REQUIRES(writer->in_use) {
    if (sequence == nullptr || sequence->key == nullptr || sequence->values == nullptr) {
      return report_invalid("no sequence, or one without key or values");
    }
    return add(*writer, *sequence, ordinal);
  });
}

bw_status bw_writer_contains(bw_writer* writer, const char* key, size_t key_bytes, int32_t* found) {
  return alone_with(writer, [&]() REQUIRES(writer->in_use) {
    if (key == nullptr || found == nullptr)
      return report_invalid("no key or no place for the answer");
    const auto there = writer->writer.contains(std::string_view(key, key_bytes));
    if (!there) return report(there.error());
    *found = *there ? 1 : 0;
    return static_cast<bw_status>(BW_OK);
  });
}

bw_status bw_writer_sequences(bw_writer* writer, uint64_t* sequences) {
  return alone_with(writer, [&]() REQUIRES(writer->in_use) {
    if (sequences == nullptr) return report_invalid("no place for the number");
    *sequences = writer->writer.sequences();
    return static_cast<bw_status>(BW_OK);
  });
}

bw_status bw_writer_commit(bw_writer* writer) {
  return alone_with(writer, [&]() REQUIRES(writer->in_use) { return commit(*writer); });
}

bw_status bw_writer_close(bw_writer* writer) {
  if (writer == nullptr) return BW_OK;
  // Where it fails the writer stays, so that the program may close again, or abort.
  return alone_with(
      writer, [&]() REQUIRES(writer->in_use) { return commit(*writer); }, true);
}

bw_status bw_writer_abort(bw_writer* writer) {
  if (writer == nullptr) return BW_OK;
  return alone_with(
      writer, [] { return static_cast<bw_status>(BW_OK); }, true);
}

}  // extern "C"
