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

template <class Value>
struct LanesOf {
  using Type __attribute__((vector_size(kFrameLanes * sizeof(Value)))) = Value;
};
using Lanes = LanesOf<double>::Type;
using Bits = unsigned long long __attribute__((vector_size(kFrameLanes * sizeof(double))));

template <class Value>
struct Complex {
  typename LanesOf<Value>::Type re;
  typename LanesOf<Value>::Type im;
};

template <class Value>
inline __attribute__((always_inline)) const typename LanesOf<Value>::Type& lanes(const Value* at) {
  return *reinterpret_cast<const typename LanesOf<Value>::Type*>(at);
}
template <class Value>
inline __attribute__((always_inline)) typename LanesOf<Value>::Type& lanes(Value* at) {
  return *reinterpret_cast<typename LanesOf<Value>::Type*>(at);
}

template <class Value>
struct Array {
  Value* at;
  Complex<Value>& operator[](std::size_t i) const {
    return *reinterpret_cast<Complex<Value>*>(at + 2 * kFrameLanes * i);
  }
};

template <class Value>
inline __attribute__((always_inline)) void turned(Complex<Value>& out,
                                                  const typename LanesOf<Value>::Type& re,
                                                  const typename LanesOf<Value>::Type& im,
                                                  const Value* twiddle) {
  out.re = re * twiddle[0] - im * twiddle[1];
  out.im = re * twiddle[1] + im * twiddle[0];
}

/// One butterfly: out[j * 1] = twiddle^j * sum over k of in[k * gap] w^(j k).
template <class Value>
inline __attribute__((always_inline)) void butterfly2(Array<Value> in, std::size_t gap,
                                                      Array<Value> out, std::size_t step,
                                                      const Value* t) {
  const Complex<Value>& a = in[0];
  const Complex<Value>& b = in[gap];
  const auto re = a.re - b.re;
  const auto im = a.im - b.im;
  out[0].re = a.re + b.re;
  out[0].im = a.im + b.im;
  turned(out[step], re, im, t);
}

template <class Value>
inline __attribute__((always_inline)) void butterfly3(Array<Value> in, std::size_t gap,
                                                      Array<Value> out, std::size_t step,
                                                      const Value* t) {
  constexpr auto kSin = static_cast<Value>(0.86602540378443864676);  // of 2 pi / 3
  const Complex<Value>& a = in[0];
  const Complex<Value>& b = in[gap];
  const Complex<Value>& c = in[2 * gap];
  const auto sum_re = b.re + c.re;
  const auto sum_im = b.im + c.im;
  constexpr auto kHalf = static_cast<Value>(0.5);
  const auto mid_re = a.re - kHalf * sum_re;
  const auto mid_im = a.im - kHalf * sum_im;
  const auto side_re = kSin * (b.im - c.im);
  const auto side_im = kSin * (c.re - b.re);
  out[0].re = a.re + sum_re;
  out[0].im = a.im + sum_im;
  turned(out[step], mid_re + side_re, mid_im + side_im, t);
  turned(out[2 * step], mid_re - side_re, mid_im - side_im, t + 2);
}

template <class Value>
inline __attribute__((always_inline)) void butterfly4(Array<Value> in, std::size_t gap,
                                                      Array<Value> out, std::size_t step,
                                                      const Value* t) {
  const Complex<Value>& a = in[0];
  const Complex<Value>& b = in[gap];
  const Complex<Value>& c = in[2 * gap];
  const Complex<Value>& d = in[3 * gap];
  const auto ac_re = a.re + c.re;
  const auto ac_im = a.im + c.im;
  const auto bd_re = b.re + d.re;
  const auto bd_im = b.im + d.im;
  const auto a_c_re = a.re - c.re;
  const auto a_c_im = a.im - c.im;
  const auto b_d_re = b.re - d.re;
  const auto b_d_im = b.im - d.im;
  out[0].re = ac_re + bd_re;
  out[0].im = ac_im + bd_im;
  turned(out[step], a_c_re + b_d_im, a_c_im - b_d_re, t);
  turned(out[2 * step], ac_re - bd_re, ac_im - bd_im, t + 2);
  turned(out[3 * step], a_c_re - b_d_im, a_c_im + b_d_re, t + 4);
}

