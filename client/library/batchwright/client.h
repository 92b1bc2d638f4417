#ifndef BATCHWRIGHT_CLIENT_H
#define BATCHWRIGHT_CLIENT_H

/*
 * Batches from a batchwrightd: finished tensors. Batches of a daemon on this machine are read in
 * place, in memory that is shared with it and mapped read-only, and nothing is copied on the way;
 * batches of a remote one come as messages.
 *
 *     bw_connection* connection = NULL;
 *     bw_subscription* subscription = NULL;
 *     bw_batch* batch = NULL;
 *     bw_subscribe_options options = BW_SUBSCRIBE_OPTIONS_INIT;
 *     options.feed = "train";
 *     if (bw_connect(NULL, NULL, &connection) != BW_OK) ...bw_error_message()...
 *     if (bw_subscribe(connection, &options, &subscription) != BW_OK) ...
 *     while ((status = bw_next(subscription, 60000, &batch, NULL)) <= BW_OK && status != BW_END)
 *       if (status == BW_OK) { use(bw_batch_tensor(batch, 0)); bw_release(batch); }
 *
 * Lifetime: a batch and everything its accessors return stay valid until bw_release(batch),
 *   whatever happens meanwhile: bw_unsubscribe, bw_close and the death of the daemon included. The
 *   daemon keeps a slot for every batch that is held, so release early; a subscription gets at most
 *   `window` batches that it has not released.
 * Threads: a connection is used by one thread at a time (bw_subscribe, bw_next); a second one gets
 *   BW_BUSY. bw_release, bw_unsubscribe and bw_close may be called from any thread at any time,
 *   bw_close even while another call is in the same handle. All other functions only read.
 *   Different connections have nothing in common.
 * Fork: a forked child gets BW_FORKED from every call on what it inherited, and must connect anew.
 *   Batches that the parent holds can be read in the child for as long as the parent holds them.
 * Errors: functions return a bw_status; bw_error_message() then says what was found, where, and
 *   what is allowed. No function throws, aborts or writes to a stream.
 * Units: times in milliseconds, sizes in bytes, lengths in frames. Every wait has a limit.
 * Growth: option structs begin with their own size, and structs that the library hands out get new
 *   members only at their end; so a program built with an older header goes on working.
 */

#include <batchwright/values.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The ABI version of this header; bw_abi_version() is the library's. The two must be equal. */
#define BW_ABI_VERSION 1

/* Where a daemon listens unless it is configured otherwise. */
#define BW_DEFAULT_ENDPOINT "ipc:///run/batchwright/batchwright.sock"

typedef int32_t bw_layout;
enum { BW_BATCH_MAJOR = 0, BW_TIME_MAJOR = 1 };

typedef int32_t bw_mode;
enum {
  BW_REPLICA = 0, /* every batch of the feed */
  BW_SHARDED = 1, /* the share of `rank` of `ranks` in every global step */
  BW_QUEUE = 2    /* any batch that is next, for workers that need no order; see bw_subscribe */
};

#define BW_FINGERPRINT_TEXT_BYTES 51 /* 48 digits, two dashes, the terminator */

typedef struct bw_connection bw_connection;
typedef struct bw_subscription bw_subscription;
typedef struct bw_batch bw_batch;
typedef struct bw_memory bw_memory;

/* What batches depend on. Equal parts mean equal data, equal seed, and equal settings: the plan's
 * except for its seed, the planner's version, layout, padding, and the fields with their dtypes. */
typedef struct bw_fingerprint {
  uint64_t data;
  uint64_t settings;
  uint64_t seed;
} bw_fingerprint;

/* All that is needed to resume at exactly the same place. `step` counts global steps: a position is
 * a whole step. It may equal the number of steps of the epoch, which is the epoch's end. */
typedef struct bw_position {
  bw_fingerprint fingerprint;
  uint64_t epoch;
  uint64_t step;
} bw_position;

/* ---- the library ------------------------------------------------------------------------- */

BW_API uint32_t bw_abi_version(void);
BW_API const char* bw_library_version(void);

/* The message of this thread's last failed call. Valid until this thread's next bw_ call. Never
 * NULL. */
BW_API const char* bw_error_message(void);

/* The status in words, such as "timed_out"; "unknown" for a number that is none. */
BW_API const char* bw_status_name(bw_status status);

