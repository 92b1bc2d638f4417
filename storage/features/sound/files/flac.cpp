#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <vector>

#include "storage/features/sound/files/container.h"
#include "storage/features/sound/files/wave_format.h"

// A FLAC file is "fLaC", blocks of metadata, the first of which is STREAMINFO, and frames. A frame
// begins with the sync code, 14 bits 11111111111110 and a 0, then says how many samples it has and
// what the number of its first one, or of itself, is; a CRC-8 ends its head, and a CRC-16 of all
// bytes before it the frame: polynomial 0x8005, begun with 0, highest bit first (RFC 9639).
//
// How many samples STREAMINFO counts is a claim. The last frame of the file has the truth, and its
// absence tells of a file that was cut, which decoders take the rest of a frame for the end of.

namespace batchwright {
namespace {

constexpr std::uint64_t kInfoAt = 8;
constexpr std::uint64_t kInfoBytes = 34;
/// Where STREAMINFO has rate, channels, bits and the number of samples: 20, 3, 5 and 36 bits.
constexpr std::uint64_t kCountsAt = kInfoAt + 10;
constexpr std::uint64_t kMostCount = (std::uint64_t{1} << 36) - 1;

constexpr std::uint32_t kPolynomial = 0x8005;

constexpr std::array<std::uint16_t, 256> crc16_table() {
  std::array<std::uint16_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t crc = i << 8;
    for (int bit = 0; bit < 8; ++bit) crc = crc << 1 ^ ((crc & 0x8000) != 0 ? kPolynomial : 0);
    table[i] = static_cast<std::uint16_t>(crc);
  }
  return table;
}
constexpr auto kCrc16 = crc16_table();

/// The product of two polynomials, modulo that of the CRC.
std::uint32_t crc16_times(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (int bit = 15; bit >= 0; --bit) {
    product = (product << 1 ^ ((product & 0x8000) != 0 ? kPolynomial : 0)) & 0xFFFF;
    if ((a >> bit & 1) != 0) product ^= b;
  }
  return product;
}

std::uint8_t crc8(std::span<const std::byte> bytes) {
  std::uint32_t crc = 0;
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc << 1 ^ ((crc & 0x80) != 0 ? 0x07 : 0)) & 0xFF;
  }
  return static_cast<std::uint8_t>(crc);
}

struct FlacInfo {
  std::uint32_t block_samples = 0;
  std::uint64_t frame_bytes = 0;         // at most
  std::optional<std::uint64_t> claimed;  // samples; nothing where the writer could not know
  std::uint64_t frames_at = 0;
};

Result<FlacInfo> read_flac_info(const SoundBytes& file) {
  const auto counts = file.number<std::uint64_t>(kCountsAt, true);
  const auto head = file.number<std::uint32_t>(4, true);
  if (!counts || !head) return bad_container("truncated: it ends within its header");
  if ((*head & 0x7FFFFFFF) != kInfoBytes) return bad_container("damaged: no STREAMINFO");
  FlacInfo info;
  info.block_samples = file.number<std::uint16_t>(kInfoAt + 2, true).value_or(0);
  const std::uint64_t channels = (*counts >> 41 & 7) + 1;
  const std::uint64_t bits = (*counts >> 36 & 31) + 1;
  constexpr std::uint64_t kHead = 1024;  // of frame and subframes, and more
  info.frame_bytes = info.block_samples * channels * ((bits + 8) / 8) + kHead;
  if ((*counts & kMostCount) != 0) info.claimed = *counts & kMostCount;
  std::uint64_t at = 4;
  bool is_last = false;
  while (!is_last) {
    const auto block = file.number<std::uint32_t>(at, true);
    if (!block) return bad_container("truncated: it ends within its header");
    is_last = (*block & 0x80000000) != 0;
    at += 4 + (*block & 0xFFFFFF);
  }
  info.frames_at = at;
  return info;
}

/// The samples of a frame: from `begin` to `end`, as its head numbers them.
struct FlacFrame {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// The coded number of a frame or sample, as UTF-8 has characters, and how many bytes it takes.
std::optional<std::pair<std::uint64_t, std::size_t>> coded_number(
    std::span<const std::byte> bytes) {
  if (bytes.empty()) return std::nullopt;
  const auto first = std::to_integer<std::uint32_t>(bytes[0]);
  std::size_t more = 0;
  while (more < 8 && (first & (0x80U >> more)) != 0) ++more;
  if (more == 0) return std::pair(std::uint64_t{first}, std::size_t{1});
  if (more == 1 || more == 8 || bytes.size() < more) return std::nullopt;
  std::uint64_t number = first & (0x7FU >> more);
  for (std::size_t i = 1; i < more; ++i) {
    const auto byte = std::to_integer<std::uint32_t>(bytes[i]);
    if ((byte & 0xC0) != 0x80) return std::nullopt;
    number = number << 6 | (byte & 0x3F);
  }
  return std::pair(number, more);
}

/// Reads a frame's head; nothing where there is none.
std::optional<FlacFrame> flac_frame_at(std::span<const std::byte> bytes, const FlacInfo& info) {
  constexpr std::size_t kLeastHead = 6;
  if (bytes.size() < kLeastHead) return std::nullopt;
  const auto byte = [&bytes](std::size_t i) { return std::to_integer<std::uint32_t>(bytes[i]); };
  if (byte(0) != 0xFF || (byte(1) & 0xFE) != 0xF8 || (byte(3) & 1) != 0) return std::nullopt;
  const auto number = coded_number(bytes.subspan(4));
  if (!number) return std::nullopt;
  std::size_t at = 4 + number->second;
  const auto take = [&](std::size_t count) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < count; ++i, ++at) {
      value = value << 8 | (at < bytes.size() ? byte(at) : 0);
    }
    return value;
  };
  const std::uint32_t size_code = byte(2) >> 4;
  const std::uint32_t rate_code = byte(2) & 15;
  std::uint64_t samples = 0;
  if (size_code == 0 || rate_code == 15) return std::nullopt;
  if (size_code == 1) samples = 192;
  if (size_code >= 2 && size_code <= 5) samples = 576U << (size_code - 2);
  if (size_code == 6 || size_code == 7) samples = std::uint64_t{take(size_code - 5)} + 1;
  if (size_code >= 8) samples = 256U << (size_code - 8);
  take(rate_code == 12 ? 1 : rate_code >= 13 ? 2 : 0);
  if (at >= bytes.size() || crc8(bytes.first(at)) != byte(at)) return std::nullopt;
  const bool is_variable = (byte(1) & 1) != 0;
  const std::uint64_t begin = is_variable ? number->first : number->first * info.block_samples;
  return FlacFrame{begin, begin + samples};
}

