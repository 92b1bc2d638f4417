#ifndef BATCHWRIGHT_WRITER_H
#define BATCHWRIGHT_WRITER_H

/*
 * Writes datasets that a batchwrightd serves: sequences under keys, each with the same named
 * fields.
 *
 *     const bw_field features = {"features", BW_PRIMARY, BW_FLOAT32, 1, 0, {80}, NULL};
 *     const bw_field* const fields[] = {&features};
 *     bw_writer_options options = BW_WRITER_OPTIONS_INIT;
 *     bw_writer* writer = NULL;
 *     options.fields = fields;
 *     options.field_count = 1;
 *     if (bw_writer_open("train", &options, &writer) != BW_OK) ...bw_writer_error_message()...
 *     bw_value value = {frames, frame_count * 80 * sizeof(float), frame_count};
 *     bw_sequence sequence = {"LJ001-0001", 10, &value, 1};
 *     if (bw_writer_add(writer, &sequence, NULL) != BW_OK) ...
 *     if (bw_writer_close(writer) != BW_OK) ...
 *
 * A dataset is always as of its last commit: a writer that is killed at any moment leaves the
 * sequences of whole commits, and the next writer appends to them. Sequences are never changed or
 * removed. Readers of the dataset see whole commits, too.
 *
 * Lifetime: arguments are copied before a call returns. Values that the accessors return are
 *   valid until the writer is freed by bw_writer_close or bw_writer_abort.
 * Threads: a writer is used by one thread at a time, and a second one gets BW_BUSY; it may move
 *   between threads. Writers of different datasets have nothing in common. A dataset has one
 *   writer: a second one in this process gets BW_BUSY, one in another process waits. Fork: a forked
 * child gets BW_FORKED from every call on a writer that it inherited.
 * Errors: functions return a bw_status; bw_writer_error_message() then says what was found, where,
 *   and what is allowed. After an error the writer is as if the call had not been made, and can be
 *   used. No function throws, aborts or writes to a stream.
 * Units: times in milliseconds, sizes in bytes, lengths in frames.
 * Growth: options begin with their own size, and structs get new members only at their end; so a
 *   program built with an older header goes on working.
 *
 * The library, libbatchwright-storage, needs no daemon and no other library of ours.
 */

#include <batchwright/values.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The ABI version of this header; bw_writer_abi_version() is the library's. They must be equal. */
#define BW_WRITER_ABI_VERSION 1

typedef struct bw_writer bw_writer;

/* ---- the library ------------------------------------------------------------------------- */

BW_API uint32_t bw_writer_abi_version(void);
BW_API const char* bw_writer_library_version(void);

/* The message of this thread's last failed call. Valid until this thread's next call here. Never
 * NULL. */
BW_API const char* bw_writer_error_message(void);

/* The status in words, such as "already_exists"; "unknown" for a number that is none. */
BW_API const char* bw_writer_status_name(bw_status status);

/* ---- opening ----------------------------------------------------------------------------- */

typedef int32_t bw_opening;
enum {
  BW_CREATE_OR_APPEND = 0,
  BW_CREATE = 1, /* BW_ALREADY_EXISTS if there is a dataset */
  BW_APPEND = 2  /* BW_NOT_FOUND if there is none */
};

typedef struct bw_writer_options {
  size_t struct_size; /* sizeof(bw_writer_options) */
  /* The fields of an existing dataset must be its own; NULL and 0 takes them as they are. The
     fields of a bw_feed may be passed. */
  const bw_field* const* fields;
  size_t field_count; /* 1 to 64 */
  /* How the data were made: kept with the dataset and shown by `batchwright inspect`; nothing
     depends on it. Used when the dataset is created, ignored when it exists. */
  const bw_setting* settings;
  size_t setting_count;
  bw_opening opening;
  int32_t reserved; /* 0 */
  /* A commit follows automatically when this much is pending, whichever is reached first. Pending
     sequences are held in memory. 0: 64 MiB, and 10,000 sequences. */
  uint64_t commit_bytes;
  uint64_t commit_sequences;
  /* Initial address space, which costs nothing until it is used, and grows automatically. 0: 1 TiB
     or four times the file, or less where that much is not available. */
  uint64_t map_bytes;
  int64_t timeout_ms; /* how long to wait for a writer of another process; 0: looks once */
} bw_writer_options;
#define BW_WRITER_OPTIONS_INIT \
  { sizeof(bw_writer_options), NULL, 0, NULL, 0, BW_CREATE_OR_APPEND, 0, 0, 0, 0, 60000 }

