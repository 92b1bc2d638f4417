// Mean and variance of every feature over one epoch of a feed: what cepstral mean and variance
// normalisation needs. Each real frame counts once, padding never. Of several epochs each gets its
// own result.
//
//     cmvn --feed NAME [--endpoint E] [--rank R --ranks N] [--epochs N] [--json]
//
// A row's frames are summed up in two passes, and rows are merged by Chan's formula, in double
// precision: no cancellation, however long the epoch. With ranks it takes a share of every step,
// and the shares' results merge by the same formula.
#include <algorithm>
#include <batchwright/client.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>

namespace bw = batchwright::client;

namespace {

struct Options {
  std::string endpoint;  ///< Empty: what the environment names, or the default one.
  bw::SubscribeOptions subscribe;
  bool json = false;
};

/// Count, mean and sum of squared deviations of each dimension.
struct Moments {
  double count = 0;
  std::vector<double> mean;
  std::vector<double> deviations;
};

/// The frames of one row; `stride` elements lie between two of them.
struct Row {
  const float* first = nullptr;
  std::size_t frames = 0;
  std::size_t stride = 0;
};

Moments moments_of(const Row& row, std::size_t dims) {
  Moments moments{static_cast<double>(row.frames), std::vector<double>(dims),
                  std::vector<double>(dims)};
  for (std::size_t t = 0; t < row.frames; ++t) {
    for (std::size_t d = 0; d < dims; ++d) moments.mean[d] += row.first[t * row.stride + d];
  }
  for (double& mean : moments.mean) mean /= moments.count;
  for (std::size_t t = 0; t < row.frames; ++t) {
    for (std::size_t d = 0; d < dims; ++d) {
      const double deviation = row.first[t * row.stride + d] - moments.mean[d];
      moments.deviations[d] += deviation * deviation;
    }
  }
  return moments;
}

/// Chan, Golub and LeVeque: the moments of two sets taken together.
void merge(Moments& all, const Moments& more) {
  if (more.count == 0) return;
  all.mean.resize(more.mean.size());
  all.deviations.resize(more.mean.size());
  const double count = all.count + more.count;
  for (std::size_t d = 0; d < more.mean.size(); ++d) {
    const double apart = more.mean[d] - all.mean[d];
    all.mean[d] += apart * more.count / count;
    all.deviations[d] += more.deviations[d] + apart * apart * all.count * more.count / count;
  }
  all.count = count;
}

void add(Moments& all, const bw::Batch& batch) {
  const bw::Tensor tensor = batch.primary();
  const std::span<const float> values = tensor.as<float>();
  const auto shape = tensor.shape();
  const std::size_t dims = std::accumulate(shape.begin() + 2, shape.end(), std::size_t{1},
                                           std::multiplies<std::size_t>());
  const bool time_major = batch.header().layout == BW_TIME_MAJOR;
  const std::size_t frame_stride = time_major ? shape[1] * dims : dims;
  const std::size_t row_stride = time_major ? dims : shape[1] * dims;
  for (std::size_t b = 0; b < batch.lengths().size(); ++b) {
    if (batch.lengths()[b] == 0) continue;  // a lane that ran out
    const Row row{values.data() + b * row_stride, batch.lengths()[b], frame_stride};
    merge(all, moments_of(row, dims));
  }
}

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

/// What an epoch brought, and the time it took; `waited` is the part spent waiting for batches.
struct Totals {
  Moments moments;
  std::uint64_t epoch = 0;
  std::uint64_t batches = 0;
  std::uint64_t sequences = 0;
  std::uint64_t padded_frames = 0;
  std::uint64_t bytes = 0;
  Seconds taken{0};
  Seconds waited{0};
};

void add(Totals& totals, const bw::Batch& batch) {
  const bw_batch_header& header = batch.header();
  add(totals.moments, batch);
  ++totals.batches;
  totals.sequences += header.sequences;
  totals.padded_frames += std::uint64_t{header.sequences} * header.batch_length;
  totals.bytes += header.bytes;
}

/// Takes a whole epoch; empty once nothing follows.
std::optional<Totals> run_epoch(bw::Subscription& subscription) {
  Totals totals;
  const Clock::time_point started = Clock::now();
  while (true) {
    const Clock::time_point asked = Clock::now();
    const bw::Event event = subscription.next(std::chrono::seconds(60));
    totals.waited += Clock::now() - asked;
    if (!event) return std::nullopt;
    if (event.is_batch()) {
      add(totals, event.batch);
      continue;
    }
    totals.epoch = event.epoch;
    totals.taken = Clock::now() - started;
    return totals;
  }
}

void print_list(const char* name, const std::vector<double>& values, double divisor) {
  std::printf(", \"%s\": [", name);
  for (std::size_t d = 0; d < values.size(); ++d) {
    std::printf("%s%.17g", d == 0 ? "" : ", ", values[d] / divisor);
  }
  std::printf("]");
}

void print(const Totals& totals, bool json) {
  const Moments& moments = totals.moments;
  if (json) {
    std::printf("{\"epoch\": %ju, \"batches\": %ju, \"sequences\": %ju, \"frames\": %.0f",
                std::uintmax_t{totals.epoch}, std::uintmax_t{totals.batches},
                std::uintmax_t{totals.sequences}, moments.count);
    std::printf(", \"padded_frames\": %ju, \"bytes\": %ju", std::uintmax_t{totals.padded_frames},
                std::uintmax_t{totals.bytes});
    std::printf(", \"seconds\": %.6f, \"waited_seconds\": %.6f", totals.taken.count(),
                totals.waited.count());
    print_list("mean", moments.mean, 1.0);
    print_list("variance", moments.deviations, moments.count);
    std::printf("}\n");
    return;
  }
  std::printf("epoch %ju: %ju batches, %ju sequences, %.0f frames\n%9s %14s %14s\n",
              std::uintmax_t{totals.epoch}, std::uintmax_t{totals.batches},
              std::uintmax_t{totals.sequences}, moments.count, "dimension", "mean", "deviation");
  for (std::size_t d = 0; d < moments.mean.size(); ++d) {
    std::printf("%9zu %14.6g %14.6g\n", d, moments.mean[d],
                std::sqrt(moments.deviations[d] / moments.count));
  }
}

int usage(bool asked) {
  std::fputs("usage: cmvn --feed NAME [--endpoint E] [--rank R --ranks N] [--epochs N] [--json]\n",
             asked ? stdout : stderr);
  return asked ? 0 : 2;
}

/// A whole number; empty for other text.
std::optional<std::int32_t> number(const std::string& text) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (end == text.c_str() || *end != '\0' || value < 0 || value > INT32_MAX) return std::nullopt;
  return static_cast<std::int32_t>(value);
}

