#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "formats/formats.h"

namespace batchwright {

enum class FeatureKind : std::uint8_t {
  logmel,  ///< Logarithms of mel band energies.
  mfcc,    ///< The first coefficients of their orthonormal DCT-II.
  plp,     ///< Cepstra of an all-pole model of what is heard (perceptual linear prediction).
};
enum class WindowShape : std::uint8_t { hamming, hann, povey, rectangular };

/// Where the first sample of frame t lies, for windows of W samples, a hop of H, an FFT of P.
enum class FrameStart : std::uint8_t {
  left,           ///< t H
  window_centre,  ///< t H + H div 2 - W div 2 (Kaldi without snip_edges)
  fft_centre,     ///< t H - P / 2
  fft_hop,        ///< t H - (P - H) div 2 (HiFi-GAN)
};

/// What stands for samples before the first and behind the last of N.
enum class Edges : std::uint8_t {
  zeros,
  half,   ///< Mirrored between samples: ... 1 0 | 0 1 ... (Kaldi)
  whole,  ///< Mirrored at samples: ... 2 1 | 0 1 2 ... (NumPy's and torch's "reflect")
};

/// Frames of N samples.
enum class CountRule : std::uint8_t {
  padded,    ///< 1 + (N - W) div H, and 1 for 0 < N < W
  inside,    ///< 1 + (N - W) div H, and 0 for N < W
  rounded,   ///< (N + H div 2) div H
  hops,      ///< N div H
  hops_one,  ///< 1 + N div H for N > 0
};

enum class PreEmphasis : std::uint8_t {
  frame,   ///< s(n) - k s(n - 1) in each frame, s(-1) = s(0).
  signal,  ///< x(n) - k x(n - 1) of the whole sound, x(-1) = 0.
};
enum class Spectrum : std::uint8_t {
  power,           ///< |X|^2
  magnitude,       ///< |X|
  soft_magnitude,  ///< sqrt(|X|^2 + 1e-9) (HiFi-GAN)
};
enum class MelScale : std::uint8_t { htk, slaney };
/// Whether the sides of triangles are straight in mel or in Hz.
enum class MelSides : std::uint8_t { mel, hz };
enum class LogKind : std::uint8_t {
  floor,  ///< ln max(e, log_floor)
  add,    ///< ln(e + log_floor)
  ten,    ///< log10 max(e, log_floor)
  db,     ///< 10 log10 max(e, log_floor), then not below the sound's maximum - top_db
};
/// What is done to all values of a sound once they are there.
enum class Normalise : std::uint8_t {
  none,
  whisper,       ///< y = max(y, max y - 8); (y + 4) / 4
  per_feature,   ///< (y - mean) / (sd + 1e-5) of each dimension, sd over T - 1 (NeMo)
  all_features,  ///< The same of all values together.
};
/// The lifter of cepstrum m: 1 + L / 2 sin(pi m / L), or with m + 1 in place of m.
enum class Lifter : std::uint8_t { kaldi, librosa };

/// The settings by which sound becomes features. As they stand they are those of convention htk;
/// front_end_like() has the others. The formulae are in DEFINITIONS.md.
struct FrontEndOptions {
  std::string like = "htk";  ///< The convention that the rest began with.
  FeatureKind features = FeatureKind::logmel;
  double sample_scale = 1;  ///< Samples of -1 .. 1 are multiplied by it.
  double peak = 0;          ///< Samples are scaled so that the largest is this; 0: they are not.
  double window_ms = 25;    ///< Range: at least 2 samples.
  double hop_ms = 10;       ///< Range: at least 1 sample.
  std::uint32_t window_samples = 0;  ///< In place of window_ms, unless 0.
  std::uint32_t hop_samples = 0;     ///< In place of hop_ms, unless 0.
  bool round_down = false;  ///< Milliseconds become whole samples downwards, or to the nearest.
  FrameStart start = FrameStart::left;
  CountRule count = CountRule::padded;
  Edges edges = Edges::zeros;
  std::uint64_t pad_to = 0;    ///< Shorter sound is followed by silence up to so many samples.
  bool remove_dc = false;      ///< The mean of each frame is subtracted.
  double pre_emphasis = 0.97;  ///< k. Range: 0 (off) up to, but not, 1.
  PreEmphasis emphasis = PreEmphasis::frame;
  WindowShape window = WindowShape::hamming;
  bool periodic = false;  ///< The window's period is W samples, or W - 1.
  /// Points, at least the window, a product of 2, 3, 4 and 5; 0: the next power of two.
  std::uint32_t fft_size = 0;
  bool centre_window = false;  ///< The window lies in the middle of the FFT, or at its left.
  Spectrum spectrum = Spectrum::power;
  MelScale scale = MelScale::htk;
  MelSides sides = MelSides::mel;
  bool equal_area = false;  ///< Each band is divided by half its width in Hz (Slaney).
  /// Half of an odd sample rate is rounded down: fmax 0, and the FFT's bins, end there
  /// (torchaudio).
  bool whole_nyquist = false;
  std::uint32_t mel_bands = 40;
  double fmin_hz = 20;
  double fmax_hz = 0;        ///< Up to half the sample rate; 0 or less: that far below it.
  bool empty_bands = false;  ///< Bands without a bin are constant, or refused.
  LogKind log = LogKind::floor;
  double log_floor = 1e-10;  ///< Range: above 0.
  double top_db = 0;         ///< Of LogKind::db; 0: off.
  Normalise normalise = Normalise::none;
  /// Coefficients of mfcc and plp. Range: 1 to mel_bands, or to lpc_order + 1.
  std::uint32_t cepstra = 13;
  double lifter = 0;  ///< L. Range: 0 (off), or 1e-3 and up.
  Lifter lifter_form = Lifter::kaldi;
  /// ln max(sum of s^2, 2^-23) of a frame: before the bands of logmel, in place of cepstrum 0.
  bool use_energy = false;
  bool raw_energy = true;   ///< Before pre-emphasis and window, or behind them.
  double energy_floor = 0;  ///< The energy's logarithm is at least this one's; 0: off.
  bool htk_compat = false;  ///< Energy or cepstrum 0 comes last; cepstrum 0 of mfcc times sqrt(2).
  std::uint32_t lpc_order = 12;      ///< Poles of plp. Range: 1 to kMostLpcOrder, below mel_bands.
  double compress_factor = 0.33333;  ///< Of plp: heard intensity is energy to this power.
  double cepstral_scale = 1;         ///< Of plp: all cepstra are multiplied by it.
};

inline constexpr std::uint32_t kMostLpcOrder = 64;

/// "logmel", "mfcc", "plp".
std::span<const std::string_view> feature_words();
std::string_view feature_word(FeatureKind features);
/// The kind of that name. Errors: invalid_argument, which lists the names.
Result<FeatureKind> parse_features(std::string_view word);

/// "htk", "kaldi" and so on: conventions, and presets of them.
std::span<const std::string_view> front_end_names();

/// The settings of a convention. Errors: invalid_argument, which lists the names.
Result<FrontEndOptions> front_end_like(std::string_view name, FeatureKind features);

/// The names that set_option() takes: those of settings(), the window and hop in samples, and
/// Kaldi's snip_edges. Not "like" and "features", with which a front end begins.
std::span<const std::string_view> option_names();

/// The words of WindowShape, in its order.
std::span<const std::string_view> window_words();

/// Sets an option from text: a number, true or false, or a word. A length in milliseconds takes the
/// place of the convention's in samples. What values are sensible FrontEnd::create() says.
/// Errors: invalid_argument, naming the option, what was found and what is allowed.
Result<void> set_option(FrontEndOptions& options, std::string_view name, std::string_view text);

}  // namespace batchwright
