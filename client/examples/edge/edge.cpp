// Learns from an accelerometer what its wearer does, on the device, while the sensor goes on: its
// windows are written into a dataset that the daemon serves, and each epoch takes up those that
// have come meanwhile. C++ alone; trainer and daemon together take less than 64 MiB.
//
//     batchwright run --config edge.toml -- ./edge windows          (README.md)
//
//     edge DATASET [--windows N] [--per-second N] [--epochs N] [--seed N]
//
// DATASET is that of the feed, and is made. N windows of 2.56 s come, so many a second; N epochs
// are to have all of them. The table says which share of 500 other windows is recognised.
#include <unistd.h>

#include <algorithm>
#include <batchwright/client.hpp>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>

#include "classifier.h"
#include "memory.h"
#include "recorder.h"
#include "sensor.h"

namespace bw = batchwright::client;

namespace edge {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kAtOnce = 64;
constexpr std::size_t kHeldOut = 500;
constexpr int kPatience = 100;  // epochs in which the last windows have to come, once written

struct Options {
  std::string dataset;
  std::uint64_t windows = 4096;
  std::uint64_t per_second = 1000;
  std::uint64_t epochs = 4;
  std::uint64_t seed = 1;
};

/// What a feed's batches make of a classifier, and the table of it.
class Training {
 public:
  /// `endpoint` is the daemon's.
  Training(const Options& options, const Recorder& recorder, const std::string& endpoint);

  void learn(const bw::Batch& batch);
  /// Ends an epoch. Returns whether another one is to follow.
  bool end_epoch();
  void print_head() const;
  void print_end() const;

 private:
  double accuracy();
  void print_row();

