#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "client/library/deadline.h"
#include "client/library/ids.h"
#include "client/library/memory/private_memory.h"
#include "client/library/session/expected_position.h"
#include "client/library/session/leases.h"
#include "formats/formats.h"

namespace batchwright {

/// The waits of a program for the next event of a subscription, and what the daemon hears of them.
/// Threads: the session's lock; take_untold() from any.
class ProgramWaits {
 public:
  /// The program looked, and found nothing. Whether it waits for long enough now that the daemon
  /// is to hear of it: once for each wait.
  bool in_vain(Time now);
  /// Something has come.
  void end(Time now);
  /// The daemon is gone.
  void lost();
  /// A new daemon is asked. Whether the program waits, or was waiting when the last one was lost,
  /// so that this one is to hear of it.
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

/// One subscription: what was asked for and granted, what the daemon sent and the program has not
/// taken yet, the place of the next batch, and the leases of those that the program holds.
///
/// Order is checked, so that a lost or doubled batch is an error and never other data in silence.
/// It outlives the session with the daemon: lost() voids what came and was not taken, and request()
/// says what to ask the next daemon for.
/// Lifetime: the session, the program's handle and its batches share it.
/// Threads: the session's lock. leases(), memory() and the position from any.
class ClientSubscription {
 public:
  /// What comes next for the program.
  enum class Coming { rehearsal, batch, epoch_end, nothing };

  ClientSubscription(wire::SubscribeT request, bool writable);

  SubscriptionNumber number() const { return {expected_.asked().subscription}; }
  const std::string& feed() const { return expected_.asked().feed; }
  bool is_queue() const { return expected_.is_queue(); }
  const ExpectedPosition& expected() const { return expected_; }
  Leases& leases() { return leases_; }
  const Leases& leases() const { return leases_; }
  /// The memory in which the program may write to its batches; null when it may not.
  PrivateMemory* memory() const { return memory_.get(); }

  /// What to ask a daemon for, with the leases to claim from it.
  wire::SubscribeT request();
  /// Whether a new daemon is to be asked for more.
  bool wants_more() const;
  /// Whether this session's daemon has granted it.
  bool is_served() const { return served_; }
  /// The first grant. Set before the program has the subscription.
  const Grant& grant() const { return *grant_; }
  ArenaNumber arena() const { return arena_; }
  std::uint32_t window() const { return window_; }

  // What the daemon says. Errors: malformed_message, which ends the conversation.
  Result<void> on(const wire::Subscribed& answer, Time now);
  Result<void> on(const wire::EpochEnd& ended, Time now);
  Result<void> on(const wire::EpochBegin& began, Time now);
  Result<void> on(const wire::Waiting& waiting, Time now);
  Result<void> on(const wire::Upcoming& answer, Time now);
  /// `comes_along`: batches come as messages, and not in the arena.
  Result<void> on(const wire::Delivery& delivery, const Payload& batch, bool comes_along, Time now);

  /// Asks for the batches that come next.
  wire::ListUpcomingT ask_upcoming(std::uint32_t count);
  struct Upcoming {
    std::vector<Ticket> unread;                ///< Came before the answer, and were not taken.
    std::vector<wire::UpcomingBatch> planned;  ///< What the daemon sends after it.
  };
  /// The answer to the latest question; empty: it has not come, or its daemon is gone.
  const std::optional<Upcoming>& upcoming() const { return upcoming_; }

  ProgramWaits& waits() { return waits_; }
  /// Whether look() has something to say.
  bool has_news() const { return over_ || failure_ || !inbox_.empty() || expected_.is_behind(); }
  /// What comes next for the program; what it has had before is given back and passed over. Empty
  /// when that was all. Errors: the reason why nothing more comes; malformed_message for what was
  /// not due.
  Result<std::optional<Coming>> look();
  /// The batch that comes next, as far as is known.
  const Ticket* coming() const {
    return inbox_.empty() ? nullptr : std::get_if<Ticket>(&inbox_.front());
  }
  /// Takes the batch that look() found. Returns where to resume when it was the last one finished.
  Position take_batch();
  /// Takes the end of an epoch that look() found.
  EpochEnded take_end();
  /// How many releases may wait for others, asked each time that a batch was taken: up to half of
  /// the window less one, while the daemon has slots left, the next batch is at hand, and the
  /// program will be back before it needs what they bring. It surely will with half of its window
  /// unread; with less only if it takes batches very fast.
  std::size_t releases_may_wait(Time now);

  /// Ends the subscription. Returns the error as the caller gets it, with the feed named.
  Error end(const Error& error);
  /// Nothing more comes, for this reason. Tickets at hand are void: the daemon that gave them may
  /// have taken their slots back. The end of an epoch that is next in line still counts.
  void fail(const Error& error);
  /// The daemon refused to go on. What it had sent before that is the program's to take.
  void refuse(const Error& error);
  const std::optional<Error>& failure() const { return failure_; }
  /// The daemon is gone. What it sent is void, except for the end of all that was asked for.
  void lost();

  bool is_over() const { return over_; }
  /// The daemon's latest reason for this subscription's wait; empty when it gave none.
  const std::string& reason() const { return reason_; }
  void forget_reason() { reason_.clear(); }

 private:
  using Event = std::variant<Ticket, EpochEnded, EpochBegan>;
  using Look = Result<std::optional<Coming>>;

  void push(Event event, Time now);
  Look look_at(const Ticket& ticket);
  Look look_at(const EpochEnded& ended);
  Look look_at(const EpochBegan& began);
  bool has_last_end() const;

  const std::shared_ptr<PrivateMemory> memory_;
  ExpectedPosition expected_;
  Leases leases_;
  std::optional<Grant> grant_;
  bool served_ = false;
  ArenaNumber arena_;
  std::uint32_t window_ = 0;
  std::deque<Event> inbox_;
  std::optional<Error> failure_;
  std::string reason_;
  std::uint32_t asked_upcoming_ = 0;  ///< The latest question.
  std::optional<Upcoming> upcoming_;
  ProgramWaits waits_;
  std::optional<Time> took_;  ///< The latest batch.
  bool over_ = false;         ///< The last epoch's end was taken.
};

}  // namespace batchwright