/* "float32" and so on, and the bytes of one element; "unknown" and 0 for other values. */
BW_API const char* bw_dtype_name(bw_dtype dtype);
BW_API size_t bw_dtype_bytes(bw_dtype dtype);

/* A fingerprint as text, `data-settings-seed` in hexadecimal, and back.
 * Errors: BW_INVALID_ARGUMENT for text of another form. */
BW_API bw_status bw_fingerprint_text(const bw_fingerprint* fingerprint,
                                     char text[BW_FINGERPRINT_TEXT_BYTES]);
BW_API bw_status bw_fingerprint_parse(const char* text, bw_fingerprint* fingerprint);

/* ---- connections ------------------------------------------------------------------------- */

typedef struct bw_connect_options {
  size_t struct_size;  /* sizeof(bw_connect_options) */
  const char* program; /* for the daemon's logs; NULL: the name this process was started by */
  int64_t timeout_ms;  /* for each endpoint, and for each bw_subscribe; at least 1 */
  /* How long to look for a daemon that goes away before giving up; 0: give up at once. */
  int64_t reconnect_ms;
  /* CURVE keys as Z85 text of 40 characters: the daemon's, and this client's pair. All, or none. */
  const char* server_key;
  const char* public_key;
  const char* secret_key;
  /* 1: batches come as messages, with a copy. 0: only when there is no other way. */
  int32_t inline_batches;
  int32_t reserved; /* 0 */
} bw_connect_options;
#define BW_CONNECT_OPTIONS_INIT \
  { sizeof(bw_connect_options), NULL, 10000, 60000, NULL, NULL, NULL, 0, 0 }

/* Connects to the daemon at `endpoint`: "ipc://" and the path of its socket, or "tcp://HOST:PORT";
 * NULL means the environment's BATCHWRIGHT_ENDPOINT, otherwise BW_DEFAULT_ENDPOINT. A relative path
 * counts from the folder in which the program is at this call. The call waits for a daemon that is
 * still starting. `options` may be NULL.
 *
 * Memory is shared with an ipc:// daemon where its arena can be mapped. Where it cannot, as from
 * another host or another mount namespace, batches come as messages and are held in this process's
 * own memory; everything else is the same. bw_connection_get_info says which it is.
 *
 * bw_next and bw_subscribe look for a daemon that went away, within their limits, and resume at the
 * next batch: a restart is only a pause. The daemon's plan must be the same.
 *
 * Several endpoints, separated by commas, are daemons that serve shards of a dataset under one feed
 * name. Their batches are merged in turns: each global step comes from the next server in the order
 * of the list that still has steps in this epoch.
 *
 * Errors: BW_TIMED_OUT, BW_UNSUPPORTED_VERSION, BW_INVALID_ARGUMENT, BW_UNSUPPORTED (an endpoint
 * of another kind; no CURVE), BW_MALFORMED_MESSAGE, BW_IO_ERROR (at once, where this user may not
 * write to the socket or search its folder, or descriptors or threads lack; the text says more).
 */
BW_API bw_status bw_connect(const char* endpoint, const bw_connect_options* options,
                            bw_connection** connection);

/* The state of a connection. */
typedef struct bw_connection_info {
  size_t struct_size;        /* set it to sizeof(bw_connection_info) */
  uint64_t reconnects;       /* times a daemon was lost and found again */
  uint32_t servers;          /* endpoints */
  int32_t inline_batches;    /* 1: batches of at least one server come as messages */
  const char* inline_reason; /* why; NULL when they do not. Valid until bw_close. */
} bw_connection_info;

/* Fills in the members that `struct_size` has room for, and sets it to their size. The values may
 * change when a daemon comes back, and with the first bw_subscribe, which maps the arena. Threads:
 * any. */
BW_API bw_status bw_connection_get_info(const bw_connection* connection, bw_connection_info* info);

/* Ends the connection and its handle; NULL is fine. A bw_next or bw_subscribe that waits in another
 * thread returns BW_DISCONNECTED. Any later call with the handle gets BW_INVALID_ARGUMENT, or
 * nothing where it returns no status. While batches are held, the daemon hears of it only once the
 * last one is released: until then they stay valid. Subscriptions keep their handles, which must
 * still be freed by bw_unsubscribe. Errors: BW_INVALID_ARGUMENT (it was closed before); BW_FORKED:
 * then nothing was done, and the handle is lost. */
