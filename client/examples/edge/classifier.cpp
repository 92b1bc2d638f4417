#include "classifier.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace edge {
namespace {

constexpr std::size_t kFilters = 16;
constexpr std::size_t kWidth = 25;  // frames that a filter sees
constexpr std::size_t kHop = 8;     // frames from one place to the next
constexpr float kRate = 0.1F;
constexpr float kMomentum = 0.9F;
constexpr float kSampleUnit = 0.001F;  // g

std::vector<float> drawn(std::size_t count, std::size_t inputs, std::mt19937_64& random) {
  std::normal_distribution<float> normal(0, std::sqrt(2.0F / static_cast<float>(inputs)));
  std::vector<float> values(count);
  std::generate(values.begin(), values.end(), [&] { return normal(random); });
  return values;
}

void softmax(std::vector<float>& values) {
  const float most = *std::max_element(values.begin(), values.end());
  for (float& value : values) value = std::exp(value - most);
  const float sum = std::accumulate(values.begin(), values.end(), 0.0F);
  for (float& value : values) value /= sum;
}

/// `gradient` is the sum over `examples`, and is used up.
void descend(std::vector<float>& weights, std::vector<float>& speed, std::vector<float>& gradient,
             std::size_t examples) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    speed[i] = kMomentum * speed[i] - kRate * gradient[i] / static_cast<float>(examples);
    weights[i] += speed[i];
    gradient[i] = 0;
  }
}

}  // namespace

Classifier::Classifier(const Shape& shape, std::uint64_t seed) : shape_(shape) {
  std::mt19937_64 random(seed);
  const std::size_t inputs = kWidth * shape.axes;
  weights_ = {drawn(kFilters * inputs, inputs, random), std::vector<float>(kFilters),
              drawn(shape.classes * (kFilters + 1), kFilters, random)};
  gradient_ = speed_ = {std::vector<float>(weights_.filters.size()),
                        std::vector<float>(weights_.biases.size()),
                        std::vector<float>(weights_.dense.size())};
  input_.resize(shape.frames * shape.axes);
  output_.resize(places() * kFilters);
  pooled_.resize(kFilters + 1);
  share_.resize(shape.classes);
}

std::size_t Classifier::places() const { return (shape_.frames - kWidth) / kHop + 1; }

void Classifier::forward(std::span<const std::int16_t> samples) {
  for (std::size_t axis = 0; axis < shape_.axes; ++axis) {
    float sum = 0;
    for (std::size_t i = axis; i < input_.size(); i += shape_.axes) sum += samples[i];
    const float mean = sum / static_cast<float>(shape_.frames);  // gravity, and nothing else
    for (std::size_t i = axis; i < input_.size(); i += shape_.axes) {
      input_[i] = kSampleUnit * (samples[i] - mean);
    }
  }
  const std::size_t inputs = kWidth * shape_.axes;
  std::fill(pooled_.begin(), pooled_.end(), 0.0F);
  for (std::size_t place = 0; place < places(); ++place) {
    const float* seen = &input_[place * kHop * shape_.axes];
    for (std::size_t f = 0; f < kFilters; ++f) {
      const float* filter = &weights_.filters[f * inputs];
      const float sum = std::inner_product(seen, seen + inputs, filter, weights_.biases[f]);
      output_[place * kFilters + f] = std::max(sum, 0.0F);
      pooled_[f] += output_[place * kFilters + f] / static_cast<float>(places());
    }
  }
  pooled_[kFilters] = 1;
  for (std::size_t c = 0; c < shape_.classes; ++c) {
    share_[c] = std::inner_product(pooled_.begin(), pooled_.end(),
                                   &weights_.dense[c * pooled_.size()], 0.0F);
  }
  softmax(share_);
}

void Classifier::backward(std::uint8_t label) {
  std::vector<float> pull(pooled_.size());  // on each pooled value
  for (std::size_t c = 0; c < shape_.classes; ++c) {
    const float error = share_[c] - (c == label ? 1.0F : 0.0F);
    for (std::size_t f = 0; f < pooled_.size(); ++f) {
      gradient_.dense[c * pooled_.size() + f] += error * pooled_[f];
      pull[f] += error * weights_.dense[c * pooled_.size() + f];
    }
  }
  const std::size_t inputs = kWidth * shape_.axes;
  for (std::size_t place = 0; place < places(); ++place) {
    const float* seen = &input_[place * kHop * shape_.axes];
    for (std::size_t f = 0; f < kFilters; ++f) {
      if (output_[place * kFilters + f] == 0) continue;
      const float error = pull[f] / static_cast<float>(places());
      gradient_.biases[f] += error;
      float* filter = &gradient_.filters[f * inputs];
      for (std::size_t i = 0; i < inputs; ++i) filter[i] += error * seen[i];
    }
  }
}

float Classifier::learn(std::span<const Example> batch) {
  float loss = 0;
  for (const Example& example : batch) {
    forward(example.samples);
    loss -= std::log(std::max(share_[example.label], 1e-9F));
    backward(example.label);
  }
  descend(weights_.filters, speed_.filters, gradient_.filters, batch.size());
  descend(weights_.biases, speed_.biases, gradient_.biases, batch.size());
  descend(weights_.dense, speed_.dense, gradient_.dense, batch.size());
  return loss / static_cast<float>(batch.size());
}

std::size_t Classifier::guess(std::span<const std::int16_t> samples) {
  forward(samples);
  return static_cast<std::size_t>(std::max_element(share_.begin(), share_.end()) - share_.begin());
}

}  // namespace edge
