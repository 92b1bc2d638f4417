/* Compiled as pedantic C11, once alone and once with client.h after it, so that the header stays
 * usable from C. */
#include <batchwright/writer.h>
#ifdef WITH_CLIENT
#include <batchwright/client.h>
#endif

_Static_assert(BW_OK == 0 && BW_NOT_FOUND == 1 && BW_CORRUPT_RECORD == 2, "statuses");
_Static_assert(BW_STORE_UNAVAILABLE == 3 && BW_INVALID_ARGUMENT == 4, "statuses");
_Static_assert(BW_ALREADY_EXISTS == 6 && BW_SCHEMA_MISMATCH == 7, "statuses");
_Static_assert(BW_UNSUPPORTED_VERSION == 8 && BW_DOES_NOT_FIT == 9, "statuses");
_Static_assert(BW_TIMED_OUT == 12 && BW_IO_ERROR == 14 && BW_UNSUPPORTED == 16, "statuses");
_Static_assert(BW_FORKED == 17 && BW_BUSY == 18 && BW_INTERNAL == 19, "statuses");
_Static_assert(BW_FLOAT32 == 1 && BW_FLOAT16 == 2 && BW_BFLOAT16 == 3 && BW_INT64 == 4, "dtypes");
_Static_assert(BW_INT32 == 5 && BW_INT16 == 6 && BW_UINT8 == 7, "dtypes");
_Static_assert(BW_PRIMARY == 0 && BW_ALIGNED == 1 && BW_INDEPENDENT == 2, "kinds");
_Static_assert(BW_SCALAR == 3 && BW_MAX_DIMENSIONS == 8, "kinds");
_Static_assert(sizeof(bw_field) == 96 && offsetof(bw_field, name) == 0, "bw_field");
_Static_assert(offsetof(bw_field, kind) == 8 && offsetof(bw_field, dtype) == 12, "bw_field");
_Static_assert(offsetof(bw_field, ndim) == 16, "bw_field");
_Static_assert(offsetof(bw_field, category_count) == 20, "bw_field");
_Static_assert(offsetof(bw_field, shape) == 24 && offsetof(bw_field, categories) == 88, "bw_field");
_Static_assert(sizeof(bw_writer_options) == 80 && sizeof(bw_value) == 24, "for ctypes");
_Static_assert(sizeof(bw_sequence) == 32, "for ctypes");
_Static_assert(offsetof(bw_writer_options, opening) == 40, "for ctypes");
_Static_assert(offsetof(bw_writer_options, timeout_ms) == 72, "for ctypes");

int writer_header_is_c11(void);
int writer_header_is_c11(void) {
  const bw_writer_options options = BW_WRITER_OPTIONS_INIT;
  return options.timeout_ms > 0 && options.opening == BW_CREATE_OR_APPEND;
}