/* Opens the dataset at `path` for writing: a directory, which is created if missing, but not its
 * parents. `options` may be NULL, and then the dataset must exist.
 * Errors: BW_INVALID_ARGUMENT (names the field), BW_SCHEMA_MISMATCH (names what differs),
 * BW_ALREADY_EXISTS, BW_NOT_FOUND, BW_TIMED_OUT, BW_BUSY, BW_STORE_UNAVAILABLE (something else is
 * there), BW_CORRUPT_RECORD, BW_UNSUPPORTED_VERSION, BW_UNSUPPORTED, BW_DOES_NOT_FIT,
 * BW_IO_ERROR. */
BW_API bw_status bw_writer_open(const char* path, const bw_writer_options* options,
                                bw_writer** writer);

/* The dataset's fields, in the order in which bw_writer_add takes their values. NULL for `i` too
 * large. Threads: any. */
BW_API size_t bw_writer_field_count(const bw_writer* writer);
BW_API const bw_field* bw_writer_field_at(const bw_writer* writer, size_t i);

/* ---- writing ----------------------------------------------------------------------------- */

/* Adds a sequence, which is copied; a commit follows automatically when enough is pending.
 * `*ordinal` is its place in the dataset; `ordinal` may be NULL. Errors: BW_ALREADY_EXISTS (the
 * key), BW_SCHEMA_MISMATCH (names key and field), BW_INVALID_ARGUMENT, BW_DOES_NOT_FIT (a record of
 * more than 2 GiB - 64 KiB), BW_BUSY, BW_FORKED, and those of bw_writer_commit. */
BW_API bw_status bw_writer_add(bw_writer* writer, const bw_sequence* sequence, uint64_t* ordinal);

/* Sets `*found` to 1 when there is a sequence of this key, committed or not, otherwise to 0.
 * Errors: BW_INVALID_ARGUMENT, BW_STORE_UNAVAILABLE, BW_BUSY, BW_FORKED. */
BW_API bw_status bw_writer_contains(bw_writer* writer, const char* key, size_t key_bytes,
                                    int32_t* found);

/* The number of sequences in the dataset, pending ones included.
 * Errors: BW_INVALID_ARGUMENT, BW_BUSY, BW_FORKED. */
BW_API bw_status bw_writer_sequences(bw_writer* writer, uint64_t* sequences);

/* Makes all added sequences durable and visible, in one transaction that is synced to disk. Having
 * nothing to do is fine.
 * Errors: BW_IO_ERROR (the disk is full), BW_BUSY (another thread; or the map must grow, and a
 * reader in this process holds it), BW_DOES_NOT_FIT, BW_STORE_UNAVAILABLE, BW_CORRUPT_RECORD,
 * BW_FORKED. Added sequences are kept, and the call may be repeated. */
BW_API bw_status bw_writer_commit(bw_writer* writer);

/* Commits, and frees the handle; NULL is fine.
 * Errors: those of bw_writer_commit; then the writer is not freed, and the call may be repeated. */
BW_API bw_status bw_writer_close(bw_writer* writer);

/* Drops uncommitted sequences, and frees the handle; NULL is fine.
 * Errors: BW_BUSY; BW_FORKED, then nothing was done, and the handle is lost. */
BW_API bw_status bw_writer_abort(bw_writer* writer);

#ifdef __cplusplus
}
#endif

#endif
