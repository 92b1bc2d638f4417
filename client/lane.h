#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <variant>

#include "client/batchwright/client.h"
#include "formats/formats.h"

namespace batchwright {

/// Where a batch lies, as the daemon announced it.
struct Ticket {
  std::uint64_t lease = 0;
  std::uint32_t arena = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  std::uint64_t index = 0;
};

struct EpochEnded {
  std::uint64_t epoch = 0;
  std::uint64_t steps = 0;  ///< That the epoch had.
  bool last = false;        ///< Nothing follows.
};

/// The counted epochs are over, and the program knows already.
struct NothingFollows {};

/// One subscription on this side: what was asked for and granted, what the daemon sent and the
/// program has not taken yet, and the place of the next batch.
///
/// Order is checked, so that a lost or doubled batch is an error and never other data in silence.
/// Threads: who holds the session's turn; position() from any.
class Lane {
 public:
  using Event = std::variant<Ticket, EpochEnded>;
  using Next = std::variant<Ticket, EpochEnded, NothingFollows>;

  explicit Lane(wire::SubscribeT request) : request_(std::move(request)) {}

  std::uint32_t number() const { return request_.subscription; }
  const std::string& feed() const { return request_.feed; }
  const wire::SubscribeT& request() const { return request_; }

  /// The daemon's answer to Subscribe. Errors: malformed_message.
  Result<void> granted(const wire::Subscribed& answer);
  bool is_granted() const { return grant_.has_value(); }
  const bw_grant& grant() const { return *grant_; }
  std::uint32_t arena() const { return arena_; }

  void push(const Event& event) { inbox_.push_back(event); }
  std::size_t waiting() const { return inbox_.size(); }
  /// Whether next() has something to say.
  bool has_news() const { return over_ || failure_ || !inbox_.empty(); }
  /// A ticket stays until advance(). Errors: failure(); malformed_message for what was not due.
  Result<Next> next();
  /// The ticket that next() showed is handed out.
  void advance();

  /// Nothing more comes, for this reason. Tickets at hand are void: whoever gave them may have
  /// taken their slots back. The end of an epoch that is next in line still counts.
  void fail(const Error& error);
  /// The daemon refused to go on. What it had sent before that is the program's to take.
  void refuse(const Error& error);
  const std::optional<Error>& failure() const { return failure_; }

  bw_position position() const;
  /// Where to go on when the batch of this index was the last one finished.
  bw_position position_after(std::uint64_t epoch, std::uint64_t index) const;

 private:
  std::uint64_t expected_index() const;
  Result<Next> check(const Ticket& ticket);
  Result<Next> check(const EpochEnded& ended);

  wire::SubscribeT request_;
  std::optional<bw_grant> grant_;
  std::uint32_t arena_ = 0;
  std::uint32_t first_ = 0;  ///< Our first place within a step.
  std::deque<Event> inbox_;
  std::optional<Error> failure_;
  bool over_ = false;  ///< The last epoch's end was taken.

  mutable std::mutex mutex_;  // guards the place of the next batch
  std::uint64_t epoch_ = 0;
  std::uint64_t step_ = 0;
  std::uint32_t place_ = 0;  ///< Batches taken of this step.
};

}  // namespace batchwright
