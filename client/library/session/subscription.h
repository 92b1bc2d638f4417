#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/library/ids.h"
#include "client/library/session/session.h"

namespace batchwright {

/// One subscription of a program: to one daemon, or to several that serve shards of a dataset and
/// are merged.
///
/// Threads: next() one at a time, which is checked; position() and steps() any.
class Subscription {
 public:
  using Sessions = std::vector<std::shared_ptr<Session>>;

  /// Errors: as bw_subscribe() says, with the server named when there are several.
  static Result<std::unique_ptr<Subscription>> subscribe(const Sessions& sessions,
                                                         wire::SubscribeT request, bool writable);
  /// Ends the subscription with each server.
  virtual ~Subscription() = default;
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

  /// Errors: as bw_next() says.
  virtual Result<Session::Event> next(std::chrono::milliseconds limit) = 0;

  /// Errors: as bw_subscription_upcoming() says.
  virtual Result<Session::Upcoming> upcoming(std::uint32_t count,
                                             std::chrono::milliseconds limit) = 0;

  virtual bool forked() const = 0;
  virtual const Grant& grant() const = 0;
  /// The terms; with several servers, each line begins with its server's number.
  virtual const std::string& terms() const = 0;
  virtual Position position() const = 0;
  /// The number of steps of the epoch that position() names.
  virtual std::uint64_t steps() const = 0;

 protected:
  Subscription() = default;

 private:
  /// Subscribes to several daemons (merged_subscription.cpp). Errors: the same.
  static Result<std::unique_ptr<Subscription>> merge(const Sessions& sessions,
                                                     const wire::SubscribeT& request,
                                                     bool writable);
};

}  // namespace batchwright
