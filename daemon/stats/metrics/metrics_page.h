#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>

namespace batchwright {

/// Prometheus' text format 0.0.4, line by line.
class MetricsPage {
 public:
  struct Label {
    std::string_view name;
    std::string_view value;  ///< Any bytes.
  };
  using Labels = std::initializer_list<Label>;

  /// Begins a metric; its samples follow.
  void begin(std::string_view name, std::string_view help, std::string_view type);

  /// A sample of the metric that was begun last.
  template <class Number>
  void sample(Labels labels, Number value) {
    sample(prepare(labels), value);
  }
  template <class Number>
  void sample(Number value) {
    sample(std::string_view(), value);
  }

  /// Labels as they stand in many samples, rendered once.
  static std::string prepare(Labels labels);
  template <class Number>
  void sample(std::string_view prepared, Number value) {
    part("", prepared, value);
  }
  /// The same of a histogram, whose names end in `_bucket` and so on.
  template <class Number>
  void part(std::string_view ending, std::string_view prepared, Number value) {
    const auto out = std::back_inserter(text_);
    if (prepared.empty()) {
      fmt::format_to(out, "{}{} {}\n", name_, ending, value);
    } else {
      fmt::format_to(out, "{}{}{{{}}} {}\n", name_, ending, prepared, value);
    }
  }

  std::string text() const { return fmt::to_string(text_); }

 private:
  fmt::memory_buffer text_;
  std::string name_;  ///< Of the metric that was begun last.
};

}  // namespace batchwright
