#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "tests/simulation/clients/programs.h"

namespace batchwright::simulation {

/// What a trainer of a live feed keeps on a disk of its own.
struct LiveSaved {
  std::uint64_t version = 0;
  std::uint64_t steps = 0;  ///< It has trained.
};

/// What a producer keeps on a disk of its own. Its items count from 0, whatever daemon takes them.
struct Made {
  std::uint64_t items = 0;  ///< That are done with: accepted, or given up.
  std::uint64_t incarnation = 0;
  std::uint64_t next = 0;  ///< Number of the item that is next, for that incarnation.
};

/// What a producer is told, and its habits.
struct ProducerTerms {
  std::string name;              ///< The same after each start.
  std::uint64_t quota = 0;       ///< It ends after so many items; 0: with its feed.
  std::uint32_t together = 1;    ///< Items that it makes together: of a claim, or of a group.
  bool makes_groups = false;     ///< Of these.
  bool claims = false;           ///< Else it asks for the version alone.
  bool in_one_push = false;      ///< All that it has made together.
  bool in_place = false;         ///< It writes into room that it has reserved.
  std::uint32_t abandons = 0;    ///< Of a hundred times, how often one fails that it began.
  std::uint32_t takes_back = 0;  ///< Of a hundred, how often it takes back what it pushed.
  std::uint32_t max_length = 1;
  std::uint64_t area_bytes = 0;
  std::size_t part_bytes = 0;  ///< Of a frame; 0: as many as usual.
  Duration work{};             ///< On an item, at most.
  std::chrono::milliseconds limit{};
};

/// A `for` loop over the steps of a live feed, as a replica or a rank, which ends with the feed or
/// after `steps` of them; 0: with the feed. `announces`: it makes a version of each step. A refusal
/// ends the program: what started it does so again.
Process::Main live_trainer(const Surroundings& around, const ProgramTerms& terms, LiveSaved* saved,
                           Barrier barrier);
/// Makes items and pushes them.
Process::Main producer(const Surroundings& around, const ProducerTerms& terms, Made* made);
/// Ends the feed once it is `due`, and again until all are `over`: a daemon may have forgotten.
Process::Main ender(const Surroundings& around, std::function<bool()> due,
                    std::function<bool()> over);

}  // namespace batchwright::simulation
