#include "tests/simulation/launcher.h"

#include <fmt/format.h>

#include <utility>

namespace batchwright::simulation {
namespace {

using std::chrono::milliseconds;

}  // namespace

void Launcher::launch(Program program) {
  program_ = std::move(program);
  world_.after(world_.dice.time(milliseconds(1), milliseconds(2000)), [this] { start(); });
}

void Launcher::start() {
  const std::uint32_t before = static_cast<std::uint32_t>(processes_.size());
  const std::uint32_t ranks = before == 0 ? plan_.sizes.front() : world_.dice.pick(plan_.sizes);
  if (before != 0 && ranks != before) world_.sometimes(Mark::job_resized);
  processes_.clear();
  running_ = ranks;
  arrived_ = 0;
  ++generation_;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const bool remote = rank + plan_.remote >= ranks;
    processes_.push_back(std::make_shared<Process>(
        world_, ranks == 1 ? plan_.name : fmt::format("{} {}", plan_.name, rank), remote,
        program_(rank, ranks)));
    Process& process = *processes_.back();
    process.on_end(
        [this, &process, generation = generation_] { ended(generation, process.was_killed()); });
  }
  for (const auto& process : processes_) process->start();
}

/// One that is killed leaves the others waiting: they are ended, too.
void Launcher::ended(std::uint64_t generation, bool killed) {
  if (generation != generation_) return;
  if (!killed) {
    if (--running_ == 0) ended_ = true;
    return;
  }
  ++generation_;
  if (processes_.size() > 1) world_.sometimes(Mark::job_restarted);
  world_.after(std::chrono::microseconds(1), [this] {
    for (const auto& process : processes_) process->kill();
    world_.after(world_.dice.time(milliseconds(1), milliseconds(1000)), [this] { start(); });
  });
}

void Launcher::start_again() {
  if (std::exchange(ended_, false)) start();
}

Barrier Launcher::barrier() {
  return [this](Process& process, const Saved& behind) {
    const std::uint64_t meeting = meeting_;
    if (++arrived_ < processes_.size()) {
      while (meeting_ == meeting) process.park(std::chrono::hours(1));
      return;
    }
    saved_ = behind;
    arrived_ = 0;
    ++meeting_;
    for (const auto& other : processes_) {
      if (other.get() != &process) other->wake();
    }
  };
}

std::string Launcher::describe() const {
  std::string text = plan_.name + plan_.habits + (ended_ ? ": ended" : ": goes on");
  if (saved_) text += fmt::format(", behind step {} of epoch {}", saved_->step, saved_->epoch);
  return text;
}

}  // namespace batchwright::simulation
