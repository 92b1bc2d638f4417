#include "storage/features/frontend/spectrum/frame_kernel.h"

#include <doctest/doctest.h>
#include <fftw3.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "storage/features/frontend/spectrum/fft_plan.h"
#include "storage/features/frontend/spectrum/frame_memory.h"

using namespace batchwright;

namespace {

std::vector<const FrameKernel*> all_kernels() {
  const FrameKernel* kernels[3];
  return {kernels, kernels + frame_kernels(kernels)};
}

bool allowed(std::uint32_t points) {
  for (const std::uint32_t factor : {2U, 3U, 5U}) {
    while (points % factor == 0) points /= factor;
  }
  return points == 1;
}

/// Frames [points][lanes], different in each lane.
std::vector<double> noise(std::size_t points) {
  std::mt19937 random(static_cast<std::uint32_t>(points));
  std::vector<double> frames(points * kFrameLanes);
  for (double& value : frames) value = static_cast<double>(random()) / 2147483648.0 - 1;
  return frames;
}

std::vector<double> power_by(const FrameKernel& kernel, const FftPlan<double>& plan,
                             const std::vector<double>& frames) {
  const std::size_t bins = plan.tables().points / 2 + 1;
  FrameMemory<double> memory(frames.size());
  FrameMemory<double> scratch(plan.scratch());
  FrameMemory<double> power(bins * kFrameLanes);
  std::copy(frames.begin(), frames.end(), memory.data());
  kernel.power(plan.tables(), memory.data(), scratch.data(), power.data());
  return {power.data(), power.data() + bins * kFrameLanes};
}

/// The power of one lane by FFTW, which shares nothing with the kernels.
std::vector<double> power_by_fftw(const std::vector<double>& frames, std::size_t lane) {
  const std::size_t points = frames.size() / kFrameLanes;
  double* const in = fftw_alloc_real(points);
  fftw_complex* const out = fftw_alloc_complex(points / 2 + 1);
  fftw_plan_s* const plan = fftw_plan_dft_r2c_1d(static_cast<int>(points), in, out, FFTW_ESTIMATE);
  for (std::size_t n = 0; n < points; ++n) in[n] = frames[n * kFrameLanes + lane];
  fftw_execute(plan);
  std::vector<double> power;
  for (std::size_t k = 0; k <= points / 2; ++k) {
    power.push_back(out[k][0] * out[k][0] + out[k][1] * out[k][1]);
  }
  fftw_destroy_plan(plan);
  fftw_free(in);
  fftw_free(out);
  return power;
}

/// The largest difference, as a part of the largest value.
double difference(const std::vector<double>& power, const std::vector<double>& wanted,
                  std::size_t lane) {
  double most = 0;
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    most = std::max(most, std::abs(power[k * kFrameLanes + lane] - wanted[k]));
  }
  return most / *std::max_element(wanted.begin(), wanted.end());
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

/// A frame as FrameCut describes it, sample by sample.
struct CutFrame {
  std::vector<double> samples;
  double raw_energy = 0;
  double energy = 0;
};

CutFrame cut_by_hand(const FrameCut& cut, std::size_t lane) {
  const double* const from = cut.samples + lane * cut.hop;
  double mean = 0;
  for (std::size_t n = 0; n < cut.window; ++n) mean += from[n];
  mean = cut.remove_mean ? mean / static_cast<double>(cut.window) : 0;
  CutFrame frame;
  double before = from[0] - mean;
  for (std::size_t n = 0; n < cut.window; ++n) {
    const double here = from[n] - mean;
    const double out = (here - cut.pre_emphasis * before) * cut.weights[n];
    frame.samples.push_back(out);
    frame.raw_energy += here * here;
    frame.energy += out * out;
    before = here;
  }
  return frame;
}

}  // namespace

