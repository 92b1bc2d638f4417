#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/clients/live_programs.h"
#include "tests/simulation/clients/programs.h"
#include "tests/simulation/world/process.h"

namespace batchwright::simulation {

/// Starts programs, and starts them again where they are killed: a single one, or a job of ranks
/// that wait for each other after each batch. A job begins again where all ranks were, perhaps
/// with another number of them.
///
/// Lifetime: it outlives the processes' world.
class Launcher {
 public:
  /// Which program rank `rank` of so many is.
  using Program = std::function<Process::Main(std::uint32_t rank, std::uint32_t ranks)>;

  struct Plan {
    std::string name;
    std::vector<std::uint32_t> sizes{1};  ///< How many ranks it may have; the first is the first.
    std::uint32_t remote = 0;             ///< So many of them, the last ones, are on another host.
    bool endless = false;                 ///< It ends when the others have ended.
    bool is_worker = false;               ///< It works for a queue.
    std::string habits = {};              ///< In words.
  };

  Launcher(World& world, Plan plan) : world_(world), plan_(std::move(plan)) {}
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  void launch(Program program);
  /// Starts it once more where it has ended.
  void start_again();
  /// Where ranks wait for each other.
  Barrier barrier();
  std::optional<Saved>* saved() { return &saved_; }
  LiveSaved* live_saved() { return &live_saved_; }
  Made* made() { return &made_; }

  bool has_ended() const { return ended_; }
  bool is_worker() const { return plan_.is_worker; }
  bool is_endless() const { return plan_.endless; }
  /// Those that are there.
  const std::vector<std::shared_ptr<Process>>& processes() const { return processes_; }
  std::uint32_t remote() const { return plan_.remote; }
  std::string describe() const;

 private:
  void start();
  void ended(std::uint64_t generation, bool killed);

  World& world_;
  const Plan plan_;
  Program program_;
  std::vector<std::shared_ptr<Process>> processes_;
  std::optional<Saved> saved_;
  LiveSaved live_saved_;          ///< Of a live feed: of a trainer,
  Made made_;                     ///< and of a producer.
  std::uint64_t generation_ = 0;  ///< Of processes.
  std::uint32_t running_ = 0;
  std::uint32_t arrived_ = 0;
  std::uint64_t meeting_ = 0;
  bool ended_ = false;
};

}  // namespace batchwright::simulation
