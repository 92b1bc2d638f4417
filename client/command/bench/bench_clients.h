#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "client/command/commands.h"
#include "client/library/batchwright/client.hpp"
#include "formats/formats.h"

namespace batchwright {

/// The totals of all clients.
struct Taken {
  std::uint64_t batches = 0;
  std::uint64_t sequences = 0;
  std::uint64_t bytes = 0;  ///< Bytes of real frames: what a copy of the same rows would copy.
  std::uint64_t padded_bytes = 0;  ///< Whole batches.
  double seconds = 0;
  double waited_seconds = 0;  ///< Time in bw_next, all clients together.
};

/// Takes batches of epoch 0 until it is over, `most_bytes` are taken or `limit` has passed, and
/// returns the ordinals of their rows in order. Throws client::Error.
std::vector<std::uint64_t> record_rows(const BenchOptions& options,
                                       const client::ConnectOptions& connect,
                                       std::uint64_t most_bytes, std::chrono::seconds limit);

/// Lets `options.clients` replicas, each a thread with its own connection, take batches from the
/// begin of `epoch` on for `options.seconds`. Throws client::Error. Errors: no threads for them.
Result<Taken> run_clients(const BenchOptions& options, const client::ConnectOptions& connect,
                          std::uint64_t epoch);

}  // namespace batchwright
