#pragma once

#include <cstdint>

#include "client/command/commands.h"
#include "client/library/batchwright/client.hpp"
#include "formats/formats.h"

namespace batchwright {

/// The totals of producers, and of the clients that took what they pushed.
struct PushedAndTaken {
  std::uint64_t pushed = 0;  ///< Sequences that were accepted,
  std::uint64_t pushed_bytes = 0;
  double seconds = 0;        ///< The time that producers pushed,
  double slowest_share = 0;  ///< and what the slowest got of the mean.
  std::uint64_t batches = 0;
  std::uint64_t taken = 0;  ///< Sequences, of all clients.
  std::uint64_t taken_bytes = 0;
  double memcpy_rate = 0;  ///< Bytes a second that one thread copies, sequence after sequence.
};

/// Lets `options.producers` threads push made-up sequences into the live feed for
/// `options.seconds`, and `options.clients` replicas take them. Throws client::Error. Errors: no
/// threads for them; invalid_argument (the feed is not live, or takes no such sequence).
Result<PushedAndTaken> run_producers(const BenchOptions& options,
                                     const client::ConnectOptions& connect);

}  // namespace batchwright
