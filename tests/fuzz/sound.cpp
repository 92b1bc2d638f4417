// A file of sound that lies in memory, decoded as recipes decode those of a dataset.

#include "storage/features/sound/sound.h"

#include <cmath>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_bound.h"

using namespace batchwright;
using namespace batchwright::fuzz;

namespace {

/// libsndfile takes up to 1,024 channels, of which 8,192 frames are 32 MiB, and Vorbis's tables
/// are as large as its header says.
constexpr std::int64_t kMostBytes = std::int64_t{128} << 20;

/// FLAC has up to 65,535 samples in a frame of some ten bytes, and no format has more in one.
constexpr std::uint64_t kMostSamplesPerByte = 1 << 16;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices input(data, size);
  const auto channels = static_cast<ChannelChoice>(input.byte() % 3);
  const AlignedInput file(input.rest());
  const MemoryBound bound(kMostBytes);
  std::uint64_t delivered = 0;
  bool finite = true;
  const auto extent = decode_bytes(
      file.bytes(), channels,
      [&](std::span<const float> samples) {
        delivered += samples.size();
        for (const float sample : samples) finite &= std::isfinite(sample);
      },
      kMostSequence);
  require(delivered <= kMostSamplesPerByte * size, "samples come of bytes");
  if (!extent) {
    require(extent.error().code == ErrorCode::corrupt_record, "the error is corrupt_record");
    return 0;
  }
  require(extent->samples == delivered, "samples that are counted are those that were handed over");
  require(extent->samples > 0, "sound has a sample");
  require(extent->sample_rate > 0, "sound has a rate");
  require(finite, "samples are numbers");
  return 0;
}
