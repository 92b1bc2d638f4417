#include "daemon/assembly/copying/cast_ways.h"

#include <array>
#include <cstring>

#include "daemon/assembly/copying/copy_ways.h"
#include "daemon/assembly/copying/processor.h"

#if defined(__x86_64__)
#if !defined(__clang__)
// GCC 12 takes _mm512_undefined_epi32(), on which its own intrinsics are built, for a mistake.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

// F16C and NEON round float16 as it is wanted. AVX512-BF16 would not do for bfloat16: it takes
// subnormals for zero. So bfloat16 is rounded by adding a little less than half of the last bit
// that stays, and the carry does the rest; NaN alone, whose carry could make it infinite, goes
// another way.

namespace batchwright {
namespace {

constexpr std::uint32_t kInfinity = 0x7F80'0000;
constexpr std::uint32_t kNoSign = 0x7FFF'FFFF;

/// The least finite numbers that become infinite: half of a last bit above the greatest number,
/// 65,520 for float16.
constexpr std::uint32_t kTooLargeFloat16 = 0x477F'F000;
constexpr std::uint32_t kTooLargeBfloat16 = 0x7F7F'8000;

constexpr std::uint32_t kFloatsOfLine = kCacheLine / sizeof(std::uint16_t);

template <std::uint16_t (*kCast)(std::uint32_t), std::uint32_t kTooLarge>
std::uint64_t cast_portably(std::byte* to, const std::byte* from, std::size_t lines) {
  std::uint64_t overflows = 0;
  for (std::size_t i = 0; i < lines * kFloatsOfLine; ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, from + i * sizeof(bits), sizeof(bits));
    const std::uint16_t cast = kCast(bits);
    std::memcpy(to + i * sizeof(cast), &cast, sizeof(cast));
    overflows += (bits & kNoSign) - kTooLarge < kInfinity - kTooLarge ? 1 : 0;
  }
  return overflows;
}

#if defined(__x86_64__)

/// As for copies, but of twice the bytes in the same time.
constexpr std::size_t kCastAhead = 1024;

/// __builtin_cpu_supports() of Clang 14 does not know F16C; that the system keeps the registers of
/// AVX follows from its answer to AVX2.
bool has_f16c() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  const bool found = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
  return found && has_avx2();
}

#define BATCHWRIGHT_AVX2 __attribute__((target("avx2,f16c")))
#define BATCHWRIGHT_AVX512 __attribute__((target("avx512f")))

struct Float16 {
  static constexpr std::uint32_t kTooLarge = kTooLargeFloat16;

  BATCHWRIGHT_AVX2 static __m256i cast(__m256i low, __m256i high) {
    constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    return _mm256_set_m128i(_mm256_cvtps_ph(_mm256_castsi256_ps(high), kNearest),
                            _mm256_cvtps_ph(_mm256_castsi256_ps(low), kNearest));
  }
  BATCHWRIGHT_AVX512 static __m256i cast(__m512i bits) {
    return _mm512_cvtps_ph(_mm512_castsi512_ps(bits),
                           _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
};

struct Bfloat16 {
  static constexpr std::uint32_t kTooLarge = kTooLargeBfloat16;

  BATCHWRIGHT_AVX2 static __m256i cast(__m256i low, __m256i high) {
    // The pack works in halves of 128 bits; the permutation puts their quarters in order.
    return _mm256_permute4x64_epi64(_mm256_packus_epi32(rounded(low), rounded(high)), 0xD8);
  }
  BATCHWRIGHT_AVX512 static __m256i cast(__m512i bits) {
    const __m512i upper = _mm512_srli_epi32(bits, 16);
    const __m512i odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
    const __m512i sum = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
    const __mmask16 nan = _mm512_cmpgt_epi32_mask(
        _mm512_and_si512(bits, _mm512_set1_epi32(kNoSign)), _mm512_set1_epi32(kInfinity));
    const __m512i quiet = _mm512_or_si512(upper, _mm512_set1_epi32(0x40));
    return _mm512_cvtepi32_epi16(_mm512_mask_blend_epi32(nan, _mm512_srli_epi32(sum, 16), quiet));
  }

 private:
  BATCHWRIGHT_AVX2 static __m256i rounded(__m256i bits) {
    const __m256i upper = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
    const __m256i sum = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
    const __m256i nan = _mm256_cmpgt_epi32(_mm256_and_si256(bits, _mm256_set1_epi32(kNoSign)),
                                           _mm256_set1_epi32(kInfinity));
    const __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
    return _mm256_blendv_epi8(_mm256_srli_epi32(sum, 16), quiet, nan);
  }
};

/// All ones in each lane that is finite and becomes infinite.
BATCHWRIGHT_AVX2 inline __m256i too_large(__m256i bits, std::uint32_t least) {
  const __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(kNoSign));
  const __m256i above =
      _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(static_cast<int>(least - 1)));
  const __m256i finite = _mm256_cmpgt_epi32(_mm256_set1_epi32(kInfinity), magnitude);
  return _mm256_and_si256(above, finite);
}