template <class Value>
inline __attribute__((always_inline)) void butterfly5(Array<Value> in, std::size_t gap,
                                                      Array<Value> out, std::size_t step,
                                                      const Value* t) {
  constexpr auto kCos1 = static_cast<Value>(0.30901699437494742410);   // of 2 pi / 5
  constexpr auto kCos2 = static_cast<Value>(-0.80901699437494742410);  // of 4 pi / 5
  constexpr auto kSin1 = static_cast<Value>(0.95105651629515357212);
  constexpr auto kSin2 = static_cast<Value>(0.58778525229247312917);
  const Complex<Value>& a = in[0];
  const Complex<Value>& b = in[gap];
  const Complex<Value>& c = in[2 * gap];
  const Complex<Value>& d = in[3 * gap];
  const Complex<Value>& e = in[4 * gap];
  const auto be_re = b.re + e.re;
  const auto be_im = b.im + e.im;
  const auto cd_re = c.re + d.re;
  const auto cd_im = c.im + d.im;
  const auto b_e_re = b.re - e.re;
  const auto b_e_im = b.im - e.im;
  const auto c_d_re = c.re - d.re;
  const auto c_d_im = c.im - d.im;
  const auto mid1_re = a.re + kCos1 * be_re + kCos2 * cd_re;
  const auto mid1_im = a.im + kCos1 * be_im + kCos2 * cd_im;
  const auto mid2_re = a.re + kCos2 * be_re + kCos1 * cd_re;
  const auto mid2_im = a.im + kCos2 * be_im + kCos1 * cd_im;
  const auto side1_re = kSin1 * b_e_re + kSin2 * c_d_re;
  const auto side1_im = kSin1 * b_e_im + kSin2 * c_d_im;
  const auto side2_re = kSin2 * b_e_re - kSin1 * c_d_re;
  const auto side2_im = kSin2 * b_e_im - kSin1 * c_d_im;
  out[0].re = a.re + be_re + cd_re;
  out[0].im = a.im + be_im + cd_im;
  turned(out[step], mid1_re + side1_im, mid1_im - side1_re, t);
  turned(out[2 * step], mid2_re + side2_im, mid2_im - side2_re, t + 2);
  turned(out[3 * step], mid2_re - side2_im, mid2_im + side2_re, t + 4);
  turned(out[4 * step], mid1_re - side1_im, mid1_im + side1_re, t + 6);
}

template <class Value>
void run_step(const FftStep<Value>& step, Value* from, Value* to) {
  const std::size_t stride = step.stride;
  const std::size_t gap = stride * step.groups;
  for (std::size_t p = 0; p < step.groups; ++p) {
    const Value* twiddles = step.twiddles + 2 * p * (step.radix - 1);
    for (std::size_t q = 0; q < stride; ++q) {
      const Array<Value> in{from + 2 * kFrameLanes * (q + stride * p)};
      const Array<Value> out{to + 2 * kFrameLanes * (q + stride * step.radix * p)};
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
template <class Value>
Value* run_steps(const FftTables<Value>& tables, Value* from, Value* to) {
  for (std::size_t i = 0; i < tables.step_count; ++i) {
    run_step(tables.steps[i], from, to);
    Value* const next = from;
    from = to;
    to = next;
  }
  return from;
}

/// X(k) = E(k) + root^k O(k): E and O, the transforms of the even and of the odd samples, lie in
/// Z(k) = E(k) + i O(k).
template <class Value>
inline __attribute__((always_inline)) void untangle(const FftTables<Value>& tables,
                                                    const Array<Value>& z, std::size_t k,
                                                    Complex<Value>& x) {
  constexpr auto kHalf = static_cast<Value>(0.5);
  const std::size_t half = tables.points / 2;
  const Complex<Value>& a = z[k == half ? 0 : k];
  const Complex<Value>& b = z[k == 0 ? 0 : half - k];
  const auto even_re = kHalf * (a.re + b.re);
  const auto even_im = kHalf * (a.im - b.im);
  const auto odd_re = kHalf * (a.im + b.im);
  const auto odd_im = kHalf * (b.re - a.re);
  const Value* root = tables.roots + 2 * k;
  x.re = even_re + (odd_re * root[0] - odd_im * root[1]);
  x.im = even_im + (odd_re * root[1] + odd_im * root[0]);
}

void power_of(const FftTables<double>& tables, double* frames, double* scratch, double* power) {
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
  const Array<double> z{run_steps(tables, from, to)};
  for (std::size_t k = 0; k <= points / 2; ++k) {
    Complex<double> x;
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
