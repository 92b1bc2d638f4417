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
 * Fork: a forked child gets BW_FORKED from every call on what it inherited, and must connect again.
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

/* In place of a group: the sequence of a live feed is in none. */
#define BW_NO_GROUP UINT64_MAX

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
 * counts from the program's folder at this call. It waits for a daemon that is still starting.
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

/* Fills in what `struct_size` has room for, and sets it. The values may change when a daemon comes
 * back, and with the first bw_subscribe. Threads: any. */
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
  /* 1: a live feed, whose sequences producers push; `sequences` is 0. It takes none longer than
     `max_length` frames or of more than `max_bytes`, all fields together (0: no limit), and NaN and
     infinity only with `allow_nan`. */
  int32_t live;
  uint32_t max_length;
  uint64_t max_bytes;
  int32_t allow_nan;
  int32_t reserved;    /* 0 */
  size_t pushed_count; /* so many fields, from the first on, are what producers push */
  const char* joins;   /* the feed whose rows have the others (bw_of); NULL: there are none */
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
  /* 1: its batches may be written to: each is a copy, which a thread makes ahead, in memory for as
   * many as are held and one, kept until bw_unsubscribe. No other subscription sees what is
   * written, and it is lost with bw_release. 0: a write is a fault. */
  uint32_t writable;
  /* For BW_SHARDED: how many of the ranks are on this host, whose daemon keeps a slot for each. 0:
   * LOCAL_WORLD_SIZE, SLURM_STEP_TASKS_PER_NODE, SLURM_NTASKS_PER_NODE or
   * OMPI_COMM_WORLD_LOCAL_SIZE of the environment, and without these unknown: then ranks that have
   * not come within some seconds are taken to be elsewhere. */
  uint32_t ranks_here;
  /* What bw_subscription_terms() said where `fingerprint` is from: BW_FINGERPRINT_MISMATCH then
   * names each setting that is another, with both values; NULL: parts of the fingerprint. */
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
 * position's epoch; after an epoch's end it may be the last one's until the next has begun.
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
 * answer, as a rule a millisecond. Threads: as bw_next. Errors: BW_INVALID_ARGUMENT, BW_UNSUPPORTED
 * (a daemon of version 0.2 or older, or several endpoints), BW_TIMED_OUT, BW_BUSY, after which the
 * subscription goes on; BW_FORKED, BW_DISCONNECTED, and what the feed failed with. */
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
  uint32_t batch_length;   /* L: longest row, up to a multiple of plan.length_multiple */
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
  uint32_t shared;    /* 1: it lies in an arena; 0: in memory of its own (a message, or writable) */
  /* The memory that contains everything this header and its tensors point to: a mapping of the
     arena, the same for many batches, or the batch's own. Page-lock it only where it is shared. */
  const void* memory;
  uint64_t memory_bytes;
  uint32_t writable; /* 1: tensors may be written to, by a cast; see bw_subscribe_options */
  /* Planned rows whose record is corrupt, of a feed with on_corrupt = "skip": left out, or, where
   * rows may be parts of sequences, all padding. There is always a row with frames. */
  uint32_t rows_lost;
  /* With BW_QUEUE: 1 for a batch that no worker has begun yet, and one more for each that gave it
   * back undone or ended while it had it. 0: in other modes, and where the daemon does not say. */
  uint32_t attempt;
  uint32_t reserved; /* 0 */
  /* Of a live feed's batch, one entry per row; NULL for other feeds. */
  const uint64_t* versions;        /* of the model: the oldest that had a part in the row */
  const uint64_t* versions_newest; /* and the newest */
  const uint64_t* groups;          /* BW_NO_GROUP: in none */
  const float* weights;            /* 0: the row counts in no total above; also of order = "file" */
  const uint32_t* producers;       /* places for bw_batch_producer */
  const uint64_t* numbers;         /* of the sequences, as their producers count them */
  uint64_t live_version; /* the last when the step was cut; less a row's version: its staleness */
  uint32_t producer_count;
  uint32_t zeroed;        /* rows of weight 0, since they are too stale */
  const uint32_t* uses;   /* how often the row came before in the epoch; NULL: none did */
  const uint64_t* epochs; /* of the plans that rows were forwarded from; NULL: all 0 */
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