BW_API bw_status bw_close(bw_connection* connection);

/* ---- feeds ------------------------------------------------------------------------------- */

/* A feed that can be subscribed to. */
typedef struct bw_feed {
  const char* name;
  uint64_t sequences; /* of the dataset, when the connection was made */
  uint32_t world;     /* batches of a global step */
  bw_layout layout;
  size_t field_count;
  const bw_field* const* fields;
} bw_feed;

/* The daemon's feeds as of bw_connect; with several endpoints the feeds that all have in common,
 * with the sum of their sequences. The structs are valid until bw_close. NULL for `i` too large. */
BW_API size_t bw_feed_count(const bw_connection* connection);
BW_API const bw_feed* bw_feed_at(const bw_connection* connection, size_t i);

/* A feed that is configured, and could not be served when the connection was made: its data are
 * missing, for one. bw_subscribe waits for it, up to `timeout_ms` and the daemon's feed_grace; what
 * it looks like is known to a connection that is made later. */
typedef struct bw_absent_feed {
  const char* name;
  const char* reason; /* may be empty */
} bw_absent_feed;

/* With several endpoints, a feed that one of them cannot serve and all of them have. The structs
 * are valid until bw_close. NULL for `i` too large. A daemon of version 0.1 names none. */
BW_API size_t bw_absent_feed_count(const bw_connection* connection);
BW_API const bw_absent_feed* bw_absent_feed_at(const bw_connection* connection, size_t i);

/* ---- subscriptions ----------------------------------------------------------------------- */

#define BW_AUTO (-1)
#define BW_MAX_WORST_FIRST 16

typedef struct bw_subscribe_options {
  size_t struct_size; /* sizeof(bw_subscribe_options) */
  const char* feed;   /* required */
  bw_mode mode;
  /* For BW_SHARDED. BW_AUTO: the environment's RANK and WORLD_SIZE; 0 of 1 when both are absent.
   * `ranks` must divide the feed's world. */
  int32_t rank;
  int32_t ranks;
  uint32_t window; /* most batches held unreleased; the daemon may grant fewer; at least 1 */
  uint64_t epoch;  /* where to start */
  uint64_t step;
  uint64_t epochs; /* number to deliver, the first included however late it begins; 0: no end */
  /* NULL: any plan will do. Otherwise BW_FINGERPRINT_MISMATCH unless the plan is this one. */
  const bw_fingerprint* fingerprint;
  /* So many batches of the first epoch, those with most frames, padding counted, come before all
     others, largest first, marked `rehearsal`: a job that runs out of memory does so at once. They
     come again at their place. 0 to BW_MAX_WORST_FIRST; of each server. */
  uint32_t worst_first;
  uint32_t reserved; /* 0 */
  /* 1: its batches may be written to: they are mapped privately, or are copies, which a thread
   * makes ahead, and whose memory is kept until bw_unsubscribe. No other subscription sees what is
   * written, and it is lost with bw_release. 0: a write is a fault. */
  uint32_t writable;
  /* For BW_SHARDED: how many of the ranks are on this host, whose daemon keeps a slot for each. 0:
   * LOCAL_WORLD_SIZE, SLURM_STEP_TASKS_PER_NODE, SLURM_NTASKS_PER_NODE or
   * OMPI_COMM_WORLD_LOCAL_SIZE of the environment, and without these unknown: then ranks that have
   * not come within some seconds are taken to be elsewhere. */
  uint32_t ranks_here;
  /* What bw_subscription_terms() said where `fingerprint` is from: BW_FINGERPRINT_MISMATCH then
   * names each setting that is another, with both values. NULL: it names parts of the
   * fingerprint. */
  const char* terms;
  /* For BW_QUEUE: how many epochs the queue has, from its epoch 0 on: BW_END comes behind the one
   * before this, and at once where the queue is there already, however many workers there are and
   * however late each begins. 0: no such end. `epochs` counts for this subscription alone. */
  uint64_t until_epoch;
} bw_subscribe_options;
#define BW_SUBSCRIBE_OPTIONS_INIT                                                                \
  {                                                                                              \
    sizeof(bw_subscribe_options), NULL, BW_REPLICA, BW_AUTO, BW_AUTO, 4, 0, 0, 0, NULL, 0, 0, 0, \
        0, NULL, 0                                                                               \
  }