/// The frame that ends the file; nothing where none does.
std::optional<FlacFrame> last_flac_frame(const SoundBytes& file, const FlacInfo& info) {
  const std::uint64_t frames_bytes = file.size() - std::min(file.size(), info.frames_at);
  std::vector<std::byte> tail(std::min(frames_bytes, info.frame_bytes));
  if (file.read(file.size() - tail.size(), tail) < tail.size()) return std::nullopt;
  // From the end on: the CRC of ever longer ends of the file, of which each byte adds its own,
  // moved up by the bytes behind it. A frame with its own CRC has 0.
  std::uint32_t crc = 0;
  std::uint32_t place = 1;                 // x^(8 * bytes behind)
  constexpr std::uint32_t kByte = 0x0100;  // x^8
  for (std::size_t i = tail.size(); i-- > 0;) {
    const auto byte = std::to_integer<std::uint32_t>(tail[i]);
    if (byte != 0) crc ^= crc16_times(kCrc16[byte], place);
    place = crc16_times(place, kByte);
    if (crc != 0 || byte != 0xFF) continue;
    // The sync code may stand within samples, which both CRCs then rule out.
    if (const auto frame = flac_frame_at(std::span(tail).subspan(i), info)) return frame;
  }
  return std::nullopt;
}

/// Without tags of ID3v1 and APEv2 at its end.
SoundBytes without_flac_tags(const SoundBytes& file) {
  constexpr std::uint64_t kId3v1 = 128;
  constexpr std::uint64_t kApe = 32;
  SoundBytes made = file;
  if (made.size() > kId3v1 && made.text(made.size() - kId3v1, 3) == "TAG") {
    made = made.part(0, made.size() - kId3v1);
  }
  if (made.size() > kApe && made.text(made.size() - kApe, 8) == "APETAGEX") {
    const std::uint64_t bytes = made.number<std::uint32_t>(made.size() - kApe + 12).value_or(0);
    const bool has_head =
        (made.number<std::uint32_t>(made.size() - kApe + 20).value_or(0) >> 31) != 0;
    const std::uint64_t all = bytes + (has_head ? kApe : 0);
    if (all <= made.size()) made = made.part(0, made.size() - all);
  }
  return made;
}

}  // namespace

Result<SoundContainer> look_at_flac(const SoundBytes& file) {
  const SoundBytes sound = without_flac_tags(file);
  const auto info = read_flac_info(sound);
  if (!info) return info.error();
  if (info->frames_at >= sound.size()) {
    return bad_container(info->claimed ? fmt::format("truncated: its header promises {} samples, "
                                                     "the file has none",
                                                     *info->claimed)
                                       : "no samples: the file has a header only");
  }
  constexpr std::size_t kMostHead = 16;
  std::vector<std::byte> head(kMostHead);
  head.resize(sound.read(info->frames_at, head));
  const auto first = flac_frame_at(head, *info);
  if (!first) return bad_container("damaged: no frame after its header");
  const auto last = last_flac_frame(sound, *info);
  if (!last || last->end <= first->begin) {
    return bad_container(
        info->claimed
            ? fmt::format("truncated: it does not end with a whole frame; its header promises {} "
                          "samples",
                          *info->claimed)
            : "truncated: it does not end with a whole frame");
  }
  const std::uint64_t samples = last->end - first->begin;
  if (info->claimed && *info->claimed != samples) {
    return bad_container(fmt::format("{}its header promises {} samples, its frames have {}",
                                     *info->claimed > samples ? "truncated: " : "", *info->claimed,
                                     samples));
  }
  // Decoders stop at the number that is claimed, which is left open: the frames have the last word.
  const auto counts = sound.number<std::uint64_t>(kCountsAt, true).value_or(0) & ~kMostCount;
  SoundContainer found{sound.with(kCountsAt, number_text(counts, 8, true))};
  found.samples = samples;
  return found;
}

}  // namespace batchwright