/* The key of a row, or the name of a producer of a live feed's rows, and its bytes in `*size`,
 * which may be NULL; a terminator follows. NULL when there is no such one. */
BW_API const char* bw_batch_key(const bw_batch* batch, size_t row, size_t* size);
BW_API const char* bw_batch_producer(const bw_batch* batch, size_t i, size_t* size);

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
 * party, such as a GPU's driver, and to unregister it later. NULL without one, or out of memory. */
BW_API bw_memory* bw_batch_memory(const bw_batch* batch);

/* Unmaps it once nothing else keeps it; NULL is fine. Threads: any, also in a forked child. */
BW_API void bw_memory_release(bw_memory* memory);

/* ---- live feeds: trainers ---------------------------------------------------------------- */

/* A live feed has no dataset: producers push its sequences, and each says by which version of the
 * model it was made. Its batches come by bw_subscribe and bw_next, as those of any feed, with what
 * is known of their rows in the header. It has one epoch, 0.
 *
 * The calls here take a connection of one endpoint, and the place of bw_next on it: one thread at a
 * time. Errors of all of them: BW_NOT_FOUND (no such feed), BW_INVALID_ARGUMENT (the feed
 * is not live), BW_UNSUPPORTED (an older daemon, or several endpoints), BW_TIMED_OUT,
 * BW_DISCONNECTED, BW_BUSY, BW_FORKED. */

#define BW_LAST_VERSION ((uint64_t)1 << 62) /* versions are numbers from 0 to this one */

/* Announces a version of the model; call it before the weights are sent out: producers may push it
 * from then on. A lower one than the last is ignored, unless `restored` is 1: the model is one of a
 * checkpoint. Then `replays` 1 says that the trainer takes the steps that followed the checkpoint
 * once more, as it took them, and 0 that it goes on with new ones: what was made with a later
 * version belongs to a line that was given up. Returns when the daemon has it, within the
 * connection's `timeout_ms`. More errors: BW_INVALID_ARGUMENT (above BW_LAST_VERSION). */
BW_API bw_status bw_advance(bw_connection* connection, const char* feed, uint64_t version,
                            int32_t restored, int32_t replays);

/* Waits up to `timeout_ms` (0: looks once) until a version above `above` is announced, and gives
 * the last one in `*version`; it does so with BW_TIMED_OUT as well, where the daemon answered. */
BW_API bw_status bw_wait_version(bw_connection* connection, const char* feed, uint64_t above,
                                 int64_t timeout_ms, uint64_t* version);

/* Has steps from this one on kept, so that a trainer may begin again there: in as many bytes as the
 * pool has, the oldest go first. The lowest mark of all connections counts; that of one that ended,
 * until another marks a later step. At a step that is gone bw_subscribe says which is kept. */
BW_API bw_status bw_keep_from(bw_connection* connection, const char* feed, uint64_t step);

/* No more will come: waiting claims and pushes get BW_END, the rest is delivered in short steps,
 * and then bw_next returns BW_END. Returns as bw_advance does. */
BW_API bw_status bw_end_feed(bw_connection* connection, const char* feed);

/* ---- live feeds: producers --------------------------------------------------------------- */

