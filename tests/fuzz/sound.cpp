// A file of sound in memory, and its samples as noise and as a room's impulse response.

#include "storage/sound/sound.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "storage/frontend/augment/noise.h"
#include "storage/frontend/augment/room.h"
#include "tests/fuzz/fuzz.h"

using namespace batchwright;
using namespace batchwright::fuzz;

// libsndfile 1.2.0 does not free libvorbis's state when an Ogg file ends within its headers.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:vorbis_info_init\n"; }

namespace {

bool all_numbers(std::span<const float> samples) {
  return std::all_of(samples.begin(), samples.end(),
                     [](float each) { return std::isfinite(each); });
}

/// Speech under this noise, in this room.
void use(std::span<const float> samples) {
  std::vector<float> speech(1000);
  for (std::size_t i = 0; i < speech.size(); ++i) {
    speech[i] = static_cast<float>(std::sin(0.1 * static_cast<double>(i)));
  }
  const NoiseMix mix = add_noise(samples, samples.size() / 2, 10, speech);
  require(!mix.added || std::isfinite(mix.gain), "noise has a finite gain");
  const auto room = Room::create(samples);
  if (!room) return;
  Reverberation().apply(*room, true, speech);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  for (const ChannelChoice channels : {ChannelChoice::first, ChannelChoice::mix}) {
    std::vector<float> heard;
    std::uint64_t count = 0;
    const auto extent = decode_bytes(bytes, channels, [&](std::span<const float> samples) {
      count += samples.size();
      // A few bytes may be hours of silence.
      const std::size_t room = 20'000 - std::min<std::size_t>(heard.size(), 20'000);
      const auto kept = samples.first(std::min(samples.size(), room));
      heard.insert(heard.end(), kept.begin(), kept.end());
    });
    if (!extent) {
      require(extent.error().code == ErrorCode::corrupt_record, "the error is corrupt_record");
      continue;
    }
    require(extent->samples == count, "all samples are handed over");
    require(all_numbers(heard), "samples are numbers");
    if (!heard.empty()) use(heard);
  }
  return 0;
}