TEST_CASE("frontend: frames are cut by every kernel as by hand, and nothing beside them is read") {
  for (const std::size_t window : {1U, 7U, 8U, 9U, 400U, 401U}) {
    for (const std::size_t hop : {1U, 160U, 500U}) {
      CAPTURE(window);
      CAPTURE(hop);
      // No sample more than the frames have: a sanitizer sees what is read past them.
      std::vector<double> samples = noise(window + 7 * hop);
      samples.resize(window + 7 * hop);
      samples.shrink_to_fit();
      std::vector<double> weights = noise(window);
      weights.resize(window);
      for (const FrameKernel* kernel : all_kernels()) {
        CAPTURE(kernel->name);
        for (const bool remove_mean : {false, true}) {
          FrameMemory<double> frames(window * kFrameLanes);
          FrameMemory<double> energies(kFrameLanes);
          FrameCut cut{samples.data(), hop, window, weights.data(), 0.97, remove_mean};
          cut.raw_energies = energies.data();
          kernel->cut(cut, frames.data());
          const std::vector<double> raw(energies.data(), energies.data() + kFrameLanes);
          cut.raw_energies = nullptr;
          cut.energies = energies.data();
          kernel->cut(cut, frames.data());
          bool same = true;
          for (std::size_t lane = 0; lane < kFrameLanes; ++lane) {
            const CutFrame wanted = cut_by_hand(cut, lane);
            same = same && raw[lane] == wanted.raw_energy;
            same = same && energies.data()[lane] == wanted.energy;
            for (std::size_t n = 0; n < window; ++n) {
              same = same && frames.data()[n * kFrameLanes + lane] == wanted.samples[n];
            }
          }
          CHECK(same);
        }
      }
    }
  }
}

TEST_CASE("frontend: samples are widened by every kernel as by hand") {
  for (const std::size_t count : {0U, 1U, 15U, 16U, 33U}) {
    const std::vector<double> wide = noise(5);
    const std::vector<float> samples(wide.begin(), wide.begin() + static_cast<long>(count));
    for (const FrameKernel* kernel : all_kernels()) {
      std::vector<double> found(count + 1, 7);
      kernel->widen(samples.data(), count, 32768.5, found.data());
      for (std::size_t i = 0; i < count; ++i) {
        CHECK(found[i] == static_cast<double>(samples[i]) * 32768.5);
      }
      CHECK(found[count] == 7);
    }
  }
}

TEST_CASE("frontend: a power spectrum is FFTW's, for every size up to 1024 and larger ones") {
  std::vector<std::uint32_t> sizes{1536, 2000, 2048, 3125, 4096, 16384};
  for (std::uint32_t points = 1; points <= 1024; ++points) {
    if (allowed(points)) sizes.push_back(points);
  }
  for (const std::uint32_t points : sizes) {
    CAPTURE(points);
    const auto plan = FftPlan<double>::create(points);
    REQUIRE(plan);
    const auto frames = noise(points);
    const auto plain = power_by(*all_kernels().front(), *plan, frames);
    for (std::size_t lane = 0; lane < kFrameLanes; ++lane) {
      CHECK(difference(plain, power_by_fftw(frames, lane), lane) < 1e-13);
    }
    for (const FrameKernel* kernel : all_kernels()) {
      CAPTURE(kernel->name);
      CHECK(same_bits(power_by(*kernel, *plan, frames), plain));
    }
  }
}

TEST_CASE("frontend: a frame is the same bits in every lane, whatever is beside it") {
  for (const std::uint32_t points : {400U, 512U, 135U}) {
    const auto plan = FftPlan<double>::create(points);
    const auto frames = noise(points);
    for (const FrameKernel* kernel : all_kernels()) {
      const auto wanted = power_by(*kernel, *plan, frames);
      for (std::size_t lane = 0; lane < kFrameLanes; ++lane) {
        std::vector<double> moved(frames.size(), 0.25);
        for (std::size_t n = 0; n < points; ++n) {
          moved[n * kFrameLanes + lane] = frames[n * kFrameLanes];
        }
        const auto power = power_by(*kernel, *plan, moved);
        for (std::size_t k = 0; k <= points / 2; ++k) {
          CHECK(power[k * kFrameLanes + lane] == wanted[k * kFrameLanes]);
        }
      }
    }
  }
}