/*     bw_produce_options options = BW_PRODUCE_OPTIONS_INIT;
 *     options.feed = "rollouts";
 *     options.name = "actor-07";
 *     if (bw_produce(connection, &options, &producer) != BW_OK) ...bw_error_message()...
 *     while ((status = bw_claim(producer, 1, 600000, &version)) == BW_OK) {
 *       bw_origin origin = BW_ORIGIN_INIT;
 *       origin.version = version;
 *       ...make it...
 *       if (bw_push(producer, &sequence, &origin, 600000, NULL) != BW_OK) ...
 *     }
 *     bw_producer_close(producer, 10000);
 *
 * A push returns once the daemon has the sequence: what was accepted is delivered even if its
 * producer ends. One that does not fit waits: so a slow trainer holds its producers back.
 *
 * Lifetime: a producer has a session with the daemon of its own, and goes on when its connection is
 *   closed. When the daemon goes away, calls look for it as bw_next does, and then go on.
 * Threads: a producer is used by one thread at a time, and a second one gets BW_BUSY; it may move
 *   between threads. Producers have nothing in common, and block no bw_next.
 *   bw_producer_close may come while another thread is in a call, which then ends with
 *   BW_DISCONNECTED. A forked child gets BW_FORKED.
 * Errors of all calls here: BW_INVALID_ARGUMENT, BW_BUSY, BW_FORKED, which change nothing;
 *   BW_TIMED_OUT (the text says what it waited for; call again); BW_END (the feed has ended);
 *   BW_DISCONNECTED (gone for `reconnect_ms`, or closed), BW_MALFORMED_MESSAGE and BW_IO_ERROR,
 *   after which the producer can only be closed. */
typedef struct bw_producer bw_producer;
typedef struct bw_room bw_room;

typedef struct bw_produce_options {
  size_t struct_size; /* sizeof(bw_produce_options) */
  const char* feed;   /* required; a live one */
  /* 1 to 64 bytes: the same after a restart, so that its numbers go on where they were. One
   * producer at a time has it. NULL: a name of its own, drawn at random. */
  const char* name;
  /* Memory that is shared with a daemon on this machine, and into which sequences are written:
   * what is accepted and not read yet takes room there. The daemon may grant less. 0: sequences
   * travel as messages, as they do to a daemon elsewhere. */
  uint64_t area_bytes;
  /* Not 0: bw_claim and the calls that push return BW_PENDING after so many milliseconds, and wait
   * on when they are called again with the same arguments: for programs that must look up from a
   * wait. bw_producer_forget gives it up. */
  int64_t slice_ms;
} bw_produce_options;
#define BW_PRODUCE_OPTIONS_INIT \
  { sizeof(bw_produce_options), NULL, NULL, 67108864, 0 }

/* Becomes a producer of a live feed, within the connection's `timeout_ms`; the connection has one
 * endpoint. Errors: BW_NOT_FOUND (the text lists the feeds), BW_INVALID_ARGUMENT (the feed is not
 * live; the name), BW_BUSY (the name is in use), BW_UNSUPPORTED (an older daemon; several
 * endpoints), BW_DOES_NOT_FIT (too many producers), and those of bw_connect. */
BW_API bw_status bw_produce(bw_connection* connection, const bw_produce_options* options,
                            bw_producer** producer);

/* The state of a producer. */
typedef struct bw_producer_info {
  size_t struct_size;   /* set it to sizeof(bw_producer_info) */
  const char* name;     /* valid until bw_producer_close */
  uint64_t incarnation; /* of the feed: with another one the daemon knows nothing of what was */
  uint64_t next;        /* number of the next sequence that will be accepted */
  uint64_t version;     /* the last that the producer heard of */
  uint64_t area_bytes;  /* 0: sequences travel as messages */
  uint64_t area_used;
  uint64_t reconnects; /* times the daemon was lost and found again */
} bw_producer_info;

/* Fills in the members that `struct_size` has room for, and sets it to their size. */
BW_API bw_status bw_producer_get_info(bw_producer* producer, bw_producer_info* info);

/* Waits up to `timeout_ms` until `count` sequences more may be begun without growing too stale, and
 * gives the version to begin them with. A push uses up its producer's oldest claim; one that comes
 * to nothing is given back by bw_abandon. BW_TIMED_OUT names what was waited for: pool, staleness
 * or trainer. More errors: BW_DOES_NOT_FIT (never so many; the text says how many). */
