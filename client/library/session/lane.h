#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "client/library/memory/private_memory.h"
#include "client/library/session/progress.h"
#include "client/library/session/ticket.h"
#include "formats/formats.h"

namespace batchwright {

class Lane;

/// The batch that is next in line. It stays there until take(), which alone gives what a program's
/// batch is made from: a batch that is handed out cannot stay in line.
/// Lifetime: until the lane is told something else.
class [[nodiscard]] NextBatch {
 public:
  const Ticket& ticket() const { return ticket_; }
  /// Takes it out of the line. Once.
  Taken take() &&;

 private:
  friend class Lane;
  NextBatch(Lane& lane, Ticket ticket) : lane_(&lane), ticket_(std::move(ticket)) {}

  Lane* lane_;
  Ticket ticket_;
};

/// The end of an epoch that is next in line. The same holds for it.
class [[nodiscard]] NextEnd {
 public:
  EpochEnded take() &&;

 private:
  friend class Lane;
  NextEnd(Lane& lane, const EpochEnded& ended) : lane_(&lane), ended_(ended) {}

  Lane* lane_;
  EpochEnded ended_;
};

/// The counted epochs are over.
struct NothingFollows {};

/// The waits of a program for the next event of a subscription, and what the daemon hears of them.
/// Threads: the one that holds the session's turn; take_untold() from any.
class ProgramWaits {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// The program looked, and found nothing. Whether it waits for long enough now that the daemon
  /// is to hear of it: once for each wait.
  bool in_vain(Time now);
  /// Something has come.
  void end();
  /// The daemon is gone.
  void lost();
  /// Whether the program was waiting when the daemon was lost, so that the new one is to hear of
  /// it; once.
  bool again(Time now);
  /// How long it has waited since this was asked last, without the time from when the daemon heard
  /// of a wait to its end.
  std::chrono::microseconds take_untold();

 private:
  std::optional<Time> since_;
  std::optional<Time> told_;  ///< When the daemon heard of the wait at hand.
  bool when_lost_ = false;
  std::atomic<std::uint32_t> untold_us_{0};
};

/// One subscription on this side: what was asked for and granted, what the daemon sent and the
/// program has not taken yet, and the place of the next batch.
///
/// Order is checked, so that a lost or doubled batch is an error and never other data in silence.
/// It outlives the session with the daemon: lost() voids what came and was not taken, and resume()
/// says what to ask the next daemon for.
/// Threads: the one that holds the session's turn; position(), steps() and grant() from any.
class Lane {
 public:
  using Event = std::variant<Ticket, EpochEnded, EpochBegan>;
  /// A batch that was handed out before: to be given back.
  struct Doubled {
    LeaseNumber lease;
  };
  /// Nothing for the program; look again.
  struct Passed {};
  using Next = std::variant<NextBatch, NextEnd, NothingFollows, Doubled, Passed>;

  explicit Lane(wire::SubscribeT request, bool writable = false)
      : request_(std::move(request)),
        memory_(writable ? std::make_shared<PrivateMemory>() : nullptr),
        progress_(request_) {}

  SubscriptionNumber number() const { return {request_.subscription}; }
  const std::string& feed() const { return request_.feed; }
  bool is_queue() const { return request_.mode == wire::Mode::queue; }
  /// Whether the program may write to its batches.
  bool is_writable() const { return memory_ != nullptr; }
  /// The memory in which it may; null when it may not. Threads: any.
  PrivateMemory* memory() const { return memory_.get(); }

  /// The daemon's answer to Subscribe. Errors: malformed_message, fingerprint_mismatch.
  Result<void> granted(const wire::Subscribed& answer);
  /// Whether this session's daemon has granted it.
  bool is_served() const { return served_; }
  /// The first grant. Set before the program has the subscription.
  const Grant& grant() const { return *grant_; }
  ArenaNumber arena() const { return arena_; }
  std::uint32_t window() const { return window_; }

  void push(Event event);
  ProgramWaits& waits() { return waits_; }
  /// Whether look() has something to say.
  bool has_news() const { return over_ || failure_ || !inbox_.empty() || progress_.is_behind(); }
  /// The batch that comes next, as far as is known.
  const Ticket* coming() const {
    return inbox_.empty() ? nullptr : std::get_if<Ticket>(&inbox_.front());
  }
  /// How many releases may wait for others, asked each time that a batch was taken: up to half of
  /// the window less one, while the next batch is at hand, the daemon has slots left, and the
  /// program takes batches so fast that it will soon be back.
  std::size_t releases_may_wait(std::chrono::steady_clock::time_point now);
  /// The next event. Errors: failure(); malformed_message for what was not due.
  [[nodiscard]] Result<Next> look();

  /// Nothing more comes, for this reason. Tickets at hand are void: the daemon that gave them may
  /// have taken their slots back. The end of an epoch that is next in line still counts.
  void fail(const Error& error);
  /// The daemon refused to go on. What it had sent before that is the program's to take.
  void refuse(const Error& error);
  const std::optional<Error>& failure() const { return failure_; }

  /// The daemon is gone. What it sent is void, except for the end of all that was asked for.
  void lost();
  /// Whether a new daemon is to be asked for more.
  bool wants_more() const;
  /// The subscription to request from it.
  wire::SubscribeT resume();

  bool is_over() const { return over_; }
  /// The daemon's latest reason for this subscription's wait; empty when it gave none.
  const std::string& reason() const { return reason_; }
  void set_reason(std::string reason) { reason_ = std::move(reason); }
  const Progress& progress() const { return progress_; }

 private:
  friend class NextBatch;
  friend class NextEnd;

  void take(const Ticket& ticket);
  void take(const EpochEnded& ended);
  Result<Next> look_at(const Ticket& ticket);
  Result<Next> look_at(const EpochEnded& ended);
  Result<Next> look_at(const EpochBegan& began);

  const wire::SubscribeT request_;
  const std::shared_ptr<PrivateMemory> memory_;
  Progress progress_;
  std::optional<Grant> grant_;
  bool served_ = false;
  ArenaNumber arena_;
  std::uint32_t window_ = 0;
  std::deque<Event> inbox_;
  std::optional<Error> failure_;
  std::string reason_;
  ProgramWaits waits_;
  std::optional<std::chrono::steady_clock::time_point> took_;  ///< The latest batch.
  bool over_ = false;                                          ///< The last epoch's end was taken.
};

}  // namespace batchwright
