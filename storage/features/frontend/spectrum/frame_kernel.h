#pragma once

#include <cstddef>
#include <cstdint>

namespace batchwright {

/// Frames that are transformed at once, one in each lane. Arrays of such frames are [n][lanes], on
/// the boundary of a cache line.
#ifdef BATCHWRIGHT_MINIMAL  // where half of the code counts for more
inline constexpr std::size_t kFrameLanes = 4;
#else
inline constexpr std::size_t kFrameLanes = 8;
#endif

/// A step of a mixed-radix transform: `radix` is 2, 3, 4, 5, 8 or 16. Value is double, or float
/// where that is exact enough.
template <class Value>
struct FftStep {
  std::uint32_t radix = 0;
  std::uint32_t groups = 0;         ///< Butterflies with twiddle factors of their own.
  std::uint32_t stride = 0;         ///< Butterflies that share them.
  const Value* twiddles = nullptr;  ///< [groups][radix - 1] of cos, sin.
};

/// A transform of real frames. Where `points` is even it is done as one of half as many complex
/// points, which `roots` untangle.
template <class Value>
struct FftTables {
  std::size_t points = 0;
  const FftStep<Value>* steps = nullptr;
  std::size_t step_count = 0;
  const Value* roots = nullptr;  ///< [points / 2 + 1] of cos, sin; null where `points` is odd.
};

/// A band of a filter bank.
struct BandWeights {
  std::size_t first_bin = 0;
  std::size_t bins = 0;
  const double* weights = nullptr;  ///< [bins]
};

/// How frames are cut out of sound.
struct FrameCut {
  const double* samples = nullptr;  ///< Of the first frame and all behind it.
  std::size_t hop = 0;              ///< Samples from one frame to the next.
  std::size_t window = 0;           ///< Samples of a frame.
  const double* weights = nullptr;  ///< [window]
  double pre_emphasis = 0;          ///< k of s(n) - k s(n - 1), where s(-1) = s(0).
  bool remove_mean = false;         ///< Of each frame, before all else.
  double* raw_energies = nullptr;   ///< [lanes] of sums of s^2 before pre-emphasis; may be null.
  double* energies = nullptr;       ///< The same behind the window; may be null. Not both.
};

/// A filter over frames that follow each other, each of which begins half its points behind the one
/// before, in parts of half as many taps.
struct ColumnFilter {
  std::size_t bins = 0;
  std::size_t part_count = 0;
  const float* parts = nullptr;  ///< [bins][parts] of re, im: transforms of the parts.
  std::size_t row = 0;           ///< Places from a row of the columns to the next.
};

/// The loops of a front end over kFrameLanes frames at once, compiled for one instruction set. A
/// frame's values are the same bits in each lane and by each instruction set: lanes meet nowhere,
/// and no product is fused with a sum.
/// Threads: any; memory is the caller's.
struct FrameKernel {
  const char* name = nullptr;
  /// `count` samples times `scale`.
  void (*widen)(const float* samples, std::size_t count, double scale, double* out) = nullptr;
  /// Frames [window][lanes], pre-emphasised and weighted.
  void (*cut)(const FrameCut& cut, double* frames) = nullptr;
  /// |X(j)|^2, j = 0 ... points / 2, of frames [points][lanes], which are overwritten. `scratch`
  /// has FftPlan::scratch() places, `power` (points / 2 + 1) * lanes.
  void (*power)(const FftTables<double>& tables, double* frames, double* scratch,
                double* power) = nullptr;
  /// sqrt(value + add) in place of `count` values, a multiple of the lanes.
  void (*root)(double* values, std::size_t count, double add) = nullptr;
  /// Energies [bands][lanes] of a power spectrum.
  void (*weigh)(const BandWeights* bands, std::size_t count, const double* power,
                double* energies) = nullptr;
  /// ln max(value, floor) in place of `count` values, a multiple of the lanes; finite, floor > 0.
  /// Within one unit in the last place.
  void (*log)(double* values, std::size_t count, double floor) = nullptr;
  /// Transforms, of even points, of frames [points][lanes], which are overwritten, as columns of
  /// [points / 2 + 1][re, im][row]: `columns` is where the first frame's begins. `scratch` has
  /// points * lanes places, `row` is a multiple of the lanes.
  void (*transform)(const FftTables<float>& tables, float* frames, float* scratch, float* columns,
                    std::size_t row) = nullptr;
  /// Frames [points][lanes] of transforms [points / 2 + 1][re, im][lanes]. `scratch` as above.
  void (*inverse)(const FftTables<float>& tables, const float* spectrum, float* scratch,
                  float* frames) = nullptr;
  /// Transforms [bins][re, im][lanes] of the frames at `columns`, filtered: that of part i is
  /// multiplied with the frame i columns before.
  void (*filter)(const ColumnFilter& filter, const float* columns, float* spectrum) = nullptr;
};

/// The kernel for this processor.
const FrameKernel& frame_kernel();

/// All kernels that this processor runs, the plainest first.
std::size_t frame_kernels(const FrameKernel* (&kernels)[3]);

}  // namespace batchwright