/* Subscribes to a feed. The daemon starts to prepare batches at once.
 *
 * With BW_QUEUE each batch goes to one of the feed's queue subscriptions that has room. bw_release
 * or bw_batch_done says that its batch is done: a batch that is given back by bw_return, or is not
 * done when its client is gone, goes to another client, and a batch that is done never comes again.
 * Order and position are the queue's: `epoch` and `step` are ignored, and positions only inform. An
 * epoch ends when all of its batches are released, or held by this subscription itself. A queue has
 * one endpoint.
 *
 * With several endpoints `window` is for each server; all servers' feeds must have the same world
 * and the same fields. A position names merged steps, and a fingerprint that is a hash over the
 * servers' fingerprints in their order.
 *
 * Errors: BW_NOT_FOUND (the text lists the feeds), BW_INVALID_ARGUMENT (ranks, position),
 * BW_FINGERPRINT_MISMATCH (the text names what differs), BW_SCHEMA_MISMATCH (feeds that cannot be
 * merged), BW_DOES_NOT_FIT (too few slots: it takes one more than ranks on this host, and the text
 * has the number; or more epochs at once than are kept), BW_TIMED_OUT, BW_DISCONNECTED, BW_BUSY,
 * BW_FORKED, BW_IO_ERROR, BW_MALFORMED_MESSAGE, and what the feed itself failed with. */
BW_API bw_status bw_subscribe(bw_connection* connection, const bw_subscribe_options* options,
                              bw_subscription** subscription);

/* Ends the subscription and frees its handle, which no other call may be using; NULL is fine.
 * Batches that are held stay valid, and the daemon hears of it once the last one is released.
 * Errors: BW_FORKED; then nothing was done, and the handle is lost. */
BW_API bw_status bw_unsubscribe(bw_subscription* subscription);

/* What the daemon granted; with several servers, the sums of their steps and windows. */
typedef struct bw_grant {
  bw_fingerprint fingerprint;
  uint64_t epoch; /* where it starts */
  uint64_t step;
  uint64_t steps;            /* global steps of that epoch */
  uint32_t batches_per_step; /* for this subscription */
  uint32_t world;
  uint32_t rank;
  uint32_t ranks;
  uint32_t window;
} bw_grant;

/* Valid until bw_unsubscribe. */
BW_API const bw_grant* bw_subscription_grant(const bw_subscription* subscription);

/* The settings and the seed behind the granted fingerprint, as text: one `key = value` a line,
 * spelled as in the daemon's configuration. With several endpoints each line begins with its
 * server's number. Save it in a checkpoint, beside the position. Empty when the daemon does not
 * say; NULL without a subscription. Valid until bw_unsubscribe. */
BW_API const char* bw_subscription_terms(const bw_subscription* subscription);

/* Waits up to `timeout_ms` (0: looks once) for the next event, in the order of epoch and index.
 *   BW_OK: `*batch` is a batch, to be given to bw_release. `*epoch` is its epoch.
 *   BW_EPOCH_END: behind the last batch of epoch `*epoch`. It does not wait for releases.
 *   BW_END: the counted epochs are over.
 * `*batch` is NULL unless BW_OK is returned. `epoch` may be NULL. A call during which a daemon
 * comes back may take 100 ms more than the limit.
 * Errors: BW_TIMED_OUT (the text says what it waited for, or that the daemon is gone and since
 * when; call again), BW_DISCONNECTED (gone for `reconnect_ms`, or bw_close was called),
 * BW_FINGERPRINT_MISMATCH (it came back with another plan), BW_BUSY, BW_FORKED,
 * BW_INVALID_ARGUMENT, BW_MALFORMED_MESSAGE, BW_IO_ERROR, and what the feed failed with.
 * All except for BW_TIMED_OUT, BW_BUSY and BW_INVALID_ARGUMENT are final for the subscription,
 * whose position stays that of the first batch it did not hand out. With several endpoints the text
 * names the server. */
BW_API bw_status bw_next(bw_subscription* subscription, int64_t timeout_ms, bw_batch** batch,
                         uint64_t* epoch);

