#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "daemon/live/live.h"

// What an event of a live feed costs, with so many sequences waiting: live_bench [SEQUENCES]
// (default one million). Each line is one kind of load; its time is of everything that an event
// leads to, and of taking the results.

namespace {

using namespace batchwright;

constexpr ProducerId kProducers = 480;

/// A pool with producers that push sequences of 20 to 1,000 frames.
class Load {
 public:
  Load(std::uint64_t waiting, LiveSettings settings) : pool_(checked(waiting, settings)) {
    next_.resize(kProducers);
  }

  void event(const LiveEvent& event) {
    pool_.on(event, ++now_ms_ / 1000, results_);
    steps_ += results_.steps.size();
    results_.answers.clear();
    results_.steps.clear();
    results_.changes.clear();
  }

  LivePush push() {
    const auto producer = static_cast<ProducerId>(random_.below(kProducers));
    LivePush push;
    push.producer = producer;
    push.number = next_[producer]++;
    push.length = static_cast<std::uint32_t>(20 + random_.below(980));
    push.bytes = push.length * std::uint64_t{4};
    push.version = push.version_newest = version_;
    push.timeout_ms = 60'000;
    return push;
  }

  /// A group of sixteen of one producer, after a claim of as many.
  void group() {
    const auto producer = static_cast<ProducerId>(random_.below(kProducers));
    event(LiveClaim{producer, 16, {}});
    for (int i = 0; i < 16; ++i) {
      LivePush member = push();
      --next_[member.producer];
      member.producer = producer;
      member.number = next_[producer]++;
      member.group = groups_;
      member.group_size = 16;
      event(member);
    }
    ++groups_;
  }

  void advance() { event(LiveAdvance{++version_}); }

  /// A step is taken, trained and released.
  void train() {
    event(LiveTake{.trainer = 0, .step = {}, .prefetch = false});
    if (steps_ > 1) event(LiveRelease{0, steps_ - 2});
    advance();
  }

  /// The same, and as many sequences are pushed as the step had.
  void turn(std::uint64_t step) {
    train();
    for (std::uint64_t i = 0; i < step; ++i) event(push());
  }

  std::uint64_t steps() const { return steps_; }
  LivePoolStatus status() const { return pool_.status(); }

 private:
  static LiveSettings checked(std::uint64_t waiting, LiveSettings settings) {
    settings.pool_sequences = waiting + settings.step;
    const auto done = check_live_settings(settings);
    if (!done) {
      std::fprintf(stderr, "%s\n", done.error().message.c_str());
      std::exit(1);
    }
    return *done;
  }

  LivePool pool_;
  LiveResults results_;
  RandomStream random_{1, Stream::select};
  std::vector<std::uint64_t> next_;
  std::uint64_t now_ms_ = 0;
  std::uint64_t version_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t groups_ = 0;
};

/// Seconds of processor time: other work on the machine does not count.
double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double seconds_since(double begin) { return processor_seconds() - begin; }

long resident_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

void fill(Load& load, std::uint64_t waiting) {
  for (std::uint64_t i = 0; i < waiting; ++i) load.event(load.push());
}

/// Pushes into an empty pool, then turns of a full one.
void measure(const char* name, std::uint64_t waiting, const LiveSettings& settings, int turns) {
  const long before = resident_kib();
  Load load(waiting, settings);
  double begin = processor_seconds();
  fill(load, waiting);
  const double filled = seconds_since(begin);
  const long kib = resident_kib() - before;
  begin = processor_seconds();
  for (int i = 0; i < turns; ++i) load.turn(settings.step);
  const double turned = seconds_since(begin);
  std::printf("%-28s %8.2f us a push while it fills, %4ld bytes each\n", name,
              1e6 * filled / static_cast<double>(waiting), kib * 1024 / static_cast<long>(waiting));
  std::printf("%-28s %8.2f us a push and its step, %8.3f ms a step, %llu steps\n", "",
              1e6 * turned / (turns * static_cast<double>(settings.step)), 1e3 * turned / turns,
              static_cast<unsigned long long>(load.steps()));
}

/// The same where the pool is full, and all producers wait for it.
void measure_blocked(std::uint64_t waiting) {
  LiveSettings settings;
  settings.step = 256;
  Load load(waiting, settings);
  fill(load, waiting + settings.step + 2 * kProducers);
  constexpr int kTurns = 1000;
  const double begin = processor_seconds();
  for (int i = 0; i < kTurns; ++i) load.turn(settings.step);
  std::printf("%-28s %8.2f us a push and its step, %llu wait\n", "fifo, pushes wait",
              1e6 * seconds_since(begin) / (kTurns * static_cast<double>(settings.step)),
              static_cast<unsigned long long>(load.status().blocked_pushes));
}

/// Groups that are claimed and paced.
void measure_groups(std::uint64_t waiting) {
  LiveSettings settings;
  settings.step = 256;
  settings.groups = LiveGroups::step;
  settings.max_staleness = waiting / settings.step;
  Load load(waiting, settings);
  load.event(LiveTake{.trainer = 0, .step = {}, .prefetch = true});
  for (std::uint64_t i = 0; i < waiting / 16; ++i) load.group();
  constexpr int kTurns = 1000;
  const double begin = processor_seconds();
  for (int i = 0; i < kTurns; ++i) {
    load.train();
    for (int group = 0; group < 16; ++group) load.group();
  }
  std::printf("%-28s %8.2f us a push, its claim and its step, %llu wait\n", "groups of 16, paced",
              1e6 * seconds_since(begin) / (kTurns * 256.0),
              static_cast<unsigned long long>(load.status().waiting));
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t waiting = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  LiveSettings settings;
  settings.step = 256;
  measure("fifo", waiting, settings, 1000);
  settings.cut = Cut::dynamic;
  settings.world = 8;
  settings.zero_most_stale = 4;
  measure("fifo, dynamic, 8 ranks", waiting, settings, 1000);
  settings = {};
  settings.step = 4096;
  measure("fifo, steps of 4096", waiting, settings, 100);
  settings.step = 256;
  settings.reuse = 0;
  settings.fresh_share = 0.5;
  measure("reuse without a limit", waiting, settings, 1000);
  settings.select = LiveSelect::uniform;
  settings.fresh_share = {};
  measure("uniform", waiting, settings, 20);
  measure_blocked(waiting);
  measure_groups(waiting);
}