  const Recorder& recorder_;
  const std::string endpoint_;
  const std::uint64_t wanted_;  // epochs that have all windows
  const Clock::time_point begin_ = Clock::now();
  Classifier classifier_;
  std::vector<Window> held_out_;
  std::vector<Example> examples_;  // of a batch
  std::size_t windows_ = 0;        // of an epoch
  std::size_t next_row_ = 0;       // windows of the next epoch that gets a row
  std::size_t epochs_ = 0;
  std::size_t steps_ = 0;
  std::uint64_t whole_ = 0;          // epochs that had all windows
  int late_ = 0;                     // epochs that had fewer although all were written
  std::size_t most_bytes_ = 0;       // in memory of trainer and daemon
  std::size_t most_file_bytes_ = 0;  // beside them, of files
};

Training::Training(const Options& options, const Recorder& recorder, const std::string& endpoint)
    : recorder_(recorder),
      endpoint_(endpoint),
      wanted_(options.epochs),
      classifier_({kFrames, kAxes, kActivities.size()}, options.seed) {
  Sensor other(~options.seed);
  held_out_ = take(other, kHeldOut);
}

/// Reads the windows where the daemon put them.
void Training::learn(const bw::Batch& batch) {
  constexpr std::size_t kSize = kFrames * kAxes;
  const bw::Tensor acceleration = batch["acceleration"];
  const auto samples = acceleration.as<std::int16_t>();
  const auto activities = batch["activity"].as<std::uint8_t>();
  const bool fits = samples.size() == activities.size() * kSize &&
                    acceleration.shape()[1] == kFrames &&
                    std::ranges::max(activities) < kActivities.size();
  if (!fits) throw std::runtime_error("the feed has other windows than those of this sensor");
  examples_.clear();
  for (std::size_t row = 0; row < activities.size(); ++row) {
    examples_.push_back({samples.subspan(row * kSize, kSize), activities[row]});
  }
  classifier_.learn(examples_);
  windows_ += examples_.size();
  ++steps_;
}

bool Training::end_epoch() {
  ++epochs_;
  if (windows_ >= recorder_.all()) {
    ++whole_;
  } else if (recorder_.written() == recorder_.all() && ++late_ == kPatience) {
    throw std::runtime_error("the feed has " + std::to_string(windows_) + " windows, and " +
                             std::to_string(recorder_.all()) +
                             " are written: allowed is a feed of this dataset with follow = true");
  }
  const bool over = whole_ == wanted_;
  if (over || windows_ >= next_row_) print_row();
  windows_ = 0;
  return !over;
}

double Training::accuracy() {
  const auto right = std::ranges::count_if(held_out_, [this](const Window& window) {
    return classifier_.guess(window.samples) == window.activity;
  });
  return static_cast<double>(right) / static_cast<double>(held_out_.size());
}

void Training::print_head() const {
  std::printf("%8s %8s %9s %7s %7s %9s %12s %11s\n", "seconds", "written", "in epoch", "epochs",
              "steps", "held out", "trainer MiB", "daemon MiB");
}

void Training::print_row() {
  const Memory trainer = memory_of(::getpid());
  const auto process = listener_at(endpoint_);  // another one after a restart
  const Memory daemon = process ? memory_of(*process) : Memory();
  const std::size_t daemon_bytes = daemon.own_bytes + daemon.shared_bytes;
  most_bytes_ = std::max(most_bytes_, trainer.own_bytes + daemon_bytes);
  most_file_bytes_ = std::max(most_file_bytes_, trainer.file_bytes + daemon.file_bytes);
  const std::chrono::duration<double> taken = Clock::now() - begin_;
  std::printf("%8.1f %8zu %9zu %7zu %7zu %7.1f %% %12.1f %11.1f\n", taken.count(),
              recorder_.written(), windows_, epochs_, steps_, 100 * accuracy(),
              mebibytes(trainer.own_bytes), mebibytes(daemon_bytes));
  std::fflush(stdout);
  next_row_ = 2 * windows_;
}

void Training::print_end() const {
  std::printf(
      "%.1f s of processor time; trainer and daemon took %.1f MiB at most,\n"
      "and %.1f MiB of programs, libraries and the dataset, which the kernel may drop\n",
      static_cast<double>(std::clock()) / CLOCKS_PER_SEC, mebibytes(most_bytes_),
      mebibytes(most_file_bytes_));
}

/// Errors: std::runtime_error, and bw::Error among them. A daemon that goes away is waited for.
void run(const Options& options) {
  const char* named = std::getenv("BATCHWRIGHT_ENDPOINT");
  const std::string endpoint = named != nullptr ? named : BW_DEFAULT_ENDPOINT;
  Recorder recorder({options.dataset, kAtOnce, options.windows - kAtOnce,
                     static_cast<double>(options.per_second), options.seed});
  bw::Connection connection(endpoint);
  bw::Subscription subscription = connection.subscribe({.feed = "activities"});
  Training training(options, recorder, endpoint);
  training.print_head();
  recorder.start();
  while (true) {
    const bw::Event event = subscription.next(std::chrono::seconds(60));
    recorder.check();
    if (event.is_batch()) {
      training.learn(event.batch);
    } else if (!training.end_epoch()) {
      break;
    }
  }
  training.print_end();
}

/// A whole number from `least` on; empty for other text.
std::optional<std::uint64_t> number(const std::string& text, std::uint64_t least) {
  std::uint64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
  return whole && value >= least ? std::optional(value) : std::nullopt;
}

std::optional<Options> parse(const std::vector<std::string>& words) {
  Options options;
  const std::map<std::string, std::pair<std::uint64_t*, std::uint64_t>> known = {
      {"--windows", {&options.windows, kAtOnce}},
      {"--per-second", {&options.per_second, 1}},
      {"--epochs", {&options.epochs, 1}},
      {"--seed", {&options.seed, 0}}};
  if (words.empty() || words.size() % 2 == 0 || words.front().starts_with('-')) return std::nullopt;
  options.dataset = words.front();
  for (std::size_t i = 1; i < words.size(); i += 2) {
    const auto option = known.find(words[i]);
    if (option == known.end()) return std::nullopt;
    const auto& [place, least] = option->second;
    const auto value = number(words[i + 1], least);
    if (!value) return std::nullopt;
    *place = *value;
  }
  return options;
}

}  // namespace
}  // namespace edge

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool asked = std::find(words.begin(), words.end(), "--help") != words.end();
  const auto options = asked ? std::nullopt : edge::parse(words);
  if (!options) {
    std::fputs("usage: edge DATASET [--windows N] [--per-second N] [--epochs N] [--seed N]\n",
               asked ? stdout : stderr);
    return asked ? 0 : 2;
  }
  try {
    edge::run(*options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "edge: %s\n", error.what());
    return 1;
  }
}
