#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "daemon/delivery/feed/core/slots/slot_admission.h"

namespace batchwright::test {

/// A client of the model, and what its program does.
struct Actor {
  enum class Program : std::uint8_t {
    keeps,    ///< Holds its last `keeps` batches while it waits for the next: 1 is a `for` loop.
    gathers,  ///< Holds on to batches until it has a window full, and releases them all.
    idles,    ///< Takes none of what it gets.
  };
  Program program = Program::keeps;
  std::size_t keeps = 1;
  std::uint32_t window = 3;
  Job job;                 ///< Ranks of one job meet at a barrier after each step.
  std::uint32_t rank = 0;  ///< Also the batch of each step that it gets; a replica's are all one.
  std::uint64_t epoch = 0;
};

/// Whether one of the actors may take its next batch, as the daemon sees them all.
using Rule = std::function<bool(const std::vector<AdmissionState>&, std::size_t one,
                                std::size_t held, bool is_held)>;

/// The daemon's own.
Rule admission_rule(std::size_t slots);
/// When slots are scarce, only empty-handed clients are served: a `for` loop never is one.
Rule empty_handed_rule(std::size_t slots);

/// What was found of all orders in which clients come, are served, say that they wait, take,
/// meet at their barriers and release, until each that works has had `steps` batches.
struct Explored {
  std::size_t states = 0;
  std::string stuck;  ///< A state from which no client that works goes on; empty: there is none.
};
Explored explore(std::size_t slots, const std::vector<Actor>& actors, const Rule& rule,
                 std::uint8_t steps = 4);

}  // namespace batchwright::test
