// A file of Ogg whose pages have the right checksums, whatever else is in them: decoders and our
// own reader see what a checksum would keep from them otherwise.

#include <string>

#include "storage/features/sound/sound.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_bound.h"

using namespace batchwright;
using namespace batchwright::fuzz;

namespace {

constexpr std::int64_t kMostBytes = std::int64_t{128} << 20;
constexpr std::uint64_t kMostSamples = std::uint64_t{1} << 24;
constexpr std::size_t kPageHead = 27;
constexpr std::size_t kPageCrc = 22;

std::uint32_t page_crc(std::string_view page) {
  std::uint32_t crc = 0;
  for (const char c : page) {
    crc ^= static_cast<std::uint32_t>(static_cast<unsigned char>(c)) << 24;
    for (int bit = 0; bit < 8; ++bit) crc = crc << 1 ^ (crc >> 31 != 0 ? 0x04c11db7U : 0);
  }
  return crc;
}

/// Puts the checksum of each page right that is whole.
void mend_pages(std::string& file) {
  for (std::size_t at = file.find("OggS"); at != file.npos; at = file.find("OggS", at + 1)) {
    if (file.size() - at < kPageHead) return;
    const auto segments = static_cast<unsigned char>(file[at + kPageHead - 1]);
    std::size_t size = kPageHead + segments;
    if (file.size() - at < size) return;
    for (std::size_t i = 0; i < segments; ++i) {
      size += static_cast<unsigned char>(file[at + kPageHead + i]);
    }
    if (file.size() - at < size) return;
    file.replace(at + kPageCrc, 4, 4, '\0');
    const std::uint32_t crc = page_crc(std::string_view(file).substr(at, size));
    for (std::size_t i = 0; i < 4; ++i) {
      file[at + kPageCrc + i] = static_cast<char>(crc >> (8 * i) & 0xff);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string file(reinterpret_cast<const char*>(data), size);
  mend_pages(file);
  const MemoryBound bound(kMostBytes);
  std::uint64_t delivered = 0;
  const auto extent = decode_bytes(
      std::as_bytes(std::span(file)), ChannelChoice::first,
      [&delivered](std::span<const float> samples) { delivered += samples.size(); }, kMostSamples);
  require(delivered <= kMostSamples + 1, "decoding ends where it was asked to");
  if (!extent) {
    require(extent.error().code == ErrorCode::corrupt_record, "the error is corrupt_record");
    return 0;
  }
  require(extent->samples == delivered, "samples that are counted are those that were handed over");
  return 0;
}
