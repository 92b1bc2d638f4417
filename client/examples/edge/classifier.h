#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace edge {

/// A window to learn from. The samples are not copied.
struct Example {
  std::span<const std::int16_t> samples;  ///< Frame by frame.
  std::uint8_t label = 0;
};

/// What the classifier is made for.
struct Shape {
  std::size_t frames = 0;
  std::size_t axes = 0;
  std::size_t classes = 0;
};

/// A convolution over time, the mean of its rectified outputs, and a softmax, trained by stochastic
/// gradient descent with momentum: 5 kB of weights. The same seed and examples give the same
/// weights. Threads: one.
class Classifier {
 public:
  Classifier(const Shape& shape, std::uint64_t seed);

  /// One step down the mean gradient of the batch. Returns the batch's mean cross entropy.
  float learn(std::span<const Example> batch);

  /// The likeliest class.
  std::size_t guess(std::span<const std::int16_t> samples);

 private:
  struct Weights {
    std::vector<float> filters;  ///< [filter][frame][axis]
    std::vector<float> biases;   ///< [filter]
    std::vector<float> dense;    ///< [class][filter, and one for the bias]
  };

  std::size_t places() const;
  void forward(std::span<const std::int16_t> samples);
  void backward(std::uint8_t label);
  void step(std::size_t examples);

  const Shape shape_;
  Weights weights_;
  Weights gradient_;
  Weights speed_;
  // Of the window at hand.
  std::vector<float> input_;   ///< In g, without gravity.
  std::vector<float> output_;  ///< [place][filter]: the convolution, rectified.
  std::vector<float> pooled_;  ///< [filter]
  std::vector<float> share_;   ///< [class]: the probability of each.
};

}  // namespace edge
