// The C ABI: arguments checked, errors reported, exceptions stopped. The work is FrontEnd's.

#include <batchwright/front_end.h>
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/formats.h"
#include "storage/features/frontend/c_abi/front_end_options.h"
#include "storage/features/frontend/front_end.h"

using namespace batchwright;

static_assert(BW_FLOAT32 == static_cast<int>(DType::float32));
static_assert(BW_INT16 == static_cast<int>(DType::int16));
static_assert(BW_INVALID_ARGUMENT == static_cast<int>(ErrorCode::invalid_argument));

struct bw_front_end {
  explicit bw_front_end(FrontEnd made) : front_end(std::move(made)), texts(front_end.settings()) {
    for (const auto& [name, value] : texts) settings.push_back({name.c_str(), value.c_str()});
  }

  const FrontEnd front_end;
  const std::vector<std::pair<std::string, std::string>> texts;
  std::vector<bw_setting> settings;  // points into texts
};

namespace {

Error bad_call(const std::string& what) { return {ErrorCode::invalid_argument, what}; }

std::size_t sample_bytes(bw_dtype dtype) { return dtype == BW_INT16 ? 2 : 4; }

Result<void> check_sound(const bw_sound& sound) {
  if (sound.dtype != BW_INT16 && sound.dtype != BW_FLOAT32) {
    return bad_call(fmt::format("samples of dtype {}; allowed: {} (int16), {} (float32)",
                                sound.dtype, static_cast<int>(BW_INT16),
                                static_cast<int>(BW_FLOAT32)));
  }
  if (sound.reserved != 0) return bad_call("reserved is not 0");
  if (sound.samples == nullptr && sound.count != 0) {
    return bad_call("samples are counted, but not given");
  }
  if (std::bit_cast<std::uintptr_t>(sound.samples) % sample_bytes(sound.dtype) != 0) {
    return bad_call("samples are not aligned as their dtype is");
  }
  return {};
}

Result<void> check_finite(std::span<const float> samples) {
  const auto bad = std::find_if(samples.begin(), samples.end(),
                                [](float sample) { return !std::isfinite(sample); });
  if (bad == samples.end()) return {};
  return bad_call(fmt::format("sample {} of {} is {}; allowed: finite numbers",
                              bad - samples.begin(), samples.size(), *bad));
}

/// Samples in -1 .. 1. `converted` holds them where the caller's are no floats.
Result<std::span<const float>> to_floats(const bw_sound& sound, std::vector<float>& converted) {
  if (sound.dtype == BW_FLOAT32) {
    const std::span samples(static_cast<const float*>(sound.samples), sound.count);
    if (auto finite = check_finite(samples); !finite) return finite.error();
    return samples;
  }
  const std::span samples(static_cast<const std::int16_t*>(sound.samples), sound.count);
  converted.resize(samples.size());
  std::transform(samples.begin(), samples.end(), converted.begin(),
                 [](std::int16_t sample) { return static_cast<float>(sample) / 32768; });
  return std::span<const float>(converted);
}

bw_status compute(const FrontEnd& front_end, const bw_sound& sound, float* features,
                  std::uint64_t room) {
  if (auto checked = check_sound(sound); !checked) return report(checked.error());
  const std::uint64_t frames = front_end.frames(sound.count);
  // Before anything is computed, and not by a product that may pass 64 bits.
  if (frames != 0 && (features == nullptr || room / frames < front_end.dimensions())) {
    return report(
        bad_call(fmt::format("room for {} values; needed: {} frames of {} values",
                             features == nullptr ? 0 : room, frames, front_end.dimensions())));
  }
  std::vector<float> converted;
  const auto samples = to_floats(sound, converted);
  if (!samples) return report(samples.error());
  const std::vector<float> made = front_end.compute(*samples);
  std::copy(made.begin(), made.end(), features);
  return BW_OK;
}

}  // namespace

extern "C" {

uint32_t bw_front_end_abi_version(void) { return BW_FRONT_END_ABI_VERSION; }

const char* bw_front_end_error_message(void) { return last_error_text(); }

const char* bw_front_end_status_name(bw_status status) { return status_name(status); }

bw_status bw_front_end_open(const bw_front_end_options* options, bw_front_end** front_end) {
  return at_border([&] {
    if (front_end == nullptr) return report(bad_call("no place for the front end is given"));
    // A program that does not look at the status finds no front end, rather than an old pointer.
    *front_end = nullptr;
    auto made = to_front_end(options);
    if (!made) return report(made.error());
    *front_end = new bw_front_end(std::move(*made));  // the program owns it until it closes it
    return static_cast<bw_status>(BW_OK);
  });
}

void bw_front_end_close(bw_front_end* front_end) { delete front_end; }

uint32_t bw_front_end_values(const bw_front_end* front_end) {
  return front_end != nullptr ? front_end->front_end.dimensions() : 0;
}

uint64_t bw_front_end_frames(const bw_front_end* front_end, uint64_t samples) {
  return front_end != nullptr ? front_end->front_end.frames(samples) : 0;
}

size_t bw_front_end_setting_count(const bw_front_end* front_end) {
  return front_end != nullptr ? front_end->settings.size() : 0;
}

const bw_setting* bw_front_end_setting_at(const bw_front_end* front_end, size_t i) {
  return i < bw_front_end_setting_count(front_end) ? &front_end->settings[i] : nullptr;
}

bw_status bw_front_end_compute(const bw_front_end* front_end, const bw_sound* sound,
                               float* features, uint64_t room) {
  return at_border([&] {
    if (front_end == nullptr || sound == nullptr) {
      return report(bad_call("no front end, or no sound"));
    }
    return compute(front_end->front_end, *sound, features, room);
  });
}

}  // extern "C"
