#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace batchwright::test {

inline void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

/// `samples` of a tone, different for each `number`.
inline std::vector<std::int16_t> tone(std::size_t samples, unsigned number = 1) {
  std::vector<std::int16_t> out(samples);
  for (std::size_t i = 0; i < samples; ++i) {
    out[i] = static_cast<std::int16_t>(std::lround(
        9000 * std::sin(0.05 * (number % 20 + 1) * static_cast<double>(i)) + number % 97));
  }
  return out;
}

struct WavFormat {
  std::uint32_t rate = 8000;
  std::uint16_t channels = 1;
};

/// A 16-bit WAV file's bytes: 44 of header, then the samples.
inline std::string wav(const std::vector<std::int16_t>& samples, WavFormat format = {}) {
  std::string bytes;
  const auto put = [&bytes](auto number) {
    char raw[sizeof number];
    std::memcpy(raw, &number, sizeof number);
    bytes.append(raw, sizeof number);
  };
  const auto data_bytes = static_cast<std::uint32_t>(samples.size() * 2);
  const auto block_bytes = static_cast<std::uint16_t>(format.channels * 2);
  bytes += "RIFF";
  put(data_bytes + 36);
  bytes += "WAVEfmt ";
  put(std::uint32_t{16});
  put(std::uint16_t{1});  // PCM
  put(format.channels);
  put(format.rate);
  put(format.rate * block_bytes);
  put(block_bytes);
  put(std::uint16_t{16});
  bytes += "data";
  put(data_bytes);
  bytes.append(reinterpret_cast<const char*>(samples.data()), data_bytes);
  return bytes;
}

}  // namespace batchwright::test
