#include "sensor.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace edge {
namespace {

constexpr double kMostG = 4;  // the sensor's range

struct Range {
  double low;
  double high;
};

/// How a body moves: g along its vertical axis, and shares of that for all else.
struct Gait {
  Range steps_per_second;
  Range strength;
  Range second_harmonic;
  Range third_harmonic;
  Range forward;
  Range sideways;  // at half the rate: left and right
};

constexpr std::array<Gait, kActivities.size()> kGaits = {{
    {{0.1, 0.6}, {0.00, 0.05}, {0.0, 0.2}, {0.0, 0.1}, {0.2, 1.0}, {0.2, 1.0}},
    {{1.5, 2.4}, {0.12, 0.50}, {0.3, 0.8}, {0.1, 0.4}, {0.2, 0.7}, {0.1, 0.4}},
    {{2.1, 3.4}, {0.40, 1.50}, {0.2, 0.5}, {0.1, 0.3}, {0.2, 0.6}, {0.1, 0.4}},
    {{1.0, 1.7}, {0.10, 0.50}, {0.0, 0.4}, {0.0, 0.2}, {0.4, 0.9}, {0.2, 0.6}},
}};

/// One sine: `phase` in turns.
struct Wave {
  double strength;
  double rate;
  double phase;

  double at(double seconds) const {
    return strength * std::sin(2 * std::numbers::pi * (rate * seconds + phase));
  }
};

/// Thousandths of g, as a sensor of 16 bits says them.
std::int16_t said(double g) {
  return static_cast<std::int16_t>(std::lround(1000 * std::clamp(g, -kMostG, kMostG)));
}

}  // namespace

double Sensor::between(double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random_);
}

/// A rotation, from a quaternion that is as likely as any other.
std::array<std::array<double, kAxes>, kAxes> Sensor::any_angle() {
  std::normal_distribution<double> normal;
  double w = normal(random_), x = normal(random_), y = normal(random_), z = normal(random_);
  const double length = std::sqrt(w * w + x * x + y * y + z * z);
  w /= length, x /= length, y /= length, z /= length;
  return {{{1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)},
           {2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)},
           {2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)}}};
}

Window Sensor::next() {
  Window window;
  window.activity = static_cast<std::uint8_t>(random_() % kActivities.size());
  const Gait& gait = kGaits[window.activity];
  const auto any = [this](const Range& range) { return between(range.low, range.high); };
  const double rate = any(gait.steps_per_second);
  const double strength = any(gait.strength);
  const auto wave = [&](const Range& share, double harmonic) {
    return Wave{strength * any(share), harmonic * rate, between(0, 1)};
  };
  const Wave step = wave({1, 1}, 1), second = wave(gait.second_harmonic, 2),
             third = wave(gait.third_harmonic, 3), forward = wave(gait.forward, 1),
             sideways = wave(gait.sideways, 0.5);
  const auto angle = any_angle();
  std::normal_distribution<double> noise(0, between(0.01, 0.06));
  for (std::size_t t = 0; t < kFrames; ++t) {
    const double now = static_cast<double>(t) / kFramesPerSecond;
    const std::array<double, kAxes> body = {forward.at(now), sideways.at(now),
                                            1 + step.at(now) + second.at(now) + third.at(now)};
    for (std::size_t axis = 0; axis < kAxes; ++axis) {
      const auto& row = angle[axis];
      const double g = row[0] * body[0] + row[1] * body[1] + row[2] * body[2] + noise(random_);
      window.samples[t * kAxes + axis] = said(g);
    }
  }
  return window;
}

std::vector<Window> take(Sensor& sensor, std::size_t count) {
  std::vector<Window> windows(count);
  std::generate(windows.begin(), windows.end(), [&] { return sensor.next(); });
  return windows;
}

}  // namespace edge
