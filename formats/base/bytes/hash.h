#pragma once

#include <cstdint>
#include <string_view>

namespace batchwright {

// Hashes whose values go into files, plans and fingerprints: none may ever change.

/// FNV-1a of 64 bits begins with this for no text at all.
inline constexpr std::uint64_t kFnv1aBasis = 0xCBF29CE484222325u;

/// FNV-1a of the text that `hash` stands for with `text` behind it.
constexpr std::uint64_t fnv1a(std::uint64_t hash, std::string_view text) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

/// The same with the eight bytes of `number` behind it, the lowest first.
constexpr std::uint64_t fnv1a(std::uint64_t hash, std::uint64_t number) {
  for (int shift = 0; shift < 64; shift += 8) {
    hash = (hash ^ (number >> shift & 0xFF)) * 0x100000001B3u;
  }
  return hash;
}

/// 2^64 divided by the golden ratio, the step of SplitMix64: its multiples lie far apart.
inline constexpr std::uint64_t kGoldenStep = 0x9E3779B97F4A7C15u;

/// The finaliser of SplitMix64: a bijection of 64 bits.
constexpr std::uint64_t mix64(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

}  // namespace batchwright
