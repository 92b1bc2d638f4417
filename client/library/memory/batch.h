#pragma once

#include <memory>
#include <vector>

#include "client/library/batchwright/client.h"
#include "client/library/ids.h"
#include "client/library/memory/fault_table.h"
#include "formats/formats.h"

namespace batchwright {

class ClientSubscription;
class Session;

/// Checks that the bytes are the batch that the ticket promised, of this plan, laid out as the C
/// ABI promises its users. Reads nothing outside of them.
/// Errors: malformed_message, with the place of the batch.
Result<const wire::Batch*> checked_batch(const Payload& payload, const Ticket& ticket);

}  // namespace batchwright

/// A batch that the program holds: a lease, and views of its bytes. Who makes it sets the rest.
/// Lifetime: it keeps the bytes, the session through which the lease goes back, and the arena's
///   connection: as long as that is open the daemon leaves the slot as it is, also where it has
///   ended the session.
/// Threads: immutable once the program has it.
struct bw_batch {
  bw_batch(batchwright::Payload payload_, const batchwright::Ticket& ticket,
           const batchwright::wire::Batch& bytes);

  /// Whether its holder may write to it: these bytes are shared with no other subscription.
  void set_writable(bool writable) { header.writable = writable && !payload.shared ? 1 : 0; }

  std::shared_ptr<batchwright::Session> session;
  std::shared_ptr<batchwright::ClientSubscription> subscription;
  batchwright::Payload payload;
  std::shared_ptr<const void> arenas;  ///< Their connection; null for a batch in a message.
  std::shared_ptr<const void> stay;    ///< In private memory; ends with the lease.
  batchwright::Lease lease;
  const batchwright::wire::Batch* content;
  bw_batch_header header;
  batchwright::Position position;  ///< Where to resume when this was the last one finished.
  std::vector<bw_tensor> tensors;
  batchwright::FaultTable::Entry shown;  ///< While it may only be read.
};

/// Keeps what a batch lies in. Threads: immutable.
struct bw_memory {
  std::shared_ptr<const void> keeper;
};
