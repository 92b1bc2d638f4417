#pragma once

#include <doctest/doctest.h>
#include <sndfile.h>

#include <cstdint>
#include <filesystem>
#include <vector>

namespace batchwright::test {

/// Writes a file of libsndfile's format, of 8 kHz and one channel if nothing else is said; the
/// samples of several channels alternate.
inline void encode(const std::filesystem::path& path, int format, const std::vector<float>& samples,
                   int rate = 8000, int channels = 1) {
  SF_INFO info{};
  info.samplerate = rate;
  info.channels = channels;
  info.format = format;
  SNDFILE* sound = sf_open(path.c_str(), SFM_WRITE, &info);
  REQUIRE(sound != nullptr);
  const auto count = static_cast<sf_count_t>(samples.size()) / channels;
  CHECK(sf_writef_float(sound, samples.data(), count) == count);
  sf_close(sound);
}

inline std::vector<float> floats(const std::vector<std::int16_t>& samples) {
  std::vector<float> out;
  for (const std::int16_t sample : samples) out.push_back(static_cast<float>(sample) / 32768);
  return out;
}

}  // namespace batchwright::test
