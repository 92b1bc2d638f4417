/* Compiled as pedantic C11, alone, so that the header stays usable from C. */
#include <batchwright/front_end.h>

_Static_assert(sizeof(bw_front_end_options) == 48 && sizeof(bw_sound) == 24, "for ctypes");
_Static_assert(offsetof(bw_front_end_options, features) == 16, "for ctypes");
_Static_assert(offsetof(bw_front_end_options, setting_count) == 32, "for ctypes");
_Static_assert(offsetof(bw_front_end_options, sample_rate_hz) == 40, "for ctypes");
_Static_assert(offsetof(bw_sound, count) == 8 && offsetof(bw_sound, dtype) == 16, "for ctypes");
_Static_assert(sizeof(bw_setting) == 16 && offsetof(bw_setting, value) == 8, "for ctypes");

int front_end_header_is_c11(void);
int front_end_header_is_c11(void) {
  const bw_front_end_options options = BW_FRONT_END_OPTIONS_INIT;
  return options.like == NULL && options.struct_size == sizeof options;
}
