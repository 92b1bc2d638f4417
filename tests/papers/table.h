#pragma once

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace batchwright::testing {

/// Mean and standard deviation of what was measured.
struct Measured {
  double mean = 0, deviation = 0;
};

inline Measured measured(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  const auto count = static_cast<double>(values.size());
  const double mean = sum / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, values.size() < 2 ? 0 : std::sqrt(squares / (count - 1))};
}

/// Prints lines of paper | ours, and remembers whether all were within their tolerance.
class Table {
 public:
  void title(const char* text) {
    std::printf("\n%s\n%-34s %12s %12s %12s %10s\n", text, "", "expected", "ours", "deviation",
                "tolerance");
  }

  void line(const std::string& what, double expected, Measured ours, double tolerance) {
    const bool fits = std::abs(ours.mean - expected) <= tolerance;
    std::printf("%-34s %12.9g %12.9g %12.4g %10.3g%s\n", what.c_str(), expected, ours.mean,
                ours.deviation, tolerance, fits ? "" : "  OUTSIDE");
    outside_ += fits ? 0 : 1;
    ++lines_;
  }

  /// The program's exit code.
  int finish() const {
    std::printf("\n%d figures, %d outside their tolerance\n", lines_, outside_);
    return outside_ == 0 ? 0 : 1;
  }

 private:
  int lines_ = 0;
  int outside_ = 0;
};

}  // namespace batchwright::testing
