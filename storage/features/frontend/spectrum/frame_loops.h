// The loops of a FrameKernel. Files that are compiled for an instruction set include this, and
// nothing that other files share: an inline function of theirs would be compiled for that set, too,
// and could be the one that the linker keeps for all.
//
// The logarithm is that of the C library of FreeBSD (e_log.c): ln(2^k (1 + f)) by s = f / (2 + f)
// and a polynomial in s^2.

#pragma once

#include "storage/features/frontend/spectrum/butterflies.h"

namespace batchwright {
namespace {

using Lanes = LanesOf<double>::Type;
using Bits = unsigned long long __attribute__((vector_size(kFrameLanes * sizeof(double))));

/// E(k) and root^k O(k) of X(k) = E(k) + root^k O(k): E and O, the transforms of the even and of
/// the odd samples, lie in Z(k) = E(k) + i O(k), of which `a` is Z(k) and `b` is Z(half - k).
template <class Value>
inline __attribute__((always_inline)) void untangle(const Complex<Value>& a,
                                                    const Complex<Value>& b, const Value* root,
                                                    Complex<Value>& even, Complex<Value>& odd) {
  constexpr auto kHalf = static_cast<Value>(0.5);
  even.re = kHalf * (a.re + b.re);
  even.im = kHalf * (a.im - b.im);
  const auto odd_re = kHalf * (a.im + b.im);
  const auto odd_im = kHalf * (b.re - a.re);
  turned(odd, odd_re, odd_im, root);
}

inline __attribute__((always_inline)) void square(Lanes& out, const Lanes& re, const Lanes& im) {
  out = re * re + im * im;
}

/// Of an odd number of points: complex ones without an imaginary part.
void power_of_odd(const FftTables<double>& tables, const double* frames, double* scratch,
                  double* power) {
  const std::size_t points = tables.points;
  for (std::size_t n = 0; n < points; ++n) {
    lanes(scratch + 2 * kFrameLanes * n) = lanes(frames + kFrameLanes * n);
    lanes(scratch + 2 * kFrameLanes * n + kFrameLanes) = Lanes{};
  }
  const Array<double> x{run_steps(tables, scratch, scratch + 2 * kFrameLanes * points)};
  for (std::size_t k = 0; k <= points / 2; ++k) {
    square(lanes(power + kFrameLanes * k), x[k].re, x[k].im);
  }
}

/// Power at k and at half - k are found together: X(half - k) is the conjugate of E(k) - root^k
/// O(k).
void power_of(const FftTables<double>& tables, double* frames, double* scratch, double* power) {
  if (tables.roots == nullptr) return power_of_odd(tables, frames, scratch, power);
  const std::size_t half = tables.points / 2;
  const Array<double> z{run_steps(tables, frames, scratch)};
  for (std::size_t k = 0; k <= half / 2; ++k) {
    Complex<double> even;
    Complex<double> odd;
    untangle(z[k], z[k == 0 ? 0 : half - k], tables.roots + 2 * k, even, odd);
    square(lanes(power + kFrameLanes * k), even.re + odd.re, even.im + odd.im);
    square(lanes(power + kFrameLanes * (half - k)), even.re - odd.re, even.im - odd.im);
  }
}

/// Sample n of each frame in a vector, where frames begin `hop` samples behind each other.
inline __attribute__((always_inline)) void gather(Lanes& out, const double* s, std::size_t h) {
  for (std::size_t lane = 0; lane < kFrameLanes; ++lane) out[lane] = s[lane * h];
}

#ifndef BATCHWRIGHT_MINIMAL

/// The first, or the second, two of each four places of `a`, and then those of `b`.
inline __attribute__((always_inline)) void join_first(Lanes& out, const Lanes& a, const Lanes& b) {
  out = __builtin_shufflevector(a, b, 0, 1, 4, 5, 8, 9, 12, 13);
}
inline __attribute__((always_inline)) void join_second(Lanes& out, const Lanes& a, const Lanes& b) {
  out = __builtin_shufflevector(a, b, 2, 3, 6, 7, 10, 11, 14, 15);
}

/// Columns `first`, `first` + 2, + 4 and + 6, of which `pairs` has those of two rows each.
inline __attribute__((always_inline)) void join_columns(const Lanes (&pairs)[4], std::size_t first,
                                                        Lanes (&out)[kFrameLanes]) {
  Lanes left;
  Lanes right;
  join_first(left, pairs[0], pairs[1]);
  join_first(right, pairs[2], pairs[3]);
  join_first(out[first], left, right);
  join_second(out[first + 4], left, right);
  join_second(left, pairs[0], pairs[1]);
  join_second(right, pairs[2], pairs[3]);
  join_first(out[first + 2], left, right);
  join_second(out[first + 6], left, right);
}

/// The same for samples n to n + 7: rows of frames are read whole and transposed.
inline __attribute__((always_inline)) void gather_block(Lanes (&out)[kFrameLanes], const double* s,
                                                        std::size_t h) {
  Lanes even[4];
  Lanes odd[4];
  for (std::size_t i = 0; i < 4; ++i) {
    Lanes a;
    Lanes b;
    __builtin_memcpy(&a, s + 2 * i * h, sizeof a);
    __builtin_memcpy(&b, s + (2 * i + 1) * h, sizeof b);
    even[i] = __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14);
    odd[i] = __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
  }
  join_columns(even, 0, out);
  join_columns(odd, 1, out);
}

#endif

/// Calls `use` with the place of each sample of a window, and with that sample of each frame.
template <class Use>
inline __attribute__((always_inline)) void each_sample(const FrameCut& cut, Use use) {
  std::size_t n = 0;
#ifndef BATCHWRIGHT_MINIMAL
  for (; n + kFrameLanes <= cut.window; n += kFrameLanes) {
    Lanes block[kFrameLanes];
    gather_block(block, cut.samples + n, cut.hop);
    for (std::size_t i = 0; i < kFrameLanes; ++i) use(n + i, block[i]);
  }
#endif
  for (; n < cut.window; ++n) {
    Lanes here;
    gather(here, cut.samples + n, cut.hop);
    use(n, here);
  }
}

void means_of(const FrameCut& cut, Lanes& means) {
  Lanes sum{};
  each_sample(cut, [&sum](std::size_t, const Lanes& here) { sum += here; });
  means = sum / static_cast<double>(cut.window);
}

/// Fills frames, and calls `see` with each sample before and after pre-emphasis and window.
template <class See>
inline __attribute__((always_inline)) void fill_frames(const FrameCut& cut, double* frames,
                                                       See see) {
  Lanes mean{};
  if (cut.remove_mean) means_of(cut, mean);
  Lanes before;
  gather(before, cut.samples, cut.hop);
  before -= mean;
  each_sample(cut, [&](std::size_t n, const Lanes& sample) {
    const Lanes here = sample - mean;
    const Lanes out = (here - cut.pre_emphasis * before) * cut.weights[n];
    lanes(frames + kFrameLanes * n) = out;
    see(here, out);
    before = here;
  });
}

/// A sum waits for the one before, so energies are summed up only where they are wanted.
void cut_frames(const FrameCut& cut, double* frames) {
  Lanes sum{};
  if (cut.raw_energies != nullptr) {
    fill_frames(cut, frames, [&sum](const Lanes& raw, const Lanes&) { sum += raw * raw; });
    lanes(cut.raw_energies) = sum;
  } else if (cut.energies != nullptr) {
    fill_frames(cut, frames, [&sum](const Lanes&, const Lanes& out) { sum += out * out; });
    lanes(cut.energies) = sum;
  } else {
    fill_frames(cut, frames, [](const Lanes&, const Lanes&) {});
  }
}

void widen_samples(const float* samples, std::size_t count, double scale, double* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<double>(samples[i]) * scale;
}

void roots_of(double* values, std::size_t count, double add) {
  for (std::size_t i = 0; i < count; i += kFrameLanes) {
    double* const v = values + i;
    for (std::size_t lane = 0; lane < kFrameLanes; ++lane) v[lane] = __builtin_sqrt(v[lane] + add);
  }
}

void weigh_bands(const BandWeights* bands, std::size_t count, const double* power,
                 double* energies) {
  for (std::size_t b = 0; b < count; ++b) {
    const double* bins = power + kFrameLanes * bands[b].first_bin;
    Lanes energy{};
    for (std::size_t i = 0; i < bands[b].bins; ++i) {
      energy += bands[b].weights[i] * lanes(bins + kFrameLanes * i);
    }
    lanes(energies + kFrameLanes * b) = energy;
  }
}

/// Of finite normal numbers above 0.
inline __attribute__((always_inline)) void log_of(Lanes& x) {
  constexpr double kLn2High = 6.93147180369123816490e-01;
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  // Bits of sqrt(1/2): what is left of a number without its exponent lies from there to sqrt(2).
  constexpr unsigned long long kOffset = 0x3fe6a09e667f3bcdULL;
  constexpr unsigned long long kBias = 1024ULL << 52;
  Bits bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  const Bits biased = bits - kOffset + kBias;  // above 0, so that it can be shifted as it is
  const Bits exponent = biased >> 52;
  const Bits rest = bits - ((exponent - 1024ULL) << 52);
  // A whole number below 2^52 becomes a double by its bits behind those of 2^52.
  const Bits magic = exponent | 0x4330000000000000ULL;
  Lanes k;
  Lanes z;
  __builtin_memcpy(&k, &magic, sizeof k);
  __builtin_memcpy(&z, &rest, sizeof z);
  k = k - (4503599627370496.0 + 1024.0);
  const Lanes f = z - 1.0;
  const Lanes s = f / (2.0 + f);
  const Lanes z2 = s * s;
  const Lanes w = z2 * z2;
  const Lanes t1 = w * (3.999999999940941908e-01 +
                        w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
  const Lanes t2 = z2 * (6.666666666666735130e-01 +
                         w * (2.857142874366239149e-01 +
                              w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
  const Lanes half = 0.5 * f * f;
  const Lanes r = t1 + t2;
  x = k * kLn2High - ((half - (s * (half + r) + k * kLn2Low)) - f);
}

void logs_of(double* values, std::size_t count, double floor) {
  const Lanes least = Lanes{} + floor;
  for (std::size_t i = 0; i < count; i += kFrameLanes) {
    Lanes& x = lanes(values + i);
    x = x > least ? x : least;
    log_of(x);
  }
}

}  // namespace
}  // namespace batchwright
