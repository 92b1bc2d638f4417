#include "storage/features/frontend/framing.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "storage/features/frontend/spectrum/fft_plan.h"
#include "storage/features/frontend/spectrum/frame_kernel.h"

namespace batchwright {
namespace {

Error bad_framing(const std::string& what) { return {ErrorCode::invalid_argument, what}; }

/// A length in whole samples: as given, or as milliseconds say.
Result<std::size_t> in_samples(const FrontEndOptions& options, const char* name, double ms,
                               std::uint32_t given, std::uint32_t rate) {
  // A product that is whole except for its rounding stays so: 0.025 s of 16,000 Hz are 400.
  const double exact = ms * rate / 1000;
  const double samples = given != 0           ? given
                         : options.round_down ? std::floor(exact + 1e-9)
                                              : std::round(exact);
  if (samples >= 1 && samples <= kMaxFftPoints) return static_cast<std::size_t>(samples);
  return bad_framing(fmt::format("{} of {} ms is {} samples at {} Hz; allowed: 1 to {} samples",
                                 name, ms, samples, rate, kMaxFftPoints));
}

Result<void> measure_bands(const FrontEndOptions& options, std::uint32_t rate,
                           FrameMeasures& measures) {
  const double nyquist = options.whole_nyquist ? rate / 2 : rate / 2.0;
  const double fmax = options.fmax_hz > 0 ? options.fmax_hz : nyquist + options.fmax_hz;
  if (!(fmax > 0 && fmax <= nyquist)) {
    return bad_framing(fmt::format("fmax {} Hz; at {} Hz allowed: up to {} Hz, or 0 for that",
                                   options.fmax_hz, rate, nyquist));
  }
  if (!(options.fmin_hz >= 0 && options.fmin_hz < fmax)) {
    return bad_framing(
        fmt::format("fmin {} Hz; allowed: 0 up to, but not, fmax {} Hz", options.fmin_hz, fmax));
  }
  measures.fmax_hz = fmax;
  return {};
}

double window_value(WindowShape shape, double turn) {
  // HTK Book, "Speech Input/Output": 0.54 is Hamming's; 0.5 makes it Hann's, which ends in zeros.
  // Povey's is Hann's to the power of 0.85 (Kaldi).
  const double hann = 0.5 - 0.5 * std::cos(2 * std::numbers::pi * turn);
  switch (shape) {
    case WindowShape::hamming: return 0.54 - 0.46 * std::cos(2 * std::numbers::pi * turn);
    case WindowShape::hann: return hann;
    case WindowShape::povey: return std::pow(hann, 0.85);
    case WindowShape::rectangular: break;
  }
  return 1;
}

}  // namespace

Result<FrameMeasures> measure_frames(const FrontEndOptions& options, std::uint32_t rate) {
  if (rate == 0) return bad_framing("a sample rate of 0 Hz");
  const auto window =
      in_samples(options, "window", options.window_ms, options.window_samples, rate);
  if (!window) return window.error();
  // The symmetric window's weights divide by its size less one.
  if (*window < 2) return bad_framing("a window has at least 2 samples");
  const auto hop = in_samples(options, "hop", options.hop_ms, options.hop_samples, rate);
  if (!hop) return hop.error();
  const auto needed = static_cast<std::uint32_t>(std::bit_ceil(*window));
  const std::uint32_t fft_size = options.fft_size == 0 ? needed : options.fft_size;
  if (fft_size < *window || fft_size > kMaxFftPoints) {
    return bad_framing(fmt::format("an FFT of {} points; allowed: {} (the window) to {}, or 0",
                                   fft_size, *window, kMaxFftPoints));
  }
  if (options.start == FrameStart::fft_hop && fft_size < *hop) {
    return bad_framing(
        fmt::format("a hop of {} samples with an FFT of {} points; allowed: up to {}", *hop,
                    fft_size, fft_size));
  }
  FrameMeasures measures{*window, *hop, fft_size, 0};
  if (auto bands = measure_bands(options, rate, measures); !bands) return bands.error();
  return measures;
}

std::uint64_t count_frames(const FrontEndOptions& options, const FrameMeasures& measures,
                           std::uint64_t samples) {
  if (samples == 0) return 0;
  const std::uint64_t length = std::max(samples, options.pad_to);
  const std::uint64_t hop = measures.hop;
  switch (options.count) {
    case CountRule::padded:
      return length < measures.window ? 1 : 1 + (length - measures.window) / hop;
    case CountRule::inside:
      return length < measures.window ? 0 : 1 + (length - measures.window) / hop;
    case CountRule::rounded: return (length + hop / 2) / hop;
    case CountRule::hops: return length / hop;
    case CountRule::hops_one: break;
  }
  return 1 + length / hop;
}

double lifter_of(const FrontEndOptions& options, std::size_t cepstrum) {
  if (options.lifter == 0) return 1;
  const auto m = static_cast<double>(cepstrum + (options.lifter_form == Lifter::librosa ? 1 : 0));
  return 1 + options.lifter / 2 * std::sin(std::numbers::pi * m / options.lifter);
}

std::vector<double> frame_weights(const FrontEndOptions& options, const FrameMeasures& measures) {
  const std::size_t size = measures.window;
  const double period = static_cast<double>(options.periodic ? size : size - 1);
  std::vector<double> weights(options.centre_window ? (measures.fft_size - size) / 2 : 0, 0.0);
  for (std::size_t i = 0; i < size; ++i) {
    weights.push_back(window_value(options.window, static_cast<double>(i) / period));
  }
  if (options.centre_window) weights.resize(measures.fft_size, 0.0);
  return weights;
}

FramedSound::FramedSound(const FrontEndOptions& options, const FrameMeasures& measures,
                         std::span<const float> samples)
    : samples_(samples),
      edges_(options.edges),
      length_(std::max<std::uint64_t>(samples.size(), options.pad_to)),
      hop_(measures.hop),
      scale_(options.sample_scale),
      pre_emphasis_(options.emphasis == PreEmphasis::signal ? options.pre_emphasis : 0) {
  const auto window = static_cast<std::int64_t>(measures.window);
  const auto hop = static_cast<std::int64_t>(measures.hop);
  const std::int64_t points = measures.fft_size;
  switch (options.start) {
    case FrameStart::left: break;
    case FrameStart::window_centre: offset_ = hop / 2 - window / 2; break;
    case FrameStart::fft_centre: offset_ = -(points / 2); break;
    case FrameStart::fft_hop: offset_ = -((points - hop) / 2); break;
  }
  if (options.peak == 0) return;
  float most = 0;
  for (const float sample : samples) most = std::max(most, std::abs(sample));
  if (most > 0) scale_ *= options.peak / static_cast<double>(most);
}

std::int64_t FramedSound::start_of(std::uint64_t frame) const {
  return static_cast<std::int64_t>(frame * hop_) + offset_;
}

/// A sample of the sound itself.
double FramedSound::value(std::uint64_t place) const {
  const auto raw = [this](std::uint64_t i) {
    return i < samples_.size() ? static_cast<double>(samples_[i]) * scale_ : 0.0;
  };
  if (pre_emphasis_ == 0 || place == 0) return raw(place);
  return raw(place) - pre_emphasis_ * raw(place - 1);
}

/// Folded as often as needed, so that sound of any length has an edge.
double FramedSound::at(std::int64_t place) const {
  const auto length = static_cast<std::int64_t>(length_);
  if (place >= 0 && place < length) return value(static_cast<std::uint64_t>(place));
  if (edges_ == Edges::zeros) return 0;
  if (edges_ == Edges::whole && length == 1) return value(0);
  const std::int64_t last = edges_ == Edges::half ? 2 * length - 1 : 2 * length - 2;
  const std::int64_t period = edges_ == Edges::half ? last + 1 : last;
  std::int64_t folded = place % period;
  if (folded < 0) folded += period;
  return value(static_cast<std::uint64_t>(folded >= length ? last - folded : folded));
}

void FramedSound::copy(std::int64_t start, std::span<double> out) const {
  const auto there = static_cast<std::int64_t>(samples_.size());
  const auto size = static_cast<std::int64_t>(out.size());
  // Inside the sound, as nearly all of it is; with a sample in front for pre-emphasis.
  if (start >= 1 && start + size <= there) {
    const float* const source = samples_.data() + start;
    double* const to = out.data();
    if (pre_emphasis_ == 0) return frame_kernel().widen(source, out.size(), scale_, to);
    for (std::int64_t i = 0; i < size; ++i) {
      const double before = static_cast<double>(source[i - 1]) * scale_;
      to[i] = static_cast<double>(source[i]) * scale_ - pre_emphasis_ * before;
    }
    return;
  }
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = at(start + static_cast<std::int64_t>(i));
}

}  // namespace batchwright
