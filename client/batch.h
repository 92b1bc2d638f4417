#pragma once

#include <memory>
#include <span>
#include <vector>

#include "client/batchwright/client.h"
#include "client/lane.h"
#include "client/mapping.h"
#include "formats/formats.h"

namespace batchwright {

class Session;

/// Checks that the bytes in the arena are the batch that the ticket promised, laid out as the C
/// ABI promises its users. Reads nothing outside the arena.
/// Errors: malformed_message, with the place of the batch.
Result<const wire::Batch*> checked_batch(const Mapping& arena, const Ticket& ticket);

}  // namespace batchwright

/// What the program holds: a lease, and views of the bytes that it is for.
/// Lifetime: it keeps the mapping, and the session through which the lease goes back.
/// Threads: immutable.
struct bw_batch {
  bw_batch(std::shared_ptr<batchwright::Session> session_,
           std::shared_ptr<const batchwright::Lane> lane_,
           std::shared_ptr<const batchwright::Mapping> arena_, const batchwright::Ticket& ticket_,
           const batchwright::wire::Batch& bytes);

  std::shared_ptr<batchwright::Session> session;
  std::shared_ptr<const batchwright::Lane> lane;
  std::shared_ptr<const batchwright::Mapping> arena;
  batchwright::Ticket ticket;
  const batchwright::wire::Batch* content;
  bw_batch_header header;
  std::vector<bw_tensor> tensors;
};
