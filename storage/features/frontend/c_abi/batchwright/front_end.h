#ifndef BATCHWRIGHT_FRONT_END_H
#define BATCHWRIGHT_FRONT_END_H

/*
 * Features of sound in memory, by the same code and the same words as `batchwright ingest audio
 * --like` and a feed's recipe: what a model was trained on, for serving it.
 *
 *     bw_front_end_options options = BW_FRONT_END_OPTIONS_INIT;
 *     bw_front_end* front_end = NULL;
 *     options.like = "kaldi";
 *     options.sample_rate_hz = 16000;
 *     if (bw_front_end_open(&options, &front_end) != BW_OK) ...bw_front_end_error_message()...
 *     const bw_sound sound = {samples, sample_count, BW_INT16, 0};
 *     const uint64_t values = bw_front_end_frames(front_end, sample_count) *
 *                             bw_front_end_values(front_end);
 *     float* features = malloc(values * sizeof *features);
 *     if (bw_front_end_compute(front_end, &sound, features, values) != BW_OK) ...
 *     bw_front_end_close(front_end);
 *
 * Lifetime: arguments are read before a call returns. Texts that the accessors return are valid
 *   until the front end is freed by bw_front_end_close.
 * Threads: any number at once on one front end, which never changes; bw_front_end_close comes
 *   behind all of them. Fork: a front end is memory alone, and works in a forked child.
 * Errors: functions return a bw_status; bw_front_end_error_message() then says what was found,
 *   where, and what is allowed. No function throws, aborts or writes to a stream.
 * Bits: the same sound gives the same features each time, whatever thread computes them.
 * Growth: options begin with their own size, and get new members only at their end; so a program
 *   built with an older header goes on working.
 *
 * The library is libbatchwright-storage, which also has batchwright/writer.h.
 */

#include <batchwright/values.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The ABI version of this header; bw_front_end_abi_version() is the library's. They must be equal.
 */
#define BW_FRONT_END_ABI_VERSION 1

typedef struct bw_front_end bw_front_end;

/* ---- the library ------------------------------------------------------------------------- */

BW_API uint32_t bw_front_end_abi_version(void);

/* The message of this thread's last failed call. Valid until this thread's next call here. Never
 * NULL. */
BW_API const char* bw_front_end_error_message(void);

/* The status in words, such as "invalid_argument"; "unknown" for a number that is none. */
BW_API const char* bw_front_end_status_name(bw_status status);

/* ---- opening ----------------------------------------------------------------------------- */

typedef struct bw_front_end_options {
  size_t struct_size; /* sizeof(bw_front_end_options) */
  /* The convention that `settings` change: htk, kaldi, kaldi-lhotse, kaldi-hires, whisper, nemo,
     librosa, torchaudio, tacotron2, hifigan or variani. NULL: `settings` are all those that
     bw_front_end_setting_at tells of another front end, the convention's name, the kind of features
     and the rate among them. */
  const char* like;
  const char* features; /* "logmel", "mfcc" or "plp"; NULL: logmel, or what all the settings say */
  /* What differs from the convention, such as {"mel_bands", "40"}: numbers, true or false, words,
     by the names that `batchwright ingest audio` and a recipe's `options` have, with _ for -. */
  const bw_setting* settings;
  size_t setting_count;
  uint32_t sample_rate_hz; /* 0: what all the settings say */
  uint32_t reserved;       /* 0 */
} bw_front_end_options;
#define BW_FRONT_END_OPTIONS_INIT \
  { sizeof(bw_front_end_options), NULL, NULL, NULL, 0, 0, 0 }

/* Makes a front end: filters and tables, some hundred KiB at most with usual settings.
 * Errors: BW_INVALID_ARGUMENT (names the option, what was found and what is allowed),
 * BW_UNSUPPORTED, BW_DOES_NOT_FIT. */
BW_API bw_status bw_front_end_open(const bw_front_end_options* options, bw_front_end** front_end);

/* Frees it. NULL is fine. */
BW_API void bw_front_end_close(bw_front_end* front_end);

/* ---- asking ------------------------------------------------------------------------------ */

/* Values of one frame; 0 for NULL. */
BW_API uint32_t bw_front_end_values(const bw_front_end* front_end);

/* Frames of so many samples, as the convention counts them; 0 of none, and for NULL. */
BW_API uint64_t bw_front_end_frames(const bw_front_end* front_end, uint64_t samples);

/* The settings by which features are made: those that every front end has, and those that differ
 * from convention htk. NULL for `i` too large. */
BW_API size_t bw_front_end_setting_count(const bw_front_end* front_end);
BW_API const bw_setting* bw_front_end_setting_at(const bw_front_end* front_end, size_t i);

/* ---- computing --------------------------------------------------------------------------- */

/* One channel of sound: samples [count], aligned as their dtype is. BW_INT16, of which 32768 would
 * be 1; or BW_FLOAT32 in -1 .. 1, finite, whatever the convention multiplies samples by. */
typedef struct bw_sound {
  const void* samples; /* may be NULL when `count` is 0 */
  uint64_t count;
  bw_dtype dtype;
  int32_t reserved; /* 0 */
} bw_sound;

/* Writes [bw_front_end_frames, bw_front_end_values] float32, row-major, to `features`, which has
 * room for `room` values. It may take memory of a few times the features' size while it works.
 * Errors, behind which `features` is as it was: BW_INVALID_ARGUMENT (a dtype, a sample that is not
 * finite, too little room), BW_DOES_NOT_FIT (out of memory). */
BW_API bw_status bw_front_end_compute(const bw_front_end* front_end, const bw_sound* sound,
                                      float* features, uint64_t room);

#ifdef __cplusplus
}
#endif

#endif
