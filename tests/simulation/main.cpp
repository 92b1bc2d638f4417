// simulation: runs under one seed after the other; see README.md.

#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/simulation/run.h"

namespace {

using namespace batchwright::simulation;
using Clock = std::chrono::steady_clock;

/// A sweep of so many seeds has to reach every mark.
constexpr std::uint64_t kWholeSweep = 1000;

struct Options {
  std::uint64_t first = 1;
  std::uint64_t seeds = 1000;
  double minutes = 0.0;  ///< 0: as many seeds as are asked for.
  unsigned jobs = 1;
  std::uint64_t failures = 3;  ///< After so many it ends.
  bool tells = false;          ///< Of each run.
  FeedKind kind = FeedKind::dataset;
};

/// What one process has done.
struct Tally {
  std::uint64_t runs = 0;
  std::uint64_t failed = 0;
  std::uint64_t things = 0;
  Marks marks;
};

std::string folder() {
  const char* const memory = "/dev/shm";
  const std::string base =
      ::access(memory, W_OK) == 0 ? memory : std::filesystem::temp_directory_path().string();
  return fmt::format("{}/batchwright-simulation-{}", base, ::getpid());
}

void tell_failure(std::uint64_t seed, const Run& run, const std::string& what) {
  fmt::print("seed {} failed after {:.3f} s: {}\n", seed,
             std::chrono::duration<double>(run.world().passed()).count(), what);
  std::fflush(stdout);
  fmt::print("{}{}again: tests/simulation/run{} --seed {}\n", run.describe(),
             run.world().last_lines(), run.is_live() ? " --feed live" : "", seed);
  std::fflush(stdout);
}

/// Ends this process when a program, or the daemon, turns in a circle and never comes back to the
/// world: nothing else would. Lifetime: a run's, one at a time.
class Watchdog {
 public:
  Watchdog(std::uint64_t seed, const Run& run) {
    seed_ = seed;
    run_ = &run;
    seen_ = 0;
    ::signal(SIGPROF, &Watchdog::look);
    set(kPatience);
  }
  ~Watchdog() { set(0); }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  /// Seconds of processor time without anything that is done. No one thing takes a tenth, also with
  /// sanitizers.
  static constexpr time_t kPatience = 10;

  static void set(time_t seconds) {
    const itimerval left{{seconds, 0}, {seconds, 0}};
    ::setitimer(ITIMER_PROF, &left, nullptr);
  }
  /// What it looks at may be in the middle of a change: then it dies of that, or of the alarm.
  static void look(int) {
    const std::uint64_t before = std::exchange(seen_, run_->world().things_done());
    if (seen_ != before) return;
    ::alarm(5);
    tell_failure(seed_, *run_, "something turns in a circle, and nothing else happens");
    ::_exit(1);
  }

