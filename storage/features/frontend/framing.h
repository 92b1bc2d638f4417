#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/features/frontend/options.h"

namespace batchwright {

/// Options in samples, with nothing left open.
struct FrameMeasures {
  std::size_t window = 0;  ///< W
  std::size_t hop = 0;     ///< H
  std::uint32_t fft_size = 0;
  double fmax_hz = 0;
};

/// Errors: invalid_argument, naming the option, what was found and what is allowed.
Result<FrameMeasures> measure_frames(const FrontEndOptions& options, std::uint32_t sample_rate);

/// Frames of so many samples. It does not fall as `samples` grow.
std::uint64_t count_frames(const FrontEndOptions& options, const FrameMeasures& measures,
                           std::uint64_t samples);

/// The factor of a cepstrum, counted from 0: Kaldi's lifter counts so, librosa's from 1.
double lifter_of(const FrontEndOptions& options, std::size_t cepstrum);

/// The window's weights where a frame's samples lie: W of them, or as many as the FFT has points
/// where the window lies in their middle.
std::vector<double> frame_weights(const FrontEndOptions& options, const FrameMeasures& measures);

/// The samples of one sound as frames are cut out of it: scaled, followed by silence,
/// pre-emphasised as a whole where that is asked for, and mirrored at its ends. Immutable.
/// Lifetime: that of the samples. Threads: any.
class FramedSound {
 public:
  FramedSound(const FrontEndOptions& options, const FrameMeasures& measures,
              std::span<const float> samples);

  /// Place of the first sample of frame t; it may lie before the sound.
  std::int64_t start_of(std::uint64_t frame) const;
  /// Copies what lies from `start` on to `out`.
  void copy(std::int64_t start, std::span<double> out) const;

 private:
  double at(std::int64_t place) const;
  double value(std::uint64_t place) const;

  std::span<const float> samples_;
  Edges edges_;
  std::uint64_t length_ = 0;  // with the silence behind
  std::int64_t offset_ = 0;   // of frame 0
  std::size_t hop_ = 0;
  double scale_ = 1;
  double pre_emphasis_ = 0;  // of the whole sound
};

}  // namespace batchwright
