#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tests/simulation/world/fiber.h"
#include "tests/simulation/world/world.h"

namespace batchwright::simulation {

/// Thrown out of every wait of a process that is killed, so that its stack is freed.
struct Killed {};

/// A process with one thread, in virtual time. It can be killed and stopped wherever it waits.
/// Lifetime: the world outlives it. What is put off for it holds it weakly.
class Process : public std::enable_shared_from_this<Process> {
 public:
  using Main = std::function<void(Process&)>;

  Process(World& world, std::string name, bool remote, Main main)
      : world_(world), name_(std::move(name)), remote_(remote), main_(std::move(main)) {}
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void start() { resume_soon(Duration::zero()); }

  // Of its own program.
  /// Until wake(), or so long.
  void park(Duration most);
  /// So long, whatever wakes it.
  void sleep(Duration time);
  /// The program ends by an error that it does not handle: what started it starts it again.
  [[noreturn]] void crash() {
    killed_ = true;
    throw Killed();
  }

  // Of others.
  void wake();
  void kill();
  /// SIGSTOP, and SIGCONT after that time.
  void stop_for(Duration time);

  World& world() { return world_; }
  const std::string& name() const { return name_; }
  /// On another host than the daemon.
  bool is_remote() const { return remote_; }
  bool was_killed() const { return killed_; }
  bool is_stopped() const { return stopped_ != 0; }
  bool has_ended() const { return fiber_ && fiber_->has_ended(); }
  /// Called once, when it has ended, however.
  void on_end(std::function<void()> then) { on_end_ = std::move(then); }

 private:
  void resume_soon(Duration delay);
  void resume();
  void run();

  World& world_;
  const std::string name_;
  const bool remote_;
  const Main main_;
  std::unique_ptr<Fiber> fiber_;
  std::function<void()> on_end_;
  bool woken_ = false;
  bool parked_ = true;
  bool killed_ = false;
  bool late_ = false;          ///< It was to go on while it was stopped.
  unsigned stopped_ = 0;       ///< Stops that are not over.
  std::uint64_t parking_ = 0;  ///< Numbers the calls of park(): an earlier one's end is no news.
};

}  // namespace batchwright::simulation