/* The position of the first batch that bw_next has not handed out. Batches already handed out of an
 * incomplete step come again when a subscription starts there. The fingerprint is that of the
 * position's epoch; after an epoch's end it may be the last one's until the daemon has begun the
 * next.
 * Threads: any. */
BW_API bw_status bw_subscription_position(const bw_subscription* subscription,
                                          bw_position* position);

/* The number of global steps of the epoch that bw_subscription_position names, and that epoch
 * (`epoch` may be NULL). A growing dataset has more in a later epoch. Threads: any. */
BW_API bw_status bw_subscription_steps(const bw_subscription* subscription, uint64_t* epoch,
                                       uint64_t* steps);

#define BW_MAX_UPCOMING 1024

/* A batch that is to come, as its plan has it: no data are read for it. A batch-major tensor of it
 * is [rows, length, ...], so that rows * length, padding counted, is what it costs. A row whose
 * record is corrupt may be missing later. */
typedef struct bw_upcoming {
  uint64_t epoch;
  uint64_t step;
  uint64_t index;  /* step * world + place in the step */
  uint64_t frames; /* real ones, of all rows */
  uint32_t rows;
  uint32_t length;    /* of the longest row, in frames */
  uint32_t rehearsal; /* 1: of `worst_first`; it comes again at its place */
  uint32_t certain;   /* 0: of a queue, and another worker may get it */
} bw_upcoming;

/* The batches that come next, in their order, from the first that bw_next has not handed out: for
 * warming up what depends on shapes, or for a schedule. `*count` is the number that `batches` has
 * place for, 1 to BW_MAX_UPCOMING, and is set to how many there are. They end where an epoch is not
 * planned yet, and with the epoch after the one at hand. Waits up to `timeout_ms` for the daemon's
 * answer, as a rule a millisecond.
 * Threads: as bw_next. Errors: BW_INVALID_ARGUMENT, BW_UNSUPPORTED (a daemon of version 0.2 or
 * older, or several endpoints), BW_TIMED_OUT, BW_BUSY, after which the subscription goes on;
 * BW_FORKED, BW_DISCONNECTED, and what the feed failed with. */
BW_API bw_status bw_subscription_upcoming(bw_subscription* subscription, int64_t timeout_ms,
                                          bw_upcoming* batches, size_t* count);

/* ---- batches ----------------------------------------------------------------------------- */

/* Gives the batch back and frees its handle; NULL is fine. With BW_QUEUE it also says that the
 * batch is done: see bw_return for one that is not. Threads: any, at any time.
 * Errors: BW_FORKED; then nothing was done, and the parent still holds the batch. */
BW_API bw_status bw_release(bw_batch* batch);

/* With BW_QUEUE: gives the batch back undone, and frees its handle: it goes to another worker, or
 * comes here again, before all batches that were not begun. A batch that bw_batch_done has marked
 * is given back as by bw_release, and so is one of another mode. A daemon older than this call is
 * told at the end of the subscription, and keeps the credit until then. NULL is fine. Threads: any,
 * at any time. Errors: BW_FORKED; then nothing was done, and the parent still holds the batch. */
BW_API bw_status bw_return(bw_batch* batch);

/* With BW_QUEUE: says that the batch is done, as bw_release does, but keeps holding it, and its
 * bytes stay as they are. In other modes, and for NULL, does nothing. bw_release is still due.
 * Threads: any, at any time before that. Errors: BW_FORKED; then nothing was done. */
BW_API bw_status bw_batch_done(bw_batch* batch);

