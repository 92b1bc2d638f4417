// Frames of MP3 with right heads and any content, and what stands between them: an input has, for
// each, a byte that chooses its bit rate, channels and padding, and the bytes within.

#include <string>

#include "storage/features/sound/sound.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_bound.h"

using namespace batchwright;
using namespace batchwright::fuzz;

namespace {

constexpr std::int64_t kMostBytes = std::int64_t{64} << 20;
constexpr std::uint64_t kSamplesOfFrame = 576;
constexpr std::size_t kMostFrames = 64;

/// A frame of MPEG 2, layer 3, at 16 kHz, filled up with zeros.
std::string frame_of(std::uint8_t choice, std::span<const std::byte> content) {
  constexpr std::size_t kKilobits[] = {8, 16, 24, 32, 40, 48, 56, 64};
  const std::size_t rate = choice & 7;
  const std::size_t padding = choice >> 3 & 1;
  std::string frame("\xff\xf3", 2);
  frame.push_back(static_cast<char>((rate + 1) << 4 | 2 << 2 | padding << 1));
  frame.push_back(static_cast<char>((choice & 0x10) != 0 ? 0xc0 : 0x40));
  const std::size_t size = 72'000 * kKilobits[rate] / 16'000 + padding;
  for (const std::byte byte : content) {
    if (frame.size() < size) frame.push_back(static_cast<char>(byte));
  }
  frame.resize(size, '\0');
  return frame;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices input(data, size);
  std::string file;
  std::size_t frames = 0;
  while (!input.empty() && frames < kMostFrames) {
    const std::uint8_t choice = input.byte();
    const auto content = input.take(input.byte());
    if ((choice & 0x20) != 0) {
      file.append(reinterpret_cast<const char*>(content.data()), content.size());
    } else {
      file += frame_of(choice, content);
      ++frames;
    }
  }
  const MemoryBound bound(kMostBytes);
  std::uint64_t delivered = 0;
  const auto extent = decode_bytes(
      std::as_bytes(std::span(file)), ChannelChoice::first,
      [&delivered](std::span<const float> samples) { delivered += samples.size(); }, kMostSequence);
  if (!extent) {
    require(extent.error().code == ErrorCode::corrupt_record, "the error is corrupt_record");
    return 0;
  }
  require(extent->samples == delivered, "samples that are counted are those that were handed over");
  // What stands between frames may be frames, too.
  require(delivered <= kSamplesOfFrame * (frames + 2 * size), "samples come of frames");
  return 0;
}