BW_API bw_status bw_claim(bw_producer* producer, uint32_t count, int64_t timeout_ms,
                          uint64_t* version);

/* The row that a sequence belongs to, where the feed joins rows (bw_feed.joins): the daemon makes
 * it once more, and takes what is not pushed from there: as many frames from `start` on as the
 * sequence has. BW_FINGERPRINT_MISMATCH: the rows' feed has other data or settings by now. */
typedef struct bw_of {
  size_t struct_size; /* sizeof(bw_of) */
  const char* feed;
  bw_fingerprint fingerprint;
  uint64_t epoch;
  uint64_t ordinal;
  uint32_t start;
  uint32_t use;
} bw_of;

/* Names a row of a batch, whose feed is valid until bw_release. Errors: BW_NOT_FOUND. */
BW_API bw_status bw_batch_row(const bw_batch* batch, size_t row, bw_of* of);

/* Where a sequence comes from. */
typedef struct bw_origin {
  size_t struct_size;      /* sizeof(bw_origin) */
  uint64_t version;        /* the oldest version of the model that had a part in it */
  uint64_t version_newest; /* of one that went on across versions; 0: the same as `version` */
  uint64_t group;          /* unique in the feed, of several producers too; BW_NO_GROUP: none */
  uint32_t group_size;     /* members; 0 without a group */
  float weight;            /* of its rows; 0 and up, and finite */
  const bw_of* of;         /* the row that it belongs to; NULL where the feed joins none */
  uint64_t epoch;          /* of the plan that it was forwarded from; else 0 */
} bw_origin;
#define BW_ORIGIN_INIT \
  { sizeof(bw_origin), 0, 0, BW_NO_GROUP, 0, 1.0F, NULL, 0 }

/* Pushes a sequence, which is copied, and returns when it is accepted; then `*number`, which may be
 * NULL, is its number: a producer's accepted sequences count from 0. Values are those of the first
 * bw_feed.pushed_count fields. One without a key (NULL and 0 bytes) gets NAME/NUMBER. `origin`
 * NULL: the version of the last claim, or the last that was heard of. Waits up to `timeout_ms`.
 *
 * Nothing of it is sent after BW_SCHEMA_MISMATCH (a value that does not fit its field, NaN or
 * infinity unless the feed allows them; names key and field), BW_DOES_NOT_FIT (longer or larger
 * than the feed allows) and BW_INVALID_ARGUMENT (the origin). From the daemon BW_DOES_NOT_FIT and
 * BW_INVALID_ARGUMENT say that it can never be accepted (its group is too large, its version was
 * never announced). BW_TIMED_OUT because the daemon does not answer leaves it open whether the
 * sequence is accepted: bw_producer_get_info tells after the next call. */
BW_API bw_status bw_push(bw_producer* producer, const bw_sequence* sequence,
                         const bw_origin* origin, int64_t timeout_ms, uint64_t* number);

/* The same for `count` sequences, at less cost. `origins` has one for each, or is NULL.
 * `*accepted`, which may be NULL, is how many were accepted: with an error the sequence at that
 * place is the first that was not. Before anything is sent all are checked, except for NaN. */
BW_API bw_status bw_push_many(bw_producer* producer, const bw_sequence* sequences, size_t count,
                              const bw_origin* origins, int64_t timeout_ms, size_t* accepted);

/* Room for a sequence that the program writes in place: in the producer's area, where there is one.
 * `lengths` are those of the fields, in their order: T of the primary field and of each aligned
 * one, U of an independent one, 1 of a scalar. It ends with bw_commit or bw_room_drop; several may
 * be open. Errors: BW_SCHEMA_MISMATCH, BW_DOES_NOT_FIT. */
BW_API bw_status bw_reserve(bw_producer* producer, const uint32_t* lengths, size_t count,
                            int64_t timeout_ms, bw_room** room);

