#pragma once

namespace batchwright {

// What a way to write needs of the processor.
inline bool always() { return true; }
inline bool never() { return false; }
#if defined(__x86_64__)
inline bool has_avx2() { return __builtin_cpu_supports("avx2") != 0; }
inline bool has_avx512() { return __builtin_cpu_supports("avx512f") != 0; }
#endif

}  // namespace batchwright
