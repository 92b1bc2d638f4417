#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "client/library/session/position.h"
#include "client/library/session/session.h"

namespace batchwright {

/// One subscription of a program: to one daemon, or to several that serve shards of a dataset.
///
/// Several are merged by turns. Step k of a merged epoch is the next step of the next server, in
/// the order of the list, that still has steps in this epoch; the merged epoch ends when all have
/// ended. So the order depends on the servers' plans alone, never on their speed. A server that
/// fails, fails the whole.
/// Threads: next() one at a time, which is checked; position() and steps() any.
class Subscription {
 public:
  using Sessions = std::vector<std::shared_ptr<Session>>;

  /// Errors: as bw_subscribe() says, with the server named when there are several.
  static Result<std::unique_ptr<Subscription>> subscribe(const Sessions& sessions,
                                                         wire::SubscribeT request, bool writable);
  /// Ends the subscription with each server.
  ~Subscription();
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

  /// Errors: as bw_next() says.
  Result<Session::Event> next(const Deadline& deadline);

  bool forked() const { return parts_.front().session->forked(); }
  const Grant& grant() const { return grant_; }
  /// The terms; with several servers, each line begins with its server's number.
  const std::string& terms() const { return terms_; }
  Position position() const;
  /// The number of steps of the epoch that position() names.
  std::uint64_t steps() const;

 private:
  /// One server's share.
  struct Part {
    std::shared_ptr<Session> session;
    std::shared_ptr<Lane> lane;
    bool ended = false;  ///< This merged epoch.
  };
  explicit Subscription(bool writable) : writable_(writable) {}
  Result<void> add(const std::shared_ptr<Session>& session, wire::SubscribeT request);
  Result<void> add_all(const Sessions& sessions, const wire::SubscribeT& request);
  void note_grant(std::uint64_t step);

  Result<Session::Event> next_of_several(const Deadline& deadline);
  Result<std::unique_ptr<bw_batch>> meet_epoch(const Deadline& deadline);
  Result<std::unique_ptr<bw_batch>> next_of(Part& part, const Deadline& deadline);
  Session::Event end_epoch();
  Fingerprint plan() const;

  const bool writable_;  ///< Whether the program may write to its batches.
  std::vector<Part> parts_;
  Grant grant_;
  std::string terms_;
  std::atomic<bool> busy_ = false;
  // Used only by the thread that is in next().
  std::size_t turn_ = 0;
  bool met_ = false;   ///< Every server has begun this epoch, and its rehearsals are over.
  bool last_ = false;  ///< This epoch is the last.
  bool over_ = false;

  mutable std::mutex mutex_;  // guards what follows; of several only
  Position position_;
  std::uint64_t steps_ = 0;
};

}  // namespace batchwright