TEST_CASE("frontend: transforms in float32 and back are the same bits by every kernel") {
  for (const std::uint32_t points : {2U, 30U, 128U, 720U, 2048U}) {
    CAPTURE(points);
    const auto plan = FftPlan<float>::create(points);
    REQUIRE(plan);
    const std::vector<double> wide = noise(points);
    const std::vector<float> frames(wide.begin(), wide.end());
    const std::size_t places = (points / 2 + 1) * 2 * kFrameLanes;
    std::vector<float> first;
    for (const FrameKernel* kernel : all_kernels()) {
      CAPTURE(kernel->name);
      FrameMemory<float> memory(frames.size());
      FrameMemory<float> scratch(plan->scratch());
      FrameMemory<float> columns(places);
      FrameMemory<float> filtered(places);
      std::copy(frames.begin(), frames.end(), memory.data());
      kernel->transform(plan->tables(), memory.data(), scratch.data(), columns.data(), kFrameLanes);
      const std::vector<float> ones = [points] {
        std::vector<float> parts;
        for (std::uint32_t k = 0; k <= points / 2; ++k) parts.insert(parts.end(), {1.0F, 0.0F});
        return parts;
      }();
      kernel->filter({points / 2 + 1, 1, ones.data(), kFrameLanes}, columns.data(),
                     filtered.data());
      std::vector<float> found(filtered.data(), filtered.data() + places);
      kernel->inverse(plan->tables(), filtered.data(), scratch.data(), memory.data());
      float off = 0;
      for (std::size_t i = 0; i < frames.size(); ++i) {
        off = std::max(off, std::abs(memory.data()[i] - frames[i]));
      }
      CHECK(off <= 1e-6F);
      found.insert(found.end(), memory.data(), memory.data() + frames.size());
      if (first.empty()) first = found;
      CHECK(std::memcmp(found.data(), first.data(), found.size() * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("frontend: sizes that have other factors are refused by them") {
  const auto error = [](std::uint32_t points) {
    const auto plan = FftPlan<double>::create(points);
    return plan ? "" : plan.error().message;
  };
  CHECK(error(448) ==
        "an FFT of 448 points, of which 7 is a factor; allowed: products of 2, 3, 4 and 5");
  CHECK(error(1001).find("of which 1001 is a factor") != std::string::npos);
  CHECK(error(0) == "an FFT of 0 points; allowed: 1 to 1048576");
  CHECK(error(1U << 21) == "an FFT of 2097152 points; allowed: 1 to 1048576");
}

TEST_CASE("frontend: logarithms are the C library's to the last place, by every kernel") {
  FrameMemory<double> memory(1 << 16);
  std::mt19937_64 random(1);
  std::vector<double> values;
  for (double exponent = -300; exponent <= 300; exponent += 0.01) {
    values.push_back(std::pow(10.0, exponent));
  }
  for (int i = 0; i < 4000; ++i) {
    values.push_back(0.5 + static_cast<double>(random() >> 11) * 0x1p-53);
  }
  values.insert(values.end(), {1.0, 2.0, 0.5, std::nextafter(1.0, 0.0), std::nextafter(1.0, 2.0),
                               std::sqrt(0.5), std::sqrt(2.0), 0.0, -1.0});
  const double floor = std::numeric_limits<double>::min();
  values.resize((values.size() + kFrameLanes - 1) / kFrameLanes * kFrameLanes, 1.0);
  for (const FrameKernel* kernel : all_kernels()) {
    CAPTURE(kernel->name);
    std::copy(values.begin(), values.end(), memory.data());
    kernel->log(memory.data(), values.size(), floor);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double wanted = std::log(std::max(values[i], floor));
      CAPTURE(values[i]);
      CHECK(std::abs(memory.data()[i] - wanted) <= 2.3e-16 * std::abs(wanted));
    }
  }
}