/* The header of a batch. Arrays have one entry per row. */
typedef struct bw_batch_header {
  const char* feed;
  bw_fingerprint fingerprint;
  uint64_t epoch;
  uint64_t step;
  uint64_t index; /* step * world + place in the step */
  uint32_t world; /* batches of a global step */
  bw_layout layout;
  uint32_t sequences;      /* B: rows */
  uint32_t batch_length;   /* L: longest row */
  uint64_t frames;         /* real ones, of this batch */
  uint64_t step_sequences; /* of the whole global step */
  uint64_t step_frames;
  /* frames * world / step_frames: the mean over a step's batches of loss_weight * (mean loss per
   * frame) is the step's true mean per frame. */
  double loss_weight;
  const uint32_t* lengths;  /* real frames */
  const uint64_t* ordinals; /* place of the sequence in the dataset */
  const uint32_t* starts;   /* first frame within the sequence; NULL: all 0 */
  const uint8_t* flags;     /* bit 0: starts its sequence, bit 1: ends it; NULL: both, everywhere */
  uint64_t bytes;           /* of the batch, headers and payload */
  size_t tensor_count;
  uint32_t rehearsal; /* 1: of `worst_first`; it comes again at its place */
  uint32_t shared; /* 1: it lies in an arena; 0: in memory of its own, as it does when it came as a
                      message, and when it may be written to */
  /* The memory that contains everything this header and its tensors point to: a mapping of the
     arena, the same for many batches, or the batch's own. Page-lock it only where it is shared. */
  const void* memory;
  uint64_t memory_bytes;
  uint32_t
      writable; /* 1: the tensors' bytes may be written to, by a cast; see bw_subscribe_options */
  /* Planned rows whose record is corrupt, of a feed with on_corrupt = "skip": left out, or, where
   * rows may be parts of sequences, all padding. There is always a row with frames. */
  uint32_t rows_lost;
  /* With BW_QUEUE: 1 for a batch that no worker has begun yet, and one more for each that gave it
   * back undone or ended while it had it. 0: in other modes, and where the daemon does not say. */
  uint32_t attempt;
  uint32_t reserved; /* 0 */
} bw_batch_header;

/* One tensor of a batch: row-major, little-endian, without gaps, and read-only unless the header
 * says that it is `writable`. It begins at a multiple of 64 bytes; of 8 in a batch that came as a
 * message. Shape [B, L, ...] or, time-major, [L, B, ...]; [B] for a scalar. Frames behind a row's
 * length are padding. */
typedef struct bw_tensor {
  const char* name;
  const void* data;
  uint64_t bytes;
  bw_dtype dtype;
  bw_kind kind;
  uint32_t ndim;
  uint64_t shape[BW_MAX_DIMENSIONS]; /* zeros behind `ndim` */
  const uint32_t* row_lengths;       /* per row; the batch's `lengths` except for BW_INDEPENDENT and
                                        BW_SCALAR; NULL for BW_SCALAR */
} bw_tensor;

/* Never NULL. Valid until bw_release. */
BW_API const bw_batch_header* bw_batch_get_header(const bw_batch* batch);

/* The key of a row, and its bytes in `*size`, which may be NULL; a terminator follows. NULL when
 * there is no such row. */
BW_API const char* bw_batch_key(const bw_batch* batch, size_t row, size_t* size);

/* A tensor by position, in the order of the dataset's fields, or by name. NULL when there is none.
 * Valid until bw_release. */
BW_API const bw_tensor* bw_batch_tensor(const bw_batch* batch, size_t i);
BW_API const bw_tensor* bw_batch_tensor_named(const bw_batch* batch, const char* name);

/* The position to resume from when this batch was the last one finished. Within a step of several
 * batches it is that step itself until its last batch, so that none is ever left out. For a
 * rehearsal it is the subscription's start. */
BW_API bw_status bw_batch_position(const bw_batch* batch, bw_position* position);

/* Keeps the memory of a batch mapped, at its address, even after the batch is released. Its
 * contents may belong to another batch by then: use this to register the mapping with a third
 * party, such as a GPU's driver, and to unregister it later. NULL without a batch, or out of
 * memory. */
BW_API bw_memory* bw_batch_memory(const bw_batch* batch);

/* Unmaps that memory once nothing else keeps it; NULL is fine. Threads: any, at any time; in a
 * forked child too. */
BW_API void bw_memory_release(bw_memory* memory);

/* ---- faults ------------------------------------------------------------------------------ */

/* Explains writes to read-only batches: one line on standard error names the feed, the batch and
 * the remedy, and then the signal takes its course. Installs a handler of SIGSEGV, which passes
 * faults of other memory on to the handler installed before. Called again, it puts itself before
 * handlers that were installed later. Without this call the library handles no signal. Errors:
 * BW_IO_ERROR. Threads: any. */
BW_API bw_status bw_explain_faults(void);

/* ---- for the Python package -------------------------------------------------------------- */

/* The destructor of a PyCapsule named "dltensor": when no consumer took it, its tensor's deleter is
 * called, and the exception that is set is kept. Does nothing outside a Python process. */
BW_API void bw_dlpack_capsule_end(void* capsule);

#ifdef __cplusplus
}
#endif

#endif
