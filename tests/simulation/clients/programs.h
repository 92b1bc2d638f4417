#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tests/simulation/world/network.h"
#include "tests/simulation/world/process.h"
#include "tests/simulation/world/seam.h"

namespace batchwright::simulation {

/// Where to go on, as a program keeps it on a disk of its own.
struct Saved {
  Fingerprint plan;
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  std::string terms;
};

/// What a program is told, and its habits.
struct ProgramTerms {
  wire::Mode mode = wire::Mode::replica;
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  std::uint32_t ranks_here = 0;
  std::uint32_t window = 4;
  std::uint32_t worst_first = 0;
  std::uint32_t world = 1;
  std::uint64_t epochs = 1;  ///< It is done with the end of this many.
  Duration work{};           ///< On a batch, at most.
  bool asks_for_messages = false;
  bool keeps_last = true;      ///< A `for` loop has its batch until the next one is there.
  bool keeps_list = false;     ///< As many batches as its window allows, but one.
  bool polls = false;          ///< It asks without waiting, and sleeps in between.
  bool takes_none = false;     ///< It looks on.
  std::uint32_t breaks = 0;    ///< Of a hundred batches, how many end its loop, which begins again.
  std::uint32_t foresees = 0;  ///< Before how many it asks which come next.
  bool follows = false;        ///< Its feed grows with its data: then later epochs are not known.
  std::uint32_t evaluates = 0;  ///< How many are followed by a look at another subscription.
  bool live = false;            ///< Its feed is: then a refusal ends it.
  bool announces = false;       ///< Of a live feed: it makes a version of each step.
  std::uint64_t steps = 0;      ///< Of a live feed: after how many it ends; 0: with the feed.
  bool keeps_undone = false;    ///< Of a queue: its last batch is not done until the next is there.
  std::uint32_t undone = 0;     ///< Of a queue: how many are given back undone,
  std::uint32_t done_early =
      0;  ///< and how many are held for a while longer than they are worked on.
};

/// What programs share.
struct Surroundings {
  World& world;
  Network& network;
  Onlooker& onlooker;
};

/// A `for` loop over its share, as a replica or a rank. `saved`: where it goes on. `barrier`:
/// called after each batch with where to resume then, and returns once all ranks are there; null:
/// it waits for no other, and saves its place itself.
using Barrier = std::function<void(Process&, const Saved&)>;
Process::Main trainer(const Surroundings& around, const ProgramTerms& terms,
                      std::optional<Saved>* saved, Barrier barrier);
/// Takes batches of the queue until its epochs are over.
Process::Main worker(const Surroundings& around, const ProgramTerms& terms);
/// Reads on and on, and keeps nothing, until `over`.
Process::Main observer(const Surroundings& around, const ProgramTerms& terms, const bool* over);

}  // namespace batchwright::simulation