  static inline std::uint64_t seed_ = 0;
  static inline const Run* run_ = nullptr;
  static inline std::uint64_t seen_ = 0;
};

/// What did not hold; empty: all did.
std::string execute(std::uint64_t seed, Run& run) {
  const Watchdog watchdog(seed, run);
  try {
    run.execute();
  } catch (const Violation& found) {
    return found.what();
  }
  return "";
}

void run_seed(const Options& options, std::uint64_t seed, Tally& tally) {
  bool failed = false;
  {
    Run run(options.kind, seed, tally.marks, folder(), false);
    failed = !execute(seed, run).empty();
    tally.things += run.world().things_done();
    if (options.tells) {
      fmt::print("seed {}: {} things in {:.3f} virtual s\n{}", seed, run.world().things_done(),
                 std::chrono::duration<double>(run.world().passed()).count(), run.describe());
    }
  }
  ++tally.runs;
  if (!failed) return;
  ++tally.failed;
  Marks marks;
  Run again(options.kind, seed, marks, folder(), true);  // it is the same, and tells more
  const std::string what = execute(seed, again);
  tell_failure(seed, again, what.empty() ? "and not when it was run again" : what);
}

/// Every `jobs`th seed.
Tally sweep(const Options& options, unsigned job) {
  Tally tally;
  const auto end = Clock::now() + std::chrono::duration<double>(60 * options.minutes);
  for (std::uint64_t i = job; tally.failed < options.failures; i += options.jobs) {
    const bool is_over = options.minutes > 0 ? Clock::now() >= end : i >= options.seeds;
    if (is_over) break;
    run_seed(options, options.first + i, tally);
  }
  return tally;
}

/// Each in a process of its own, which tells by a pipe.
Tally sweep_all(const Options& options) {
  if (options.jobs == 1) return sweep(options, 0);
  std::vector<int> pipes;
  for (unsigned job = 0; job < options.jobs; ++job) {
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    std::fflush(stdout);
    if (::fork() == 0) {
      const Tally tally = sweep(options, job);
      const bool told = ::write(ends[1], &tally, sizeof tally) == sizeof tally;
      std::fflush(stdout);
      ::_exit(told ? 0 : 1);
    }
    ::close(ends[1]);
    pipes.push_back(ends[0]);
  }
  Tally all;
  for (const int pipe : pipes) {
    Tally one;
    if (::read(pipe, &one, sizeof one) != sizeof one) one.failed = 1;  // it died
    all.runs += one.runs;
    all.failed += one.failed;
    all.things += one.things;
    for (std::size_t i = 0; i < kMarks; ++i) all.marks.counts()[i] += one.marks.counts()[i];
    ::wait(nullptr);
  }
  return all;
}

/// Of this process and of those that have ended: other programs do not count.
double processor_seconds() {
  double sum = 0;
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used{};
    ::getrusage(who, &used);
    for (const timeval& part : {used.ru_utime, used.ru_stime}) {
      sum += static_cast<double>(part.tv_sec) + 1e-6 * static_cast<double>(part.tv_usec);
    }
  }
  return sum;
}

/// Empty for a word that is none of them.
std::optional<Options> read_options(int count, char** words) {
  Options options;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string_view word = words[i];
    const char* value = words[i + 1];
    const std::uint64_t number = std::strtoull(value, nullptr, 10);
    if (word == "--seeds") {
      options.seeds = number;
    } else if (word == "--minutes") {
      options.minutes = std::strtod(value, nullptr);
    } else if (word == "--jobs") {
      options.jobs = std::max(1U, static_cast<unsigned>(number));
    } else if (word == "--failures") {
      options.failures = number;
    } else if (word == "--from") {
      options.first = number;
    } else if (word == "--feed" &&
               (value == std::string_view("live") || value == std::string_view("dataset"))) {
      options.kind = value == std::string_view("live") ? FeedKind::live : FeedKind::dataset;
    } else if (word == "--seed") {
      options.first = number;
      options.seeds = 1;
      options.tells = true;
    } else {
      return {};
    }
  }
  return count % 2 == 1 ? std::optional(options) : std::nullopt;
}

}  // namespace

int main(int count, char** words) {
  const auto read = read_options(count, words);
  if (!read) {
    fmt::print(
        stderr,
        "usage: simulation [--feed dataset|live] [--seeds N | --minutes M | --seed S] [--from S] "
        "[--jobs J] [--failures N]\n");
    return 2;
  }
  const Options& options = *read;
  spdlog::set_level(spdlog::level::off);
  ::signal(SIGXFSZ, SIG_IGN);  // a full disk is an error, and no death
  const Tally tally = sweep_all(options);
  const double each =
      processor_seconds() / static_cast<double>(std::max<std::uint64_t>(tally.runs, 1));
  fmt::print("{} runs, {} failed, {} things, {:.0f} runs a minute on a core\n", tally.runs,
             tally.failed, tally.things, 60 / each);
  bool missed = false;
  const bool is_live = options.kind == FeedKind::live;
  for (std::size_t i = is_live ? kLiveMarks : 0; i < (is_live ? kMarks : kLiveMarks); ++i) {
    const std::uint64_t reached = tally.marks.counts()[i];
    if (options.seeds > 1 || options.minutes > 0) fmt::print("{:10}  {}\n", reached, kMarkTexts[i]);
    missed = missed || reached == 0;
  }
  if (missed && tally.runs >= kWholeSweep) fmt::print("a mark was never reached\n");
  return tally.failed != 0 || (missed && tally.runs >= kWholeSweep) ? 1 : 0;
}