/* Where the value of a field is to be written, [length, ...], at a multiple of 64 bytes, and its
 * bytes in `*bytes`, which may be NULL. What lies there at first is undefined. NULL for a field
 * that is none. Valid until the room ends, also when the producer is closed. Threads: any. */
BW_API void* bw_room_field(const bw_room* room, size_t field, uint64_t* bytes);

/* Keeps that memory mapped, at its address, after the room has ended, as bw_batch_memory does. NULL
 * without a room, or out of memory. */
BW_API bw_memory* bw_room_memory(const bw_room* room);

/* Pushes what was written, and ends the room. After an error it may be committed again; not where
 * a daemon was sent it and did not answer in time, since it may have accepted it: then
 * BW_INVALID_ARGUMENT says so, and bw_room_drop() is left. */
BW_API bw_status bw_commit(bw_room* room, const char* key, size_t key_bytes,
                           const bw_origin* origin, int64_t timeout_ms, uint64_t* number);

/* Gives the room up; NULL is fine. Errors: BW_BUSY, after which it is still there. */
BW_API bw_status bw_room_drop(bw_room* room);

/* Says that `count` members of the group will not come; 0: all that are missing. It may come before
 * the first member, and has no effect once the group is in a batch. With BW_NO_GROUP, that `count`
 * claimed sequences will not come; 0: all. Waits for the daemon as long as the connection does. */
BW_API bw_status bw_abandon(bw_producer* producer, uint64_t group, uint32_t count);

/* Takes a sequence of this producer back, if it still waits. */
BW_API bw_status bw_abandon_number(bw_producer* producer, uint64_t number);

/* What became of a sequence. */
typedef uint8_t bw_outcome;
enum {
  BW_OUTCOME_UNKNOWN = 0, /* the daemon does not know it, or no longer */
  BW_OUTCOME_WAITING = 1,
  BW_OUTCOME_DELIVERED = 2,
  BW_OUTCOME_DONE = 3, /* every trainer that was due it has released it */
  BW_OUTCOME_DROPPED_STALE = 4,
  BW_OUTCOME_ABANDONED = 5,
  BW_OUTCOME_LOST = 6 /* the daemon ended, and kept it in memory alone */
};

/* So many of a producer's sequences are in each state. */
typedef struct bw_outcomes_total {
  size_t struct_size; /* set it to sizeof(bw_outcomes_total) */
  uint64_t unknown;
  uint64_t waiting;
  uint64_t delivered;
  uint64_t done;
  uint64_t dropped_stale;
  uint64_t abandoned;
  uint64_t lost;
  uint64_t refused_full; /* pushes that found no room in time, and may have been repeated */
  uint64_t duplicates;   /* sequences that were offered again, and counted once */
} bw_outcomes_total;

/* Fills in what `struct_size` has room for, and sets it. Waits up to `timeout_ms`. */
BW_API bw_status bw_outcomes(bw_producer* producer, int64_t timeout_ms, bw_outcomes_total* total);

#define BW_MAX_OUTCOMES 65536
/* What became of the sequences from number `first` on. `*count`: the places of `outcomes`, 1 to
 * BW_MAX_OUTCOMES, and then how many there are. Older than the last 65,536 are unknown. */
BW_API bw_status bw_outcomes_of(bw_producer* producer, uint64_t first, int64_t timeout_ms,
                                bw_outcome* outcomes, size_t* count);

/* Gives up the call that returned BW_PENDING. A claim that is granted nevertheless is given back;
 * what a push has offered may still be accepted: bw_producer_get_info tells after the next call. */
BW_API bw_status bw_producer_forget(bw_producer* producer);

/* Ends the producer and frees its handle, which no other call may begin to use; NULL is fine. What
 * is accepted stays, claims end. Waits up to `timeout_ms` for the answer to a push that was not
 * waited for. Errors: BW_FORKED; then nothing was done, and the handle is lost. */
BW_API bw_status bw_producer_close(bw_producer* producer, int64_t timeout_ms);

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
