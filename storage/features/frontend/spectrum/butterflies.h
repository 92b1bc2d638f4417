// The steps of a transform of frames. The same rules hold as in frame_loops.h, which includes this.
//
// The transform is Stockham's (T. G. Stockham, High-speed convolution and correlation, 1966; C. Van
// Loan, Computational Frameworks for the FFT, section 1.7): each step reads one array and writes
// another, so that nothing has to be reordered. Steps of 16 and 8 are two steps in one: the arrays
// of a frame front end do not fit into the first cache together, and are what takes the time.

#pragma once

#include "storage/features/frontend/spectrum/frame_kernel.h"

/// Before the loops of a step that is several in one: what lies between stays in registers.
#ifdef BATCHWRIGHT_MINIMAL  // where a quarter of the code counts for more
#define BATCHWRIGHT_UNROLL
#else
#define BATCHWRIGHT_UNROLL _Pragma("GCC unroll 4")
#endif

namespace batchwright {
namespace {

template <class Value>
struct LanesOf {
  using Type __attribute__((vector_size(kFrameLanes * sizeof(Value)))) = Value;
};

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

/// Values of a butterfly, turned by its twiddle factor. Those of the last step are all 1.
template <bool kTurns, class Value>
inline __attribute__((always_inline)) void put(Complex<Value>& out, const Complex<Value>& x,
                                               const Value* twiddle) {
  if constexpr (kTurns) {
    turned(out, x.re, x.im, twiddle);
  } else {
    out = x;
  }
}

/// The sum and the difference of two, in place: their transform.
template <class Value>
inline __attribute__((always_inline)) void transform2(Complex<Value>& a, Complex<Value>& b) {
  const auto re = a.re - b.re;
  const auto im = a.im - b.im;
  a.re += b.re;
  a.im += b.im;
  b.re = re;
  b.im = im;
}

/// The transform of four, in place.
template <class Value>
inline __attribute__((always_inline)) void transform4(Complex<Value>& a, Complex<Value>& b,
                                                      Complex<Value>& c, Complex<Value>& d) {
  transform2(a, c);
  transform2(b, d);
  transform2(a, b);
  Complex<Value> turned_d{d.im, -d.re};  // by -2 pi / 4
  const Complex<Value> second = b;
  b = c;
  transform2(b, turned_d);
  c = second;
  d = turned_d;
}

/// One butterfly: out[j * step] = twiddle^j * sum over k of in[k * gap] w^(j k).
template <bool kTurns, class Value>
inline __attribute__((always_inline)) void butterfly2(Array<Value> in, std::size_t gap,
                                                      Array<Value> out, std::size_t step,
                                                      const Value* t) {
  Complex<Value> a = in[0];
  Complex<Value> b = in[gap];
  transform2(a, b);
  out[0] = a;
  put<kTurns>(out[step], b, t);
}

template <bool kTurns, class Value>
inline __attribute__((always_inline)) void butterfly3(Array<Value> in, std::size_t gap,
                                                      Array<Value> out, std::size_t step,
                                                      const Value* t) {
  constexpr auto kSin = static_cast<Value>(0.86602540378443864676);  // of 2 pi / 3
  const Complex<Value>& a = in[0];
  Complex<Value> sum = in[gap];
  Complex<Value> difference = in[2 * gap];
  transform2(sum, difference);
  constexpr auto kHalf = static_cast<Value>(0.5);
  const auto mid_re = a.re - kHalf * sum.re;
  const auto mid_im = a.im - kHalf * sum.im;
  const auto side_re = kSin * difference.re;
  const auto side_im = kSin * difference.im;
  out[0].re = a.re + sum.re;
  out[0].im = a.im + sum.im;
  put<kTurns>(out[step], {mid_re + side_im, mid_im - side_re}, t);
  put<kTurns>(out[2 * step], {mid_re - side_im, mid_im + side_re}, t + 2);
}

template <bool kTurns, class Value>
inline __attribute__((always_inline)) void butterfly4(Array<Value> in, std::size_t gap,
                                                      Array<Value> out, std::size_t step,
                                                      const Value* t) {
  Complex<Value> a = in[0];
  Complex<Value> b = in[gap];
  Complex<Value> c = in[2 * gap];
  Complex<Value> d = in[3 * gap];
  transform4(a, b, c, d);
  out[0] = a;
  put<kTurns>(out[step], b, t);
  put<kTurns>(out[2 * step], c, t + 2);
  put<kTurns>(out[3 * step], d, t + 4);
}

template <bool kTurns, class Value>
inline __attribute__((always_inline)) void butterfly5(Array<Value> in, std::size_t gap,
                                                      Array<Value> out, std::size_t step,
                                                      const Value* t) {
  constexpr auto kCos1 = static_cast<Value>(0.30901699437494742410);   // of 2 pi / 5
  constexpr auto kCos2 = static_cast<Value>(-0.80901699437494742410);  // of 4 pi / 5
  constexpr auto kSin1 = static_cast<Value>(0.95105651629515357212);
  constexpr auto kSin2 = static_cast<Value>(0.58778525229247312917);
  const Complex<Value>& a = in[0];
  Complex<Value> be = in[gap];  // the sum of both, and then the difference
  Complex<Value> b_e = in[4 * gap];
  Complex<Value> cd = in[2 * gap];
  Complex<Value> c_d = in[3 * gap];
  transform2(be, b_e);
  transform2(cd, c_d);
  const auto mid1_re = a.re + kCos1 * be.re + kCos2 * cd.re;
  const auto mid1_im = a.im + kCos1 * be.im + kCos2 * cd.im;
  const auto mid2_re = a.re + kCos2 * be.re + kCos1 * cd.re;
  const auto mid2_im = a.im + kCos2 * be.im + kCos1 * cd.im;
  const auto side1_re = kSin1 * b_e.re + kSin2 * c_d.re;
  const auto side1_im = kSin1 * b_e.im + kSin2 * c_d.im;
  const auto side2_re = kSin2 * b_e.re - kSin1 * c_d.re;
  const auto side2_im = kSin2 * b_e.im - kSin1 * c_d.im;
  out[0].re = a.re + be.re + cd.re;
  out[0].im = a.im + be.im + cd.im;
  put<kTurns>(out[step], {mid1_re + side1_im, mid1_im - side1_re}, t);
  put<kTurns>(out[2 * step], {mid2_re + side2_im, mid2_im - side2_re}, t + 2);
  put<kTurns>(out[3 * step], {mid2_re - side2_im, mid2_im + side2_re}, t + 4);
  put<kTurns>(out[4 * step], {mid1_re - side1_im, mid1_im + side1_re}, t + 6);
}

/// cos, sin of -2 pi j / 16, as far as steps of 8 and 16 take them.
template <class Value>
inline constexpr Value kSixteenths[10][2] = {
    {1, 0},
    {static_cast<Value>(0.92387953251128675613), static_cast<Value>(-0.38268343236508977173)},
    {static_cast<Value>(0.70710678118654752440), static_cast<Value>(-0.70710678118654752440)},
    {static_cast<Value>(0.38268343236508977173), static_cast<Value>(-0.92387953251128675613)},
    {0, -1},
    {static_cast<Value>(-0.38268343236508977173), static_cast<Value>(-0.92387953251128675613)},
    {static_cast<Value>(-0.70710678118654752440), static_cast<Value>(-0.70710678118654752440)},
    {static_cast<Value>(-0.92387953251128675613), static_cast<Value>(-0.38268343236508977173)},
    {-1, 0},
    {static_cast<Value>(-0.92387953251128675613), static_cast<Value>(0.38268343236508977173)},
};

/// Of n = 4 kParts, where kParts is 2 or 4: v[c + kParts s] becomes the sum over r of
/// in[(c + kParts r) * gap] w^(s r), turned by -2 pi c s / n.
template <std::size_t kParts, class Value>
inline __attribute__((always_inline)) void transform_parts(Array<Value> in, std::size_t gap,
                                                           Complex<Value> (&v)[4 * kParts]) {
  BATCHWRIGHT_UNROLL
  for (std::size_t c = 0; c < kParts; ++c) {
    Complex<Value> x[4] = {in[c * gap], in[(c + kParts) * gap], in[(c + 2 * kParts) * gap],
                           in[(c + 3 * kParts) * gap]};
    transform4(x[0], x[1], x[2], x[3]);
    v[c] = x[0];
    BATCHWRIGHT_UNROLL
    for (std::size_t s = 1; s < 4; ++s) {
      const Value* const root = kSixteenths<Value>[c * s * 4 / kParts];
      if (c == 0) {
        put<false>(v[kParts * s], x[s], root);
      } else {
        put<true>(v[c + kParts * s], x[s], root);
      }
    }
  }
}

template <bool kTurns, class Value>
inline __attribute__((always_inline)) void butterfly8(Array<Value> in, std::size_t gap,
                                                      Array<Value> out, std::size_t step,
                                                      const Value* t) {
  Complex<Value> v[8];
  transform_parts<2>(in, gap, v);
  BATCHWRIGHT_UNROLL
  for (std::size_t s = 0; s < 4; ++s) {
    transform2(v[2 * s], v[2 * s + 1]);
    if (s != 0) put<kTurns>(out[s * step], v[2 * s], t + 2 * (s - 1));
    put<kTurns>(out[(s + 4) * step], v[2 * s + 1], t + 2 * (s + 3));
  }
  out[0] = v[0];
}

template <bool kTurns, class Value>
inline __attribute__((always_inline)) void butterfly16(Array<Value> in, std::size_t gap,
                                                       Array<Value> out, std::size_t step,
                                                       const Value* t) {
  Complex<Value> v[16];
  transform_parts<4>(in, gap, v);
  BATCHWRIGHT_UNROLL
  for (std::size_t s = 0; s < 4; ++s) {
    transform4(v[4 * s], v[4 * s + 1], v[4 * s + 2], v[4 * s + 3]);
    BATCHWRIGHT_UNROLL
    for (std::size_t j = s == 0 ? 1 : 0; j < 4; ++j) {
      put<kTurns>(out[(s + 4 * j) * step], v[4 * s + j], t + 2 * (s + 4 * j - 1));
    }
  }
  out[0] = v[0];
}

template <bool kTurns, class Value>
inline __attribute__((always_inline)) void run_group(const FftStep<Value>& step, std::size_t p,
                                                     Value* from, Value* to) {
  const std::size_t stride = step.stride;
  const std::size_t gap = stride * step.groups;
  const Value* const twiddles = step.twiddles + 2 * p * (step.radix - 1);
  for (std::size_t q = 0; q < stride; ++q) {
    const Array<Value> in{from + 2 * kFrameLanes * (q + stride * p)};
    const Array<Value> out{to + 2 * kFrameLanes * (q + stride * step.radix * p)};
    switch (step.radix) {
      case 2: butterfly2<kTurns>(in, gap, out, stride, twiddles); break;
      case 3: butterfly3<kTurns>(in, gap, out, stride, twiddles); break;
      case 4: butterfly4<kTurns>(in, gap, out, stride, twiddles); break;
      case 5: butterfly5<kTurns>(in, gap, out, stride, twiddles); break;
      case 8: butterfly8<kTurns>(in, gap, out, stride, twiddles); break;
      default: butterfly16<kTurns>(in, gap, out, stride, twiddles); break;
    }
  }
}

template <class Value>
void run_step(const FftStep<Value>& step, Value* from, Value* to) {
  run_group<false>(step, 0, from, to);
  for (std::size_t p = 1; p < step.groups; ++p) run_group<true>(step, p, from, to);
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

}  // namespace
}  // namespace batchwright

#undef BATCHWRIGHT_UNROLL
