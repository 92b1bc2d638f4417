// What a program asks for: the giving half of Session.

#include "client/library/session/session.h"

#include <fmt/core.h>

#include <utility>

namespace batchwright {

/// The right to subscribe and to take batches, and with it the link. At its end the news are sent
/// that came meanwhile.
class Session::Turn {
 public:
  /// Without the right when another thread has it.
  explicit Turn(Session& session) : turn_(session.turn_mutex_, std::try_to_lock) {
    if (!turn_) return;
    link_ = std::unique_lock(session.link_mutex_);
    afterwards_.reset(&session);
  }

  explicit operator bool() const { return turn_.owns_lock(); }

 private:
  struct TellNews {
    void operator()(Session* session) const { session->tell_news_if_free(); }
  };

  // Ended from the last one to the first: the link is free before the news are sent.
  std::unique_ptr<Session, TellNews> afterwards_;
  std::unique_lock<std::mutex> turn_;
  std::unique_lock<std::mutex> link_;
};

namespace {

/// Longer waits make the client ask the daemon for the reason.
constexpr std::chrono::milliseconds kPatience{50};
/// A wait up to this long is not reported to the daemon.
constexpr std::chrono::milliseconds kGlance{1};

Error busy() {
  return {ErrorCode::busy, "another thread is in bw_next or bw_subscribe on this connection"};
}

Error handed_out_before(const Ticket& ticket) {
  return {ErrorCode::malformed_message,
          fmt::format("lease {} was handed out before, or its subscription is over",
                      ticket.lease.value)};
}

/// Where the batch is read: in the arena, or in memory that is the lane's alone.
Result<PrivateMemory::Lent> bytes_of(const std::shared_ptr<const Mapping>& arena,
                                     const Ticket& ticket, const Lane& lane) {
  if (lane.is_writable()) {
    return lane.memory()->lend(arena, {{ticket.offset, ticket.size}, ticket.lease});
  }
  const auto bytes = arena->part(ticket.offset, ticket.size);
  if (!bytes) return bytes.error();
  return PrivateMemory::Lent{{arena, *bytes, true, arena->bytes()}, nullptr};
}

/// The batch that comes next is copied while the program works on this one.
void prepare_next(const Lane& lane, const std::shared_ptr<const Mapping>& arena,
                  ArenaNumber number) {
  const Ticket* coming = lane.coming();
  if (coming == nullptr || !lane.is_writable() || coming->arena != number) return;
  lane.memory()->prepare(arena, {{coming->offset, coming->size}, coming->lease});
}

}  // namespace

Result<std::shared_ptr<Session>> Session::connect(const std::string& endpoint,
                                                  ConnectSettings settings) {
  auto session = std::make_shared<Session>(endpoint, std::move(settings));
  if (auto sound = session->contact_.check(); !sound) return sound.error();
  if (auto greeted = session->greet(); !greeted) return greeted.error();
  return session;
}

Result<std::shared_ptr<Lane>> Session::subscribe(wire::SubscribeT request, bool writable) {
  const Turn turn(*this);
  if (!turn) return busy();
  pump(Deadline(contact_.settings().limit));
  if (failure_) return *failure_;
  const auto lane = lanes_.open(std::move(request), writable);
  if (contact_.is_up()) send(encode(lanes_.request_for(*lane)));  // else asked for with all others
  return await_grant(lane);
}

Result<std::shared_ptr<Lane>> Session::await_grant(const std::shared_ptr<Lane>& lane) {
  const Deadline deadline(contact_.settings().limit);
  const auto answered = [&lane] { return lane->is_served() || lane->failure(); };
  while (true) {
    const bool in_time = pump_until(answered, deadline);
    if (failure_) return *failure_;
    if (lane->failure() && !lane->is_served()) {
      book_.forget(lane->number());
      return *lane->failure();
    }
    if (!in_time) {
      book_.close(lane->number());  // the daemon may yet grant it
      return no_grant(*lane);
    }
    if (lane->is_over()) book_.close(lane->number());  // a queue that has had all its epochs
    if (contact_.is_inline() || lane->is_over()) return lane;
    const auto mapped = contact_.arena(lane->arena(), deadline);
    if (mapped && *mapped) return lane;
    if (!mapped) {
      arena_trouble(mapped.error());
    } else {
      book_.close(lane->number());
      return no_grant(*lane);
    }
  }
}

Result<Session::Event> Session::next(const std::shared_ptr<Lane>& lane, const Deadline& deadline) {
  const Turn turn(*this);
  if (!turn) return busy();
  while (true) {
    auto next = look(*lane, deadline);
    if (!next) return next.error();
    Lane::Next& coming = *next;
    if (auto* batch = std::get_if<NextBatch>(&coming)) {
      auto handed = hand_out(*lane, std::move(*batch), deadline);
      if (!handed) return handed.error();
      if (*handed) return std::move(**handed);
      if (deadline.passed()) return nothing_came(*lane, deadline, false);
      continue;  // the daemon was lost over it
    }
    auto* end = std::get_if<NextEnd>(&coming);
    if (end == nullptr) return Event{};
    const EpochEnded ended = std::move(*end).take();
    // The daemon may not know that it is over: it counts from where the queue was.
    if (lane->is_queue() && lane->is_over()) book_.close(lane->number());
    return Event{nullptr, ended};
  }
}

Result<Session::Coming> Session::peek(const std::shared_ptr<Lane>& lane, const Deadline& deadline) {
  const Turn turn(*this);
  if (!turn) return busy();
  const auto next = look(*lane, deadline);
  if (!next) return next.error();
  const Lane::Next& coming = *next;
  if (const auto* batch = std::get_if<NextBatch>(&coming)) {
    return batch->ticket().rehearsal ? Coming::rehearsal : Coming::batch;
  }
  return std::holds_alternative<NextEnd>(coming) ? Coming::epoch_end : Coming::nothing;
}

/// Waits for something that the program is to see.
Result<Lane::Next> Session::look(Lane& lane, const Deadline& deadline) {
  bool asked = false;
  lane.set_reason({});
  while (true) {
    if (!await_news(lane, deadline, asked)) return nothing_came(lane, deadline, asked);
    if (failure_) lane.fail(*failure_);
    auto next = lane.look();
    if (!next) return lane.failure() ? *lane.failure() : lanes_.end(lane, next.error());
    const Lane::Next& coming = *next;
    if (const auto* doubled = std::get_if<Lane::Doubled>(&coming)) {
      book_.skip(lane.number(), doubled->lease);
    } else if (!std::holds_alternative<Lane::Passed>(coming)) {
      return next;
    }
  }
}

/// A client that waits says so: others may wait for batches that it has in hand, and the daemon's
/// figures take it for waiting from then on. Halfway through a wait that is getting long, the
/// client asks the daemon for the reason.
bool Session::await_news(Lane& lane, const Deadline& deadline, bool& asked) {
  const auto news = [&lane] { return lane.has_news(); };
  if (pump_until(news, Deadline(std::chrono::milliseconds(0)))) return true;
  book_.let_wait(lane.number(), 0);
  const bool glanced = lane.waits().in_vain(Deadline::Clock::now());
  if (!glanced && pump_until(news, Deadline(std::min(kGlance, deadline.remaining())))) return true;
  if (glanced || lane.waits().in_vain(Deadline::Clock::now())) say_waiting(lane);
  const auto patience = std::max(kPatience, deadline.limit() / 2);
  if (!asked && deadline.limit() > patience) {
    const auto behind_it = deadline.limit() - patience;
    if (pump_until(news, Deadline(deadline.remaining() - behind_it))) return true;
    asked = contact_.is_up();
    if (asked) ask(lane, false);
  }
  return pump_until(news, deadline);
}

/// A client that holds nothing is served in any case; an older daemon need not hear of it.
void Session::say_waiting(const Lane& lane) {
  const bool counts = book_.held(lane.number()) != 0 || contact_.has(Ability::waits);
  if (counts && contact_.is_up()) ask(lane, true);
}

/// Asks for the reason of a wait; `quiet` only says that the program waits.
void Session::ask(const Lane& lane, bool quiet) {
  wire::AskT question;
  question.subscription = lane.number().value;
  question.quiet = quiet;
  question.holds = static_cast<std::uint32_t>(book_.held(lane.number()));
  send(encode(std::move(question)));
}

/// Empty when the daemon was lost over it, and the ticket is void; or when its arena has not come
/// in time, and the batch comes with a later call.
Result<std::optional<Session::Event>> Session::hand_out(Lane& lane, NextBatch next,
                                                        const Deadline& deadline) {
  const Ticket& ticket = next.ticket();
  if (!contact_.is_up() || !lane.is_served()) {
    // The daemon that gave it is gone, and the lease with it.
    lane.lost();
    return std::optional<Event>();
  }
  PrivateMemory::Lent lent{ticket.payload, nullptr};
  std::shared_ptr<const Mapping> arena;
  std::shared_ptr<const ArenaLink> link;
  if (!lent.payload) {
    const auto mapping = contact_.arena(ticket.arena, deadline);
    if (!mapping) arena_trouble(mapping.error());
    if (!mapping || !*mapping) return std::optional<Event>();
    auto found = bytes_of(*mapping, ticket, lane);
    if (!found) return lanes_.end(lane, found.error());
    lent = std::move(*found);
    arena = *mapping;
    link = contact_.arena_link();
  }
  const auto bytes = checked_batch(lent.payload, ticket);
  if (!bytes) return lanes_.end(lane, bytes.error());
  if (auto ours = lane.progress().check(ticket, **bytes); !ours) {
    return lanes_.end(lane, ours.error());
  }
  const auto lease = book_.take(lane.number(), ticket.lease);
  if (!lease) return lanes_.end(lane, handed_out_before(ticket));
  const Taken taken = std::move(next).take();
  book_.let_wait(lane.number(), lane.releases_may_wait(Deadline::Clock::now()));
  auto batch =
      std::make_unique<bw_batch>(shared_from_this(), std::move(lent.payload), taken, **bytes);
  batch->stay = std::move(lent.stay);
  batch->lease = *lease;
  batch->set_writable(lane.is_writable());
  batch->link = std::move(link);
  if (arena) prepare_next(lane, arena, taken.ticket.arena);
  return std::optional(Event{std::move(batch), std::nullopt});
}

void Session::done(const Lease& lease) {
  book_.done(lease);
  spread_news();
}

void Session::give_back(const Lease& lease) {
  book_.give_back(lease);
  spread_news();
}

void Session::give_back_undone(const Lease& lease) {
  book_.give_back_undone(lease);
  spread_news();
}

void Session::unsubscribe(const Lane& lane) {
  if (lane.is_writable()) lane.memory()->close();
  book_.close(lane.number());
  spread_news();
}

void Session::close() {
  book_.close_all();
  tell_news_if_free();
  contact_.wake();
}

/// Sends the book's news, or wakes the thread that will.
void Session::spread_news() {
  tell_news_if_free();
  if (book_.has_news()) contact_.wake();
}

}  // namespace batchwright
