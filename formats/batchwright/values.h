#ifndef BATCHWRIGHT_VALUES_H
#define BATCHWRIGHT_VALUES_H

/* The common part of batchwright/client.h, batchwright/writer.h and batchwright/front_end.h:
 * statuses, the description of a field, sequences, and settings. Numbers are stable: new ones are
 * appended. */

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define BW_API __attribute__((visibility("default")))
#else
#define BW_API
#endif

/* Above 0: an error, of the daemon or of this library. Below 0: news that are no error. */
typedef int32_t bw_status;
enum {
  BW_PENDING = -3,   /* the call goes on, and is made again; see bw_produce_options */
  BW_END = -2,       /* the counted epochs are over; nothing follows */
  BW_EPOCH_END = -1, /* an epoch is over; the next one follows */
  BW_OK = 0,
  BW_NOT_FOUND = 1,         /* no feed, tensor, category or dataset of this name */
  BW_CORRUPT_RECORD = 2,    /* stored bytes fail verification; a feed stops there */
  BW_STORE_UNAVAILABLE = 3, /* no dataset, or one that cannot be read; a feed stops there */
  BW_INVALID_ARGUMENT = 4,  /* correct the call */
  BW_BAD_CONFIGURATION = 5,
  BW_ALREADY_EXISTS = 6,        /* the key is taken; or the dataset exists and was to be created */
  BW_SCHEMA_MISMATCH = 7,       /* the value does not fit the dataset's fields */
  BW_UNSUPPORTED_VERSION = 8,   /* daemon or dataset have another version; upgrade one side */
  BW_DOES_NOT_FIT = 9,          /* out of memory or address space, or too large */
  BW_FINGERPRINT_MISMATCH = 10, /* the plan is not the one expected; start anew deliberately */
  BW_MALFORMED_MESSAGE = 11,    /* bytes from the daemon fail verification */
  BW_TIMED_OUT = 12,            /* nothing came in time; call again, or give up */
  BW_DISCONNECTED = 13,         /* the daemon is gone, or bw_close was called; connect again */
  BW_IO_ERROR = 14,             /* the operating system refused: a full disk, for one */
  BW_INFEASIBLE = 15,
  BW_UNSUPPORTED = 16, /* this build cannot do it */
  BW_FORKED = 17,      /* called in a forked child; connect or open anew there */
  BW_BUSY = 18,        /* in use by another thread, or by a reader; the text says which */
  BW_INTERNAL = 19     /* a broken promise of our own; report it */
};

typedef int32_t bw_dtype;
enum {
  BW_FLOAT32 = 1,
  BW_FLOAT16 = 2,  /* carried as 16-bit patterns */
  BW_BFLOAT16 = 3, /* carried as 16-bit patterns */
  BW_INT64 = 4,
  BW_INT32 = 5,
  BW_INT16 = 6,
  BW_UINT8 = 7
};

/* How a field relates to the frames of its sequence; T is the sequence's length in frames. */
typedef int32_t bw_kind;
enum {
  BW_PRIMARY = 0,     /* [T, ...]; every dataset has exactly one such field */
  BW_ALIGNED = 1,     /* [T, ...], one entry a frame of the primary */
  BW_INDEPENDENT = 2, /* [U, ...], with a length of its own, which may be 0 */
  BW_SCALAR = 3       /* one value a sequence */
};

#define BW_MAX_DIMENSIONS 8

/* One named tensor of every sequence. */
typedef struct bw_field {
  const char* name; /* 1 to 255 bytes */
  bw_kind kind;
  bw_dtype dtype;
  uint32_t ndim;                     /* dimensions of one frame, 0 to 6; 0 for a scalar */
  uint32_t category_count;           /* 0: its values have no names */
  uint64_t shape[BW_MAX_DIMENSIONS]; /* of one frame, which takes at most 16 MiB; zeros behind */
  const char* const* categories;     /* names of the values 0, 1, ..., for integers; or NULL */
} bw_field;

/* The value of one field of one sequence: row-major, little-endian, without gaps, at any address.
 */
typedef struct bw_value {
  const void* data; /* may be NULL when `bytes` is 0 */
  uint64_t bytes;   /* length times the bytes of one frame */
  uint64_t length;  /* in frames: T, U, or 1 for a scalar */
} bw_value;

/* A sequence under its key, which needs no terminator, with a value for each field in the order of
 * the fields. */
typedef struct bw_sequence {
  const char* key;
  size_t key_bytes; /* 1 to 511 */
  const bw_value* values;
  size_t value_count;
} bw_sequence;

/* A setting as text, such as {"sample_rate_hz", "22050"}. */
typedef struct bw_setting {
  const char* name;
  const char* value;
} bw_setting;

#endif
