// The loops of a FrameKernel that filter frames; see frame_loops.h, whose rules hold here, too.

#pragma once

#include "storage/features/frontend/spectrum/frame_loops.h"

namespace batchwright {
namespace {

using Floats = LanesOf<float>::Type;

void transform_of(const FftTables<float>& tables, float* frames, float* scratch, float* columns,
                  std::size_t row) {
  const std::size_t half = tables.points / 2;
  const Array<float> z{run_steps(tables, frames, scratch)};
  for (std::size_t k = 0; k <= half; ++k) {
    Complex<float> even;
    Complex<float> odd;
    untangle(z[k == half ? 0 : k], z[k == 0 ? 0 : half - k], tables.roots + 2 * k, even, odd);
    lanes(columns + 2 * k * row) = even.re + odd.re;
    lanes(columns + (2 * k + 1) * row) = even.im + odd.im;
  }
}

/// Z(k) = E(k) + i O(k) of X(k) = E(k) + root^k O(k), with re and im in each other's place: the
/// transform of that is the inverse one of Z, in each other's place again.
void inverse_of(const FftTables<float>& tables, const float* spectrum, float* scratch,
                float* frames) {
  const std::size_t half = tables.points / 2;
  const float scale = 0.5F / static_cast<float>(half);
  const Array<float> z{frames};
  for (std::size_t k = 0; k < half; ++k) {
    const Floats& a_re = lanes(spectrum + 2 * kFrameLanes * k);
    const Floats& a_im = lanes(spectrum + 2 * kFrameLanes * k + kFrameLanes);
    const Floats& b_re = lanes(spectrum + 2 * kFrameLanes * (half - k));
    const Floats& b_im = lanes(spectrum + 2 * kFrameLanes * (half - k) + kFrameLanes);
    const Floats side_re = a_re - b_re;
    const Floats side_im = a_im + b_im;
    const float* root = tables.roots + 2 * k;
    const Floats odd_re = side_re * root[0] + side_im * root[1];
    const Floats odd_im = side_im * root[0] - side_re * root[1];
    z[k].im = scale * ((a_re + b_re) - odd_im);
    z[k].re = scale * ((a_im - b_im) + odd_re);
  }
  const Array<float> found{run_steps(tables, frames, scratch)};
  for (std::size_t n = 0; n < half; ++n) {
    const Floats re = found[n].im;
    const Floats im = found[n].re;
    z[n].re = re;
    z[n].im = im;
  }
}

/// Floats at any place.
inline __attribute__((always_inline)) void load(Floats& out, const float* at) {
  __builtin_memcpy(&out, at, sizeof out);
}

void filter_columns(const ColumnFilter& filter, const float* columns, float* spectrum) {
  for (std::size_t k = 0; k < filter.bins; ++k) {
    const float* const re = columns + 2 * k * filter.row;
    const float* const im = re + filter.row;
    const float* weight = filter.parts + 2 * k * filter.part_count;
    Floats sum_re{};
    Floats sum_im{};
    for (std::size_t i = 0; i < filter.part_count; ++i, weight += 2) {
      Floats x_re;
      Floats x_im;
      load(x_re, re - i);
      load(x_im, im - i);
      sum_re += x_re * weight[0] - x_im * weight[1];
      sum_im += x_re * weight[1] + x_im * weight[0];
    }
    lanes(spectrum + 2 * kFrameLanes * k) = sum_re;
    lanes(spectrum + 2 * kFrameLanes * k + kFrameLanes) = sum_im;
  }
}

}  // namespace
}  // namespace batchwright