template <class Narrow, bool kStreamed>
BATCHWRIGHT_AVX2 std::uint64_t cast_avx2(std::byte* to, const std::byte* from, std::size_t lines) {
  __m256i overflows = _mm256_setzero_si256();
  for (std::size_t half = 0; half < 2 * lines; ++half) {
    const auto* parts = reinterpret_cast<const __m256i*>(from) + 2 * half;
    __builtin_prefetch(reinterpret_cast<const std::byte*>(parts) + kCastAhead);
    const __m256i low = _mm256_loadu_si256(parts);
    const __m256i high = _mm256_loadu_si256(parts + 1);
    const __m256i cast = Narrow::cast(low, high);
    auto* const place = reinterpret_cast<__m256i*>(to) + half;
    kStreamed ? _mm256_stream_si256(place, cast) : _mm256_store_si256(place, cast);
    // A lane that is true is -1.
    overflows = _mm256_sub_epi32(overflows, too_large(low, Narrow::kTooLarge));
    overflows = _mm256_sub_epi32(overflows, too_large(high, Narrow::kTooLarge));
  }
  alignas(__m256i) std::array<std::uint32_t, 8> counts{};
  _mm256_store_si256(reinterpret_cast<__m256i*>(counts.data()), overflows);
  std::uint64_t sum = 0;
  for (const std::uint32_t count : counts) sum += count;
  return sum;
}

template <class Narrow, bool kStreamed>
BATCHWRIGHT_AVX512 std::uint64_t cast_avx512(std::byte* to, const std::byte* from,
                                             std::size_t lines) {
  std::uint64_t overflows = 0;
  const __m512i least = _mm512_set1_epi32(static_cast<int>(Narrow::kTooLarge));
  const __m512i range = _mm512_set1_epi32(static_cast<int>(kInfinity - Narrow::kTooLarge));
  for (std::size_t half = 0; half < 2 * lines; ++half) {
    const std::byte* const part = from + half * sizeof(__m512i);
    __builtin_prefetch(part + kCastAhead);
    const __m512i bits = _mm512_loadu_si512(part);
    const __m256i cast = Narrow::cast(bits);
    auto* const place = reinterpret_cast<__m256i*>(to) + half;
    kStreamed ? _mm256_stream_si256(place, cast) : _mm256_store_si256(place, cast);
    const __m512i magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(kNoSign));
    const __mmask16 lost = _mm512_cmplt_epu32_mask(_mm512_sub_epi32(magnitude, least), range);
    overflows += static_cast<std::uint64_t>(std::popcount(static_cast<std::uint16_t>(lost)));
  }
  return overflows;
}

#elif defined(__aarch64__)

struct Float16 {
  static constexpr std::uint32_t kTooLarge = kTooLargeFloat16;

  static uint16x8_t cast(uint32x4_t low, uint32x4_t high) {
    const float16x4_t first = vcvt_f16_f32(vreinterpretq_f32_u32(low));
    return vreinterpretq_u16_f16(vcvt_high_f16_f32(first, vreinterpretq_f32_u32(high)));
  }
};

struct Bfloat16 {
  static constexpr std::uint32_t kTooLarge = kTooLargeBfloat16;

  static uint16x8_t cast(uint32x4_t low, uint32x4_t high) {
    return vcombine_u16(vmovn_u32(rounded(low)), vmovn_u32(rounded(high)));
  }

