#include "storage/features/frontend/lengths.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace batchwright {
namespace {

constexpr std::uint32_t kMostStacked = 1024;
constexpr std::uint32_t kMostDelay = 65536;

Error bad_length(const std::string& what) { return {ErrorCode::invalid_argument, what}; }

Result<void> check_count(const char* name, std::uint32_t found) {
  if (found >= 1 && found <= kMostStacked) return {};
  return bad_length(fmt::format("{} of {} frames; allowed: 1 to {}", name, found, kMostStacked));
}

std::uint64_t divided_up(std::uint64_t value, std::uint64_t by) {
  return value / by + (value % by == 0 ? 0 : 1);
}

}  // namespace

Result<Speed> parse_speed(double factor) {
  const double thousandths = std::nearbyint(factor * 1000);
  if (factor >= 0.5 && factor <= 2 && std::abs(factor * 1000 - thousandths) < 1e-6) {
    return Speed{static_cast<std::uint32_t>(thousandths)};
  }
  return bad_length(
      fmt::format("speed {}; allowed: 0.5 to 2, with at most three decimal places", factor));
}

Result<RateRatio> rate_ratio(std::uint32_t stored_rate, std::uint32_t feed_rate, Speed speed) {
  for (const std::uint32_t rate : {stored_rate, feed_rate}) {
    if (rate >= 1 && rate <= kMostRate) continue;
    return bad_length(fmt::format("a sample rate of {} Hz ({} stored, {} wanted); allowed: 1 to {}",
                                  rate, stored_rate, feed_rate, kMostRate));
  }
  if (speed.thousandths < 500 || speed.thousandths > 2000) {
    return bad_length(
        fmt::format("a speed of {} thousandths; allowed: 500 to 2000", speed.thousandths));
  }
  const std::uint64_t from = std::uint64_t{stored_rate} * speed.thousandths;
  const std::uint64_t to = std::uint64_t{feed_rate} * 1000;
  const std::uint64_t common = std::gcd(from, to);
  return RateRatio{from / common, to / common};
}

std::uint64_t resampled_length(ResamplerKind kind, std::uint64_t samples, const RateRatio& ratio) {
  // Whole periods apart, so that no product passes 64 bits before the result does.
  const std::uint64_t periods = samples / ratio.from;
  const std::uint64_t rest = samples % ratio.from;
  const std::uint64_t whole = periods * ratio.to;
  if (kind == ResamplerKind::sinc) return whole + divided_up(rest * ratio.to, ratio.from);
  // (2 N b + a) div (2 a): the half is added to the quotient, and not to a product twice as large.
  const std::uint64_t product = rest * ratio.to;
  const std::uint64_t remainder = product % ratio.from;
  const bool up = remainder >= ratio.from - remainder;
  return whole + product / ratio.from + (up ? 1 : 0);
}

Result<void> check(const Stacking& stacking) {
  if (auto bad = check_count("stack", stacking.stack); !bad) return bad;
  if (auto bad = check_count("stride", stacking.stride); !bad) return bad;
  if (stacking.target_offset < stacking.stride) return {};
  return bad_length(fmt::format("target_offset {}; with stride {} allowed: 0 to {}",
                                stacking.target_offset, stacking.stride, stacking.stride - 1));
}

std::uint32_t frames_before(const Stacking& stacking) {
  switch (stacking.align) {
    case StackAlign::right: break;
    case StackAlign::centre: return (stacking.stack - 1) / 2;
    case StackAlign::left: return stacking.stack - 1;
  }
  return 0;
}

std::uint64_t stacked_length(std::uint64_t frames, const Stacking& stacking) {
  if (stacking.end != StackEnd::drop) return divided_up(frames, stacking.stride);
  const std::uint64_t behind = stacking.stack - 1 - frames_before(stacking);
  return frames <= behind ? 0 : 1 + (frames - 1 - behind) / stacking.stride;
}

Result<void> check(const KeepOne& keep) {
  if (auto bad = check_count("keep_one_of", keep.of); !bad) return bad;
  if (keep.offset < keep.of) return {};
  return bad_length(fmt::format("keep_offset {}; with keep_one_of {} allowed: 0 to {}", keep.offset,
                                keep.of, keep.of - 1));
}

std::uint64_t kept_length(std::uint64_t frames, const KeepOne& keep) {
  return frames <= keep.offset ? 0 : divided_up(frames - keep.offset, keep.of);
}

Result<void> check(const LabelDelay& delay) {
  if (delay.frames <= kMostDelay) return {};
  return bad_length(
      fmt::format("label_delay of {} frames; allowed: 0 to {}", delay.frames, kMostDelay));
}

std::uint64_t delayed_length(std::uint64_t frames, const LabelDelay& delay) {
  return frames == 0 || !delay.extend ? frames : frames + delay.frames;
}

std::uint64_t real_targets(std::uint64_t frames, const LabelDelay& delay) {
  return delay.extend ? frames : frames - std::min<std::uint64_t>(frames, delay.frames);
}

}  // namespace batchwright
