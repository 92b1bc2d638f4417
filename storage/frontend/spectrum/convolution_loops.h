// The loops of a FrameKernel that filter frames; see frame_loops.h, whose rules hold here, too.

#pragma once

#include "storage/frontend/spectrum/frame_loops.h"

namespace batchwright {
namespace {

void transform_of(const FftTables& tables, double* frames, double* scratch, double* columns,
                  std::size_t row) {
  const std::size_t half = tables.points / 2;
  const Array z{run_steps(tables, frames, scratch)};
  for (std::size_t k = 0; k <= half; ++k) {
    Complex x;
    untangle(tables, z, k, x);
    lanes(columns + 2 * k * row) = x.re;
    lanes(columns + (2 * k + 1) * row) = x.im;
  }
}

/// Z(k) = E(k) + i O(k) of X(k) = E(k) + root^k O(k), with re and im in each other's place: the
/// transform of that is the inverse one of Z, in each other's place again.
void inverse_of(const FftTables& tables, const double* spectrum, double* scratch, double* frames) {
  const std::size_t half = tables.points / 2;
  const double scale = 0.5 / static_cast<double>(half);
  const Array z{frames};
  for (std::size_t k = 0; k < half; ++k) {
    const Lanes& a_re = lanes(spectrum + 2 * kFrameLanes * k);
    const Lanes& a_im = lanes(spectrum + 2 * kFrameLanes * k + kFrameLanes);
    const Lanes& b_re = lanes(spectrum + 2 * kFrameLanes * (half - k));
    const Lanes& b_im = lanes(spectrum + 2 * kFrameLanes * (half - k) + kFrameLanes);
    const Lanes side_re = a_re - b_re;
    const Lanes side_im = a_im + b_im;
    const double* root = tables.roots + 2 * k;
    const Lanes odd_re = side_re * root[0] + side_im * root[1];
    const Lanes odd_im = side_im * root[0] - side_re * root[1];
    z[k].im = scale * ((a_re + b_re) - odd_im);
    z[k].re = scale * ((a_im - b_im) + odd_re);
  }
  const Array found{run_steps(tables, frames, scratch)};
  for (std::size_t n = 0; n < half; ++n) {
    const Lanes re = found[n].im;
    const Lanes im = found[n].re;
    z[n].re = re;
    z[n].im = im;
  }
}

/// Lanes at any place.
inline __attribute__((always_inline)) void load(Lanes& out, const double* at) {
  __builtin_memcpy(&out, at, sizeof out);
}

void filter_columns(const ColumnFilter& filter, const double* columns, double* spectrum) {
  for (std::size_t k = 0; k < filter.bins; ++k) {
    const double* const re = columns + 2 * k * filter.row;
    const double* const im = re + filter.row;
    const double* weight = filter.parts + 2 * k * filter.part_count;
    Lanes sum_re{};
    Lanes sum_im{};
    for (std::size_t i = 0; i < filter.part_count; ++i, weight += 2) {
      Lanes x_re;
      Lanes x_im;
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