 private:
  static uint32x4_t rounded(uint32x4_t bits) {
    const uint32x4_t upper = vshrq_n_u32(bits, 16);
    const uint32x4_t odd = vandq_u32(upper, vdupq_n_u32(1));
    const uint32x4_t sum = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7FFF)));
    const uint32x4_t nan = vcgtq_u32(vandq_u32(bits, vdupq_n_u32(kNoSign)), vdupq_n_u32(kInfinity));
    return vbslq_u32(nan, vorrq_u32(upper, vdupq_n_u32(0x40)), vshrq_n_u32(sum, 16));
  }
};

/// All ones in each lane that is finite and becomes infinite.
inline uint32x4_t too_large(uint32x4_t bits, std::uint32_t least) {
  const uint32x4_t magnitude = vandq_u32(bits, vdupq_n_u32(kNoSign));
  return vcltq_u32(vsubq_u32(magnitude, vdupq_n_u32(least)), vdupq_n_u32(kInfinity - least));
}

template <class Narrow, bool kStreamed>
std::uint64_t cast_neon(std::byte* to, const std::byte* from, std::size_t lines) {
  uint32x4_t overflows = vdupq_n_u32(0);
  for (std::size_t half = 0; half < 2 * lines; ++half) {
    uint16x8_t parts[2];
    for (std::size_t i = 0; i < 2; ++i) {
      const auto* const bytes = reinterpret_cast<const std::uint8_t*>(from) + 64 * half + 32 * i;
      const uint32x4_t low = vreinterpretq_u32_u8(vld1q_u8(bytes));
      const uint32x4_t high = vreinterpretq_u32_u8(vld1q_u8(bytes + 16));
      parts[i] = Narrow::cast(low, high);
      // A lane that is true is -1.
      overflows = vsubq_u32(overflows, too_large(low, Narrow::kTooLarge));
      overflows = vsubq_u32(overflows, too_large(high, Narrow::kTooLarge));
    }
    std::byte* const place = to + 32 * half;
    if constexpr (kStreamed) {
      asm volatile("stnp %q1, %q2, [%0]" : : "r"(place), "w"(parts[0]), "w"(parts[1]) : "memory");
    } else {
      vst1q_u8(reinterpret_cast<std::uint8_t*>(place), vreinterpretq_u8_u16(parts[0]));
      vst1q_u8(reinterpret_cast<std::uint8_t*>(place) + 16, vreinterpretq_u8_u16(parts[1]));
    }
  }
  return vaddlvq_u32(overflows);
}

#endif

constexpr CastLines kFloat16 = cast_portably<to_float16, kTooLargeFloat16>;
constexpr CastLines kBfloat16 = cast_portably<to_bfloat16, kTooLargeBfloat16>;

// Without streams of its own: it casts fewer bytes a second than memory takes.
constexpr CastWay kPortable{"portable", always, kFloat16, kBfloat16, kFloat16, kBfloat16};

#if defined(__x86_64__)
template <class Narrow>
constexpr CastLines kAvx2 = cast_avx2<Narrow, false>;
template <class Narrow>
constexpr CastLines kAvx2Streamed = cast_avx2<Narrow, true>;
template <class Narrow>
constexpr CastLines kAvx512 = cast_avx512<Narrow, false>;
template <class Narrow>
constexpr CastLines kAvx512Streamed = cast_avx512<Narrow, true>;

constexpr std::array kCastWays{
    kPortable,
    CastWay{"avx2", has_f16c, kAvx2<Float16>, kAvx2<Bfloat16>, kAvx2Streamed<Float16>,
            kAvx2Streamed<Bfloat16>},
    CastWay{"avx512", has_avx512, kAvx512<Float16>, kAvx512<Bfloat16>, kAvx512Streamed<Float16>,
            kAvx512Streamed<Bfloat16>},
};
#elif defined(__aarch64__)
constexpr std::array kCastWays{
    kPortable,
    CastWay{"neon", always, cast_neon<Float16, false>, cast_neon<Bfloat16, false>,
            cast_neon<Float16, true>, cast_neon<Bfloat16, true>},
};
#else
constexpr std::array kCastWays{kPortable};
#endif

}  // namespace

std::span<const CastWay> cast_ways() { return kCastWays; }

const CastWay& best_cast_way() {
  static const CastWay& best = [&]() -> const CastWay& {
    for (std::size_t i = kCastWays.size(); i-- > 1;) {
      if (kCastWays[i].runs_here()) return kCastWays[i];
    }
    return kCastWays.front();
  }();
  return best;
}

}  // namespace batchwright
