#include "storage/features/frontend/frames/cmvn.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace batchwright {
namespace {

constexpr std::uint32_t kMostWindow = 65536;
constexpr double kLeastVariance = 1e-20;

Error bad_cmvn(const std::string& what) { return {ErrorCode::invalid_argument, what}; }

/// Adds one frame to sums and squares.
void add_frame(const float* frame, std::size_t dimensions, double* sums, double* squares) {
  for (std::size_t d = 0; d < dimensions; ++d) {
    const auto value = static_cast<double>(frame[d]);
    sums[d] += value;
    squares[d] += value * value;
  }
}

void set_moments(double count, const double* sums, const double* squares, std::size_t dimensions,
                 CmvnScratch& scratch) {
  scratch.mean.resize(dimensions);
  scratch.deviation.resize(dimensions);
  for (std::size_t d = 0; d < dimensions; ++d) {
    const double mean = sums[d] / count;
    scratch.mean[d] = mean;
    scratch.deviation[d] = std::sqrt(std::max(squares[d] / count - mean * mean, kLeastVariance));
  }
}

void normalise_frame(const CmvnScratch& scratch, bool variance, float* frame) {
  for (std::size_t d = 0; d < scratch.mean.size(); ++d) {
    const double centred = static_cast<double>(frame[d]) - scratch.mean[d];
    frame[d] = static_cast<float>(variance ? centred / scratch.deviation[d] : centred);
  }
}

/// Sums over windows of C frames, each of which begins a frame behind the one before. A window from
/// r frames behind a block's start is that block's end, summed backwards once a block, and the
/// first r frames of the next: each frame is added twice and never subtracted, so that no rounding
/// of values that have left the window stays behind.
class SlidingSums {
 public:
  SlidingSums(std::size_t window, std::size_t dimensions, CmvnScratch& scratch)
      : window_(window), dimensions_(dimensions), scratch_(scratch) {
    scratch_.behind.resize(window * 2 * dimensions);
    scratch_.ahead.resize(2 * dimensions);
  }

  /// Moments of the window from frame `start` on; starts come in a row, from 0.
  void move_to(std::size_t start) {
    if (start % window_ == 0) {
      sum_block(start);
    } else {
      add(start + window_ - 1, scratch_.ahead.data());
    }
    double* const sums = scratch_.behind.data() + start % window_ * 2 * dimensions_;
    // Each place of the block's sums is used once: the window's are made there.
    for (std::size_t d = 0; d < 2 * dimensions_; ++d) sums[d] += scratch_.ahead[d];
    set_moments(static_cast<double>(window_), sums, sums + dimensions_, dimensions_, scratch_);
  }

 private:
  void add(std::size_t frame, double* sums) const {
    add_frame(scratch_.frames.data() + frame * dimensions_, dimensions_, sums, sums + dimensions_);
  }

  void sum_block(std::size_t start) {
    const std::size_t row = 2 * dimensions_;
    std::fill(scratch_.ahead.begin(), scratch_.ahead.end(), 0.0);
    for (std::size_t i = window_; i-- > 0;) {
      double* const sums = scratch_.behind.data() + i * row;
      if (i + 1 == window_) {
        std::fill(sums, sums + row, 0.0);
      } else {
        std::copy(sums + row, sums + 2 * row, sums);
      }
      add(start + i, sums);
    }
  }

  std::size_t window_;
  std::size_t dimensions_;
  CmvnScratch& scratch_;
};

void normalise_sliding(const CmvnOptions& options, std::size_t dimensions, std::span<float> frames,
                       CmvnScratch& scratch) {
  const std::size_t count = frames.size() / dimensions;
  const std::size_t half = options.window / 2;
  const std::size_t last = count - options.window;
  scratch.frames.assign(frames.begin(), frames.end());
  SlidingSums sums(options.window, dimensions, scratch);
  sums.move_to(0);
  std::size_t start = 0;
  for (std::size_t t = 0; t < count; ++t) {
    if (t > half && start < last) sums.move_to(++start);
    normalise_frame(scratch, options.variance, frames.data() + t * dimensions);
  }
}

}  // namespace

Result<void> check(const CmvnOptions& options) {
  if (options.kind != CmvnKind::sliding) return {};
  if (options.window >= 1 && options.window <= kMostWindow) return {};
  return bad_cmvn(
      fmt::format("cmvn_window of {} frames; allowed: 1 to {}", options.window, kMostWindow));
}

void CmvnSums::add(std::span<const float> values) {
  const std::size_t dimensions = sums.size();
  for (std::size_t i = 0; i + dimensions <= values.size() && dimensions > 0; i += dimensions) {
    add_frame(values.data() + i, dimensions, sums.data(), squares.data());
    ++frames;
  }
}

void CmvnSums::add(const CmvnSums& other) {
  frames += other.frames;
  for (std::size_t d = 0; d < sums.size(); ++d) {
    sums[d] += other.sums[d];
    squares[d] += other.squares[d];
  }
}

Result<void> check(const CmvnSums& sums, std::size_t dimensions) {
  if (sums.sums.size() != dimensions || sums.squares.size() != dimensions) {
    return bad_cmvn(fmt::format("statistics of {} dimensions; the features have {}",
                                sums.sums.size(), dimensions));
  }
  if (sums.frames == 0) return bad_cmvn("statistics of no frame; allowed: 1 frame and up");
  for (std::size_t d = 0; d < dimensions; ++d) {
    if (std::isfinite(sums.sums[d]) && std::isfinite(sums.squares[d]) && sums.squares[d] >= 0) {
      continue;
    }
    return bad_cmvn(
        fmt::format("statistics of dimension {}: sum {}, sum of squares {}; allowed: "
                    "finite ones",
                    d, sums.sums[d], sums.squares[d]));
  }
  return {};
}

void normalise_by(const CmvnSums& sums, bool variance, std::span<float> frames,
                  CmvnScratch& scratch) {
  const std::size_t dimensions = sums.sums.size();
  set_moments(static_cast<double>(sums.frames), sums.sums.data(), sums.squares.data(), dimensions,
              scratch);
  for (std::size_t i = 0; i + dimensions <= frames.size(); i += dimensions) {
    normalise_frame(scratch, variance, frames.data() + i);
  }
}

void normalise_own(const CmvnOptions& options, std::size_t dimensions, std::span<float> frames,
                   CmvnScratch& scratch) {
  if (frames.empty()) return;
  if (options.kind == CmvnKind::sliding && frames.size() / dimensions > options.window) {
    return normalise_sliding(options, dimensions, frames, scratch);
  }
  scratch.ahead.assign(2 * dimensions, 0.0);
  double* const sums = scratch.ahead.data();
  for (std::size_t i = 0; i < frames.size(); i += dimensions) {
    add_frame(frames.data() + i, dimensions, sums, sums + dimensions);
  }
  set_moments(static_cast<double>(frames.size() / dimensions), sums, sums + dimensions, dimensions,
              scratch);
  for (std::size_t i = 0; i < frames.size(); i += dimensions) {
    normalise_frame(scratch, options.variance, frames.data() + i);
  }
}

}  // namespace batchwright