std::optional<Options> parse(const std::vector<std::string>& words) {
  Options options;
  options.subscribe.epochs = 1;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--json") {
      options.json = true;
      continue;
    }
    if (i + 1 == words.size()) return std::nullopt;
    const std::string& value = words[i + 1];
    if (value.starts_with("--")) return std::nullopt;
    if (words[i] == "--feed")
      options.subscribe.feed = value;
    else if (words[i] == "--endpoint")
      options.endpoint = value;
    else if (words[i] == "--rank" && number(value))
      options.subscribe.rank = *number(value);
    else if (words[i] == "--ranks" && number(value))
      options.subscribe.ranks = *number(value);
    else if (words[i] == "--epochs" && number(value).value_or(0) > 0)
      options.subscribe.epochs = static_cast<std::uint64_t>(*number(value));
    else
      return std::nullopt;
    ++i;
  }
  if (options.subscribe.feed.empty()) return std::nullopt;
  if (options.subscribe.ranks != BW_AUTO) options.subscribe.mode = BW_SHARDED;
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (std::find(words.begin(), words.end(), "--help") != words.end()) return usage(true);
  const auto options = parse(words);
  if (!options) return usage(false);
  try {
    bw::Connection connection(options->endpoint);
    bw::Subscription subscription = connection.subscribe(options->subscribe);
    while (const auto totals = run_epoch(subscription)) print(*totals, options->json);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cmvn: %s\n", error.what());
    return 1;
  }
}
