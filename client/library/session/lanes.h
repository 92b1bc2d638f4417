#pragma once

#include <map>
#include <memory>
#include <vector>

#include "client/library/memory/payload.h"
#include "client/library/session/lane.h"
#include "client/library/session/lease_book.h"
#include "formats/formats.h"

namespace batchwright {

/// The subscriptions of one session: takes in what a daemon says of them, and words what it is to
/// be asked for.
///
/// A subscription that is closed is not found, and news of it are dropped: the daemon takes its
/// batches back when it hears of the end.
/// Lifetime: the book outlives it.
/// Threads: one at a time, with the session's lock between them.
class Lanes {
 public:
  explicit Lanes(LeaseBook& book) : book_(book) {}

  /// Chooses the subscription's number, and forgets those that are closed.
  std::shared_ptr<Lane> open(wire::SubscribeT request, bool writable);
  /// Null when there is none, or no longer.
  Lane* find(SubscriptionNumber number);

  /// Takes in news of a subscription. Errors: malformed_message, which ends the conversation.
  Result<void> take_in(const ControlMessage& message);
  /// Takes in a batch, which comes along when there is no arena. Errors: the same.
  Result<void> deliver(const wire::Delivery& delivery, const Payload& batch, bool comes_along);

  /// The subscription to request from a daemon, with the leases to claim from it.
  wire::SubscribeT request_for(Lane& lane);
  /// That of each subscription of which more is wanted.
  std::vector<wire::SubscribeT> requests();
  /// Whether more is wanted of it.
  bool goes_on(const Lane& lane) const;

  /// The session with the daemon is over.
  void lost();
  /// The conversation is over, for this reason.
  void fail(const Error& error);
  /// Ends one subscription. Returns the error as the caller gets it.
  Error end(Lane& lane, const Error& error);

 private:
  Result<void> granted(const wire::Subscribed& answer);

  LeaseBook& book_;
  std::map<SubscriptionNumber, std::shared_ptr<Lane>> lanes_;
  SubscriptionNumber last_number_;
};

}  // namespace batchwright
