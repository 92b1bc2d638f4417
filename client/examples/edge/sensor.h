#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <vector>

namespace edge {

constexpr std::size_t kAxes = 3;
constexpr std::size_t kFrames = 128;  // of a window: 2.56 s
constexpr double kFramesPerSecond = 50;

/// What the wearer of the sensor does; a label is a number of this list.
constexpr std::array kActivities = {"still", "walking", "running", "stairs"};

/// What an accelerometer says in one window, in thousandths of g, frame by frame.
struct Window {
  std::array<std::int16_t, kFrames * kAxes> samples{};
  std::uint8_t activity = 0;
};

/// An accelerometer that somebody wears, at any angle: gravity, the harmonics of steps, noise.
/// The same seed gives the same windows. Threads: one.
class Sensor {
 public:
  explicit Sensor(std::uint64_t seed) : random_(seed) {}

  Window next();

 private:
  double between(double low, double high);
  std::array<std::array<double, kAxes>, kAxes> any_angle();

  std::mt19937_64 random_;
};

/// The next windows of a sensor.
std::vector<Window> take(Sensor& sensor, std::size_t count);

}  // namespace edge
