// What goes wrong in a run.

#include <algorithm>
#include <vector>

#include "tests/simulation/cast.h"
#include "tests/simulation/run.h"

namespace batchwright::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

}  // namespace

void Run::start_daemon() {
  if (daemon_) return;
  daemon_ = std::make_shared<Daemon>(world_, network_, machine_, ++daemons_);
  daemon_->start();
  world_.note("a daemon starts");
}

void Run::kill_daemon(bool with_power) {
  if (!daemon_) return;
  world_.note(with_power ? "the power fails" : "the daemon is killed");
  world_.sometimes(with_power ? Mark::power_cut : Mark::daemon_killed);
  daemon_.reset();
  if (with_power) {
    machine_.disk.lose_power();
    machine_.power_lost = true;
    for (const auto& launcher : launchers_) {
      const auto processes = launcher->processes();
      for (const auto& process : processes) {
        if (!process->is_remote()) process->kill();
      }
    }
  }
  world_.after(world_.dice.time(milliseconds(10), milliseconds(3000)), [this] { start_daemon(); });
}

std::shared_ptr<Process> Run::any_process() {
  std::vector<std::shared_ptr<Process>> all;
  for (const auto& launcher : launchers_) {
    for (const auto& process : launcher->processes()) {
      if (!process->has_ended() && !process->was_killed()) all.push_back(process);
    }
  }
  return all.empty() ? nullptr : world_.dice.pick(all);
}

void Run::change_settings(const Cast& cast) {
  FeedAdjustments wanted = machine_.settings;
  Dice& dice = world_.dice;
  wanted.max_window = dice.between(2, 8);
  if (cast.leads) wanted.max_lead = dice.below(6);
  wanted.queue_grace = milliseconds(dice.between(50, 10'000));
  wanted.queue_attempts = dice.below(3);
  wanted.poison = dice.percent(30);
  if (wanted.queue_grace < kLongGrace) machine_.records.expect_late_workers();
  static_cast<FeedAdjustments&>(machine_.settings) = wanted;
  if (daemon_) daemon_->change_settings(wanted);
}

/// Where the data grow, the daemon goes on: after its death the data of an epoch are anyone's
/// guess, and clients are told so. A live feed has neither data nor files.
void Run::fault(const Cast& cast) {
  Dice& dice = world_.dice;
  const std::uint32_t kind = dice.below(cast.grows ? 50 : cast.live ? 85 : 100);
  const Duration time = dice.time(milliseconds(5), seconds(4));
  if (kind < 15) {
    if (const auto process = any_process()) {
      world_.note(process->name() + " is killed");
      world_.sometimes(Mark::client_killed);
      process->kill();
    }
  } else if (kind < 25) {
    const Duration long_time = dice.percent(25) ? Duration(seconds(12)) : time;
    if (const auto process = any_process()) {
      world_.note(process->name() + " is stopped");
      if (long_time > seconds(10)) world_.sometimes(Mark::client_stopped_long);
      machine_.records.expect_late_workers();
      process->stop_for(long_time);
    }
  } else if (kind < 30) {
    world_.note("the daemon is stopped");
    world_.sometimes(Mark::daemon_stopped);
    machine_.records.expect_late_workers();
    if (daemon_) daemon_->stop_for(time);
  } else if (kind < 37) {
    if (const auto line = network_.any_remote()) {
      world_.note("a connection is cut");
      world_.sometimes(Mark::line_cut);
      network_.cut(line);
    }
  } else if (kind < 44) {
    if (const auto line = network_.any_remote()) {
      world_.note("a connection stands still");
      world_.sometimes(Mark::line_stalled);
      machine_.records.expect_late_workers();
      line->stalls_until = world_.now() + (dice.percent(25) ? Duration(seconds(13)) : time);
    }
  } else if (kind < 50) {
    if (cast.grows) {
      world_.note("the data grow");
      machine_.data.grow(cast.world * 2 * dice.between(1, 3), dice.percent(30));
    } else {
      change_settings(cast);
    }
  } else if (kind < 70) {
    kill_daemon(false);
  } else if (kind < 77) {
    kill_daemon(true);
  } else if (kind < 85) {
    if (daemon_) daemon_->replace_feed();
  } else if (kind < 92) {
    world_.note("the data are away");
    world_.sometimes(Mark::data_away);
    machine_.data_away = true;
    world_.after(time, [this] { machine_.data_away = false; });
  } else {
    world_.note("the disk is full");
    if (!machine_.settings.journal.empty()) world_.sometimes(Mark::disk_full);
    machine_.disk.set_full(true);
    world_.after(time, [this] { machine_.disk.set_full(false); });
  }
}

void Run::end_faults() {
  world_.note("the faults end");
  machine_.plan_failures = 0;
  machine_.data_away = false;
  machine_.disk.set_full(false);
}

}  // namespace batchwright::simulation
