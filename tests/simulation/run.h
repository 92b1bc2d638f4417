#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/clients/programs.h"
#include "tests/simulation/daemon/daemon.h"
#include "tests/simulation/daemon/feed_host.h"
#include "tests/simulation/launcher.h"
#include "tests/simulation/world/network.h"
#include "tests/simulation/world/world.h"

namespace batchwright::simulation {

/// What is simulated: a seed stands for another run of each.
enum class FeedKind : std::uint8_t { dataset, live };

/// One run: a feed, programs and faults, all drawn from a seed. Faults end after two thirds of it;
/// then each program has to end.
class Run {
 public:
  /// `folder`: for the daemon's files; it is made, and removed at the end.
  Run(FeedKind kind, std::uint64_t seed, Marks& marks, const std::string& folder, bool tells_all);
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// Throws Violation.
  void execute();
  const World& world() const { return world_; }
  bool is_live() const { return machine_.live.has_value(); }
  /// The feed and its programs, in a sentence each.
  std::string describe() const;

 private:
  // run_draw.cpp: what is drawn.
  struct Cast;
  FeedSettings draw_feed(Cast& cast);
  void draw_programs(const Cast& cast);
  void draw_faults(const Cast& cast);
  void add_job(const Cast& cast);
  void add_trainer(const Cast& cast, std::uint32_t number);
  void add_worker(const Cast& cast, std::uint32_t number);
  void add_observer(const Cast& cast, std::uint32_t number);
  Launcher& add(Launcher::Plan plan);
  ProgramTerms habits(const Cast& cast, std::uint64_t batches);

  // run_live.cpp: what is drawn of a live feed.
  FeedSettings draw_live_feed(Cast& cast);
  LiveSettings draw_pool(Cast& cast);
  void draw_live_programs(const Cast& cast);
  void add_live_job(const Cast& cast);
  void add_live_trainer(const Cast& cast, std::uint32_t number, bool looks_on);
  void add_live_worker(const Cast& cast, std::uint32_t number);
  void add_producer(const Cast& cast, std::uint32_t number);
  void add_ender();
  ProgramTerms live_habits(const Cast& cast);

  // run_faults.cpp
  void fault(const Cast& cast);
  void kill_daemon(bool with_power);
  void start_daemon();
  void change_settings(const Cast& cast);
  std::shared_ptr<Process> any_process();
  void end_faults();

  bool have_ended(bool endless) const;
  void await(Duration end, const std::string& what, const std::function<bool()>& done);

  World world_;
  std::unique_ptr<Cast> cast_;
  const FeedSettings feed_;
  Machine machine_;
  Network network_{world_};
  Surroundings around_{world_, network_, machine_};
  bool over_ = false;  ///< For programs that are endless.
  std::uint64_t daemons_ = 0;
  std::shared_ptr<Daemon> daemon_;
  std::vector<std::unique_ptr<Launcher>> launchers_;
};

}  // namespace batchwright::simulation
