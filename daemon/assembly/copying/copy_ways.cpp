#include "daemon/assembly/copying/copy_ways.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "daemon/assembly/copying/processor.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

// An ordinary store makes the processor read the line first that it is about to overwrite. A
// streaming store of a whole line does not, which saves a third of the memory's traffic; an arena
// is larger than the caches, so its next reader loses nothing.
//
// Each instruction set has functions of its own, with the attribute that allows it there and
// nowhere else: the rest of the build runs on every processor of the architecture.

namespace batchwright {
namespace {

#if defined(__x86_64__)

void copy_sse2(std::byte* to, const std::byte* from, std::size_t lines) {
  for (std::size_t at = 0; at < lines * kCacheLine; at += sizeof(__m128i)) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at)));
  }
}

void fill_sse2(std::byte* to, const std::byte* line, std::size_t lines) {
  const auto* parts = reinterpret_cast<const __m128i*>(line);
  for (; lines > 0; --lines, to += kCacheLine) {
    for (std::size_t i = 0; i < kCacheLine / sizeof(__m128i); ++i) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to) + i, _mm_loadu_si128(parts + i));
    }
  }
}

__attribute__((target("avx2"))) void copy_avx2(std::byte* to, const std::byte* from,
                                               std::size_t lines) {
  for (; lines > 0; --lines, to += kCacheLine, from += kCacheLine) {
    const auto* parts = reinterpret_cast<const __m256i*>(from);
    const __m256i low = _mm256_loadu_si256(parts);
    const __m256i high = _mm256_loadu_si256(parts + 1);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), low);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to) + 1, high);
  }
}

__attribute__((target("avx2"))) void fill_avx2(std::byte* to, const std::byte* line,
                                               std::size_t lines) {
  const auto* parts = reinterpret_cast<const __m256i*>(line);
  const __m256i low = _mm256_loadu_si256(parts);
  const __m256i high = _mm256_loadu_si256(parts + 1);
  for (; lines > 0; --lines, to += kCacheLine) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), low);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to) + 1, high);
  }
}

__attribute__((target("avx512f"))) void copy_avx512(std::byte* to, const std::byte* from,
                                                    std::size_t lines) {
  for (; lines > 0; --lines, to += kCacheLine, from += kCacheLine) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
  }
}

__attribute__((target("avx512f"))) void fill_avx512(std::byte* to, const std::byte* line,
                                                    std::size_t lines) {
  const __m512i value = _mm512_loadu_si512(line);
  for (; lines > 0; --lines, to += kCacheLine) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), value);
  }
}

#elif defined(__aarch64__)

/// Two registers at once to where no cache needs to keep them.
inline void store_pair(std::byte* to, uint8x16_t low, uint8x16_t high) {
  asm volatile("stnp %q1, %q2, [%0]" : : "r"(to), "w"(low), "w"(high) : "memory");
}

void copy_neon(std::byte* to, const std::byte* from, std::size_t lines) {
  for (; lines > 0; --lines, to += kCacheLine, from += kCacheLine) {
    const auto* parts = reinterpret_cast<const std::uint8_t*>(from);
    store_pair(to, vld1q_u8(parts), vld1q_u8(parts + 16));
    store_pair(to + 32, vld1q_u8(parts + 32), vld1q_u8(parts + 48));
  }
}

void fill_neon(std::byte* to, const std::byte* line, std::size_t lines) {
  const auto* parts = reinterpret_cast<const std::uint8_t*>(line);
  const uint8x16_t a = vld1q_u8(parts);
  const uint8x16_t b = vld1q_u8(parts + 16);
  const uint8x16_t c = vld1q_u8(parts + 32);
  const uint8x16_t d = vld1q_u8(parts + 48);
  for (; lines > 0; --lines, to += kCacheLine) {
    store_pair(to, a, b);
    store_pair(to + 32, c, d);
  }
}

#endif

constexpr std::array kCopyWays {
  CopyWay{"memcpy", always, nullptr, nullptr},
#if defined(__x86_64__)
      CopyWay{"sse2", always, copy_sse2, fill_sse2},
      CopyWay{"avx2", has_avx2, copy_avx2, fill_avx2},
      CopyWay{"avx512", has_avx512, copy_avx512, fill_avx512},
#else
      CopyWay{"sse2", never, nullptr, nullptr}, CopyWay{"avx2", never, nullptr, nullptr},
      CopyWay{"avx512", never, nullptr, nullptr},
#endif
#if defined(__aarch64__)
      CopyWay{"neon", always, copy_neon, fill_neon},
#else
      CopyWay{"neon", never, nullptr, nullptr},
#endif
};

}  // namespace

std::span<const CopyWay> copy_ways() { return kCopyWays; }

const CopyWay& plain_copy() { return kCopyWays.front(); }

const CopyWay* find_copy_way(std::string_view name) {
  const auto* const found = std::find_if(kCopyWays.begin(), kCopyWays.end(),
                                         [name](const CopyWay& way) { return way.name == name; });
  return found == kCopyWays.end() ? nullptr : found;
}

void finish_streams() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
  // NEON's hint leaves the order of stores as it is for any other store.
}

}  // namespace batchwright
