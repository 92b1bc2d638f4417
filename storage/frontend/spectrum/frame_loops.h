// The loops of a FrameKernel. Files that are compiled for an instruction set include this, and
// nothing that other files share: an inline function of theirs would be compiled for that set, too,
// and could be the one that the linker keeps for all.
//
// The transform is Stockham's (T. G. Stockham, High-speed convolution and correlation, 1966; C. Van
// Loan, Computational Frameworks for the FFT, section 1.7): each step reads one array and writes
// another, so that nothing has to be reordered. The logarithm is that of the C library of FreeBSD
// (e_log.c): ln(2^k (1 + f)) by s = f / (2 + f) and a polynomial in s^2.

#pragma once

#include "storage/frontend/spectrum/frame_kernel.h"

namespace batchwright {
namespace {

using Lanes = double __attribute__((vector_size(kFrameLanes * sizeof(double))));
using Bits = unsigned long long __attribute__((vector_size(kFrameLanes * sizeof(double))));

struct Complex {
  Lanes re;
  Lanes im;
};

inline __attribute__((always_inline)) const Lanes& lanes(const double* at) {
  return *reinterpret_cast<const Lanes*>(at);
}
inline __attribute__((always_inline)) Lanes& lanes(double* at) {
  return *reinterpret_cast<Lanes*>(at);
}

struct Array {
  double* at;
  Complex& operator[](std::size_t i) const {
    return *reinterpret_cast<Complex*>(at + 2 * kFrameLanes * i);
  }
};

inline __attribute__((always_inline)) void turned(Complex& out, const Lanes& re, const Lanes& im,
                                                  const double* twiddle) {
  out.re = re * twiddle[0] - im * twiddle[1];
  out.im = re * twiddle[1] + im * twiddle[0];
}

/// One butterfly: out[j * 1] = twiddle^j * sum over k of in[k * gap] w^(j k).
inline __attribute__((always_inline)) void butterfly2(Array in, std::size_t gap, Array out,
                                                      std::size_t step, const double* t) {
  const Complex& a = in[0];
  const Complex& b = in[gap];
  const Lanes re = a.re - b.re;
  const Lanes im = a.im - b.im;
  out[0].re = a.re + b.re;
  out[0].im = a.im + b.im;
  turned(out[step], re, im, t);
}

inline __attribute__((always_inline)) void butterfly3(Array in, std::size_t gap, Array out,
                                                      std::size_t step, const double* t) {
  constexpr double kSin = 0.86602540378443864676;  // of 2 pi / 3
  const Complex& a = in[0];
  const Complex& b = in[gap];
  const Complex& c = in[2 * gap];
  const Lanes sum_re = b.re + c.re;
  const Lanes sum_im = b.im + c.im;
  const Lanes mid_re = a.re - 0.5 * sum_re;
  const Lanes mid_im = a.im - 0.5 * sum_im;
  const Lanes side_re = kSin * (b.im - c.im);
  const Lanes side_im = kSin * (c.re - b.re);
  out[0].re = a.re + sum_re;
  out[0].im = a.im + sum_im;
  turned(out[step], mid_re + side_re, mid_im + side_im, t);
  turned(out[2 * step], mid_re - side_re, mid_im - side_im, t + 2);
}

inline __attribute__((always_inline)) void butterfly4(Array in, std::size_t gap, Array out,
                                                      std::size_t step, const double* t) {
  const Complex& a = in[0];
  const Complex& b = in[gap];
  const Complex& c = in[2 * gap];
  const Complex& d = in[3 * gap];
  const Lanes ac_re = a.re + c.re;
  const Lanes ac_im = a.im + c.im;
  const Lanes bd_re = b.re + d.re;
  const Lanes bd_im = b.im + d.im;
  const Lanes a_c_re = a.re - c.re;
  const Lanes a_c_im = a.im - c.im;
  const Lanes b_d_re = b.re - d.re;
  const Lanes b_d_im = b.im - d.im;
  out[0].re = ac_re + bd_re;
  out[0].im = ac_im + bd_im;
  turned(out[step], a_c_re + b_d_im, a_c_im - b_d_re, t);
  turned(out[2 * step], ac_re - bd_re, ac_im - bd_im, t + 2);
  turned(out[3 * step], a_c_re - b_d_im, a_c_im + b_d_re, t + 4);
}

inline __attribute__((always_inline)) void butterfly5(Array in, std::size_t gap, Array out,
                                                      std::size_t step, const double* t) {
  constexpr double kCos1 = 0.30901699437494742410;   // of 2 pi / 5
  constexpr double kCos2 = -0.80901699437494742410;  // of 4 pi / 5
  constexpr double kSin1 = 0.95105651629515357212;
  constexpr double kSin2 = 0.58778525229247312917;
  const Complex& a = in[0];
  const Complex& b = in[gap];
  const Complex& c = in[2 * gap];
  const Complex& d = in[3 * gap];
  const Complex& e = in[4 * gap];
  const Lanes be_re = b.re + e.re;
  const Lanes be_im = b.im + e.im;
  const Lanes cd_re = c.re + d.re;
  const Lanes cd_im = c.im + d.im;
  const Lanes b_e_re = b.re - e.re;
  const Lanes b_e_im = b.im - e.im;
  const Lanes c_d_re = c.re - d.re;
  const Lanes c_d_im = c.im - d.im;
  const Lanes mid1_re = a.re + kCos1 * be_re + kCos2 * cd_re;
  const Lanes mid1_im = a.im + kCos1 * be_im + kCos2 * cd_im;
  const Lanes mid2_re = a.re + kCos2 * be_re + kCos1 * cd_re;
  const Lanes mid2_im = a.im + kCos2 * be_im + kCos1 * cd_im;
  const Lanes side1_re = kSin1 * b_e_re + kSin2 * c_d_re;
  const Lanes side1_im = kSin1 * b_e_im + kSin2 * c_d_im;
  const Lanes side2_re = kSin2 * b_e_re - kSin1 * c_d_re;
  const Lanes side2_im = kSin2 * b_e_im - kSin1 * c_d_im;
  out[0].re = a.re + be_re + cd_re;
  out[0].im = a.im + be_im + cd_im;
  turned(out[step], mid1_re + side1_im, mid1_im - side1_re, t);
  turned(out[2 * step], mid2_re + side2_im, mid2_im - side2_re, t + 2);
  turned(out[3 * step], mid2_re - side2_im, mid2_im + side2_re, t + 4);
  turned(out[4 * step], mid1_re - side1_im, mid1_im + side1_re, t + 6);
}

void run_step(const FftStep& step, double* from, double* to) {
  const std::size_t stride = step.stride;
  const std::size_t gap = stride * step.groups;
  for (std::size_t p = 0; p < step.groups; ++p) {
    const double* twiddles = step.twiddles + 2 * p * (step.radix - 1);
    for (std::size_t q = 0; q < stride; ++q) {
      const Array in{from + 2 * kFrameLanes * (q + stride * p)};
      const Array out{to + 2 * kFrameLanes * (q + stride * step.radix * p)};
      switch (step.radix) {
        case 2: butterfly2(in, gap, out, stride, twiddles); break;
        case 3: butterfly3(in, gap, out, stride, twiddles); break;
        case 4: butterfly4(in, gap, out, stride, twiddles); break;
        default: butterfly5(in, gap, out, stride, twiddles); break;
      }
    }
  }
}

/// All steps, from one array to the other in turn; returns the one that has the result.
double* run_steps(const FftTables& tables, double* from, double* to) {
  for (std::size_t i = 0; i < tables.step_count; ++i) {
    run_step(tables.steps[i], from, to);
    double* const next = from;
    from = to;
    to = next;
  }
  return from;
}

/// X(k) = E(k) + root^k O(k): E and O, the transforms of the even and of the odd samples, lie in
/// Z(k) = E(k) + i O(k).
inline __attribute__((always_inline)) void untangle(const FftTables& tables, const Array& z,
                                                    std::size_t k, Complex& x) {
  const std::size_t half = tables.points / 2;
  const Complex& a = z[k == half ? 0 : k];
  const Complex& b = z[k == 0 ? 0 : half - k];
  const Lanes even_re = 0.5 * (a.re + b.re);
  const Lanes even_im = 0.5 * (a.im - b.im);
  const Lanes odd_re = 0.5 * (a.im + b.im);
  const Lanes odd_im = 0.5 * (b.re - a.re);
  const double* root = tables.roots + 2 * k;
  x.re = even_re + (odd_re * root[0] - odd_im * root[1]);
  x.im = even_im + (odd_re * root[1] + odd_im * root[0]);
}

void power_of(const FftTables& tables, double* frames, double* scratch, double* power) {
  const std::size_t points = tables.points;
  double* from = frames;
  double* to = scratch;
  if (tables.roots == nullptr) {
    // An odd number of points: complex ones without an imaginary part.
    for (std::size_t n = 0; n < points; ++n) {
      lanes(scratch + 2 * kFrameLanes * n) = lanes(frames + kFrameLanes * n);
      lanes(scratch + 2 * kFrameLanes * n + kFrameLanes) = Lanes{};
    }
    from = scratch;
    to = scratch + 2 * kFrameLanes * points;
  }
  const Array z{run_steps(tables, from, to)};
  for (std::size_t k = 0; k <= points / 2; ++k) {
    Complex x;
    if (tables.roots != nullptr) {
      untangle(tables, z, k, x);
    } else {
      x = z[k];
    }
    lanes(power + kFrameLanes * k) = x.re * x.re + x.im * x.im;
  }
}

inline __attribute__((always_inline)) void gather(Lanes& out, const double* s, std::size_t h) {
  out = Lanes{s[0], s[h], s[2 * h], s[3 * h], s[4 * h], s[5 * h], s[6 * h], s[7 * h]};
}

void means_of(const FrameCut& cut, Lanes& means) {
  Lanes sum{};
  for (std::size_t n = 0; n < cut.window; ++n) {
    Lanes here;
    gather(here, cut.samples + n, cut.hop);
    sum += here;
  }
  means = sum / static_cast<double>(cut.window);
}

void cut_frames(const FrameCut& cut, double* frames) {
  Lanes mean{};
  if (cut.remove_mean) means_of(cut, mean);
  Lanes before;
  gather(before, cut.samples, cut.hop);
  before -= mean;
  Lanes raw{};
  Lanes weighted{};
  for (std::size_t n = 0; n < cut.window; ++n) {
    Lanes here;
    gather(here, cut.samples + n, cut.hop);
    here -= mean;
    const Lanes out = (here - cut.pre_emphasis * before) * cut.weights[n];
    lanes(frames + kFrameLanes * n) = out;
    raw += here * here;
    weighted += out * out;
    before = here;
  }
  if (cut.raw_energies != nullptr) lanes(cut.raw_energies) = raw;
  if (cut.energies != nullptr) lanes(cut.energies) = weighted;
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
