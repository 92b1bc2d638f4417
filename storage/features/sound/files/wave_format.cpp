#include "storage/features/sound/files/wave_format.h"

#include <fmt/core.h>

#include <algorithm>

namespace batchwright {
namespace {

enum WaveTag : std::uint16_t {
  kPcm = 1,
  kMsAdpcm = 2,
  kFloat = 3,
  kALaw = 6,
  kMuLaw = 7,
  kImaAdpcm = 0x11,
  kGsm = 0x31,
  kExtensible = 0xfffe,
};

}  // namespace

Error bad_container(std::string why) { return {ErrorCode::invalid_argument, std::move(why)}; }

Error cut_samples(std::uint64_t promised, std::uint64_t there) {
  return bad_container(fmt::format(
      "truncated: its header promises {} bytes of samples, the file has {}", promised, there));
}

std::string shown_name(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return name;
}

std::string number_text(std::uint64_t number, std::size_t bytes, bool is_big_endian) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) {
    text.push_back(static_cast<char>(number & 0xff));
    number >>= 8;
  }
  if (is_big_endian) std::reverse(text.begin(), text.end());
  return text;
}

bool is_padding(const SoundBytes& file, std::uint64_t at, std::uint64_t most) {
  if (at >= file.size()) return true;
  const std::uint64_t bytes = file.size() - at;
  if (bytes > most) return false;
  const std::string text = file.text(at, bytes);
  return text.size() == bytes && text.find_first_not_of('\0') == text.npos;
}

Result<WaveFormat> read_wave_format(const SoundBytes& chunk, bool is_big_endian) {
  const auto word = [&](std::uint64_t at) {
    return chunk.number<std::uint16_t>(at, is_big_endian).value_or(0);
  };
  constexpr std::uint64_t kLeast = 16;
  if (chunk.size() < kLeast) return bad_container("damaged: chunk \"fmt \" is too short");
  std::uint16_t tag = word(0);
  // Its first word is the tag of before.
  if (tag == kExtensible) tag = word(24);
  WaveFormat format{word(2), word(12), 1};
  const std::uint64_t sample_bytes = (word(14) + 7U) / 8;
  if (format.channels == 0) return bad_container("damaged: no channels");
  switch (tag) {
    case kPcm:
    case kFloat:
    case kALaw:
    case kMuLaw:
      if (format.block_bytes == 0) format.block_bytes = format.channels * sample_bytes;
      break;
    case kMsAdpcm:
    case kImaAdpcm: format.block_samples = word(18); break;
    case kGsm:
      format.block_bytes = 65;
      format.block_samples = 320;
      break;
    default:
      return bad_container(
          fmt::format("not readable audio: WAVE of format {:#06x}; allowed: PCM, float, mu-law, "
                      "A-law, ADPCM (Microsoft, IMA), GSM 6.10",
                      tag));
  }
  if (format.block_bytes == 0 || format.block_samples == 0) {
    return bad_container("damaged: chunk \"fmt \" has blocks of no size");
  }
  return format;
}

Result<WaveExtent> wave_extent(const WaveFormat& format, std::uint64_t bytes,
                               std::optional<std::uint64_t> fact) {
  const std::uint64_t blocks = bytes / format.block_bytes;
  const std::uint64_t rest = bytes % format.block_bytes;
  WaveExtent extent{bytes - rest, blocks * format.block_samples, 0};
  constexpr std::uint64_t kUnknown = 0x7fff0000;
  if (!format.is_coded() || !fact || *fact == 0 || *fact >= kUnknown) return extent;
  // Some writers end the last block early.
  const bool is_short_block = rest > 0 && *fact > extent.samples;
  if (is_short_block) {
    extent.bytes = bytes;
    extent.samples += format.block_samples;
  }
  if (*fact > extent.samples) {
    return bad_container(fmt::format("truncated: its header promises {} samples, the file has {}",
                                     *fact, blocks * format.block_samples));
  }
  if (extent.samples - *fact >= 2 * format.block_samples) {
    return bad_container(
        fmt::format("its header promises {} samples, the file has {}", *fact, extent.samples));
  }
  extent.filling = extent.samples - *fact;
  extent.samples = *fact;
  return extent;
}

}  // namespace batchwright
