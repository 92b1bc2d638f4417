#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/formats.h"
#include "storage/features/frontend/options.h"

namespace batchwright {

/// Features of audio of one sample rate.
///
/// All but the result is in double precision: in single precision the FFT's rounding of a loud
/// tone drowns the quiet bands beside it.
/// Threads: any number at once.
class FrontEnd {
 public:
  /// Errors: invalid_argument, naming the option, what was found and what is allowed.
  static Result<FrontEnd> create(const FrontEndOptions& options, std::uint32_t sample_rate);

  FrontEnd(FrontEnd&&) noexcept;
  FrontEnd& operator=(FrontEnd&&) noexcept;
  ~FrontEnd();

  std::uint32_t sample_rate() const;  ///< Hz
  std::uint32_t dimensions() const;   ///< Values of one frame.

  /// Frames of that many samples, as the convention counts them; 0 of none.
  std::size_t frames(std::size_t samples) const;

  /// [frames, dimensions], row-major. `samples` lie in -1 .. 1.
  std::vector<float> compute(std::span<const float> samples) const;

  /// Every option with the values that zeros stand for, to be kept in a dataset's description.
  std::vector<std::pair<std::string, std::string>> settings() const;

  struct State;  ///< Private to the room; see front_end.cpp.

 private:
  explicit FrontEnd(std::unique_ptr<const State> state);
  std::unique_ptr<const State> state_;
};

}  // namespace batchwright
