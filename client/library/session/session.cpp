// What a program asks for.

#include "client/library/session/session.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "client/library/session/turn.h"

namespace batchwright {

/// False when another thread has it.
bool Session::take_turn() {
  if (!turn_mutex_.try_lock()) return false;
  link_mutex_.lock();
  return true;
}

namespace {

/// Longer waits make the client ask the daemon for the reason.
constexpr std::chrono::milliseconds kPatience{50};
/// A wait up to this long is not reported to the daemon.
constexpr std::chrono::milliseconds kPollInterval{1};

Error handed_out_before(const Ticket& ticket) {
  return {ErrorCode::malformed_message,
          fmt::format("lease {} was handed out before, or its subscription is over",
                      ticket.lease.value)};
}

Error no_grant(const DaemonLink& link, const ClientSubscription& subscription) {
  std::string why = fmt::format("the daemon at {} is alive and silent", link.endpoint());
  if (link.is_away()) {
    why = fmt::format("{}, trying again", link.away_text());
  } else if (!subscription.reason().empty()) {
    why = fmt::format("the daemon at {} says: {}", link.endpoint(), subscription.reason());
  }
  return {ErrorCode::timed_out,
          fmt::format("no answer to Subscribe for feed \"{}\" within {} ms: {}",
                      subscription.feed(), link.settings().limit.count(), why)};
}

Error nothing_came(const DaemonLink& link, const ClientSubscription& subscription,
                   const Deadline& deadline, bool asked) {
  const auto told = [&](const std::string& why) {
    return Error{ErrorCode::timed_out,
                 fmt::format("no batch of feed \"{}\" within {} ms: {}", subscription.feed(),
                             deadline.limit().count(), why)};
  };
  if (link.is_away()) return told(fmt::format("{}, trying again", link.away_text()));
  const std::size_t held = subscription.leases().held();
  const std::uint32_t window = subscription.window();
  const Position due = subscription.expected().position();
  const std::string credits =
      held >= window
          ? fmt::format("all {} credits are out: release a batch", window)
          : fmt::format("{} of {} credits are out; the next batch is of epoch {}, step {}", held,
                        window, due.epoch, due.step);
  const bool answered = !subscription.reason().empty();
  const char* alive = asked && !answered ? "does not say why" : "is alive";
  const std::string reason =
      answered ? fmt::format("; it waits for {}", subscription.reason()) : "";
  return told(fmt::format("the daemon at {} {} and {}{}", link.endpoint(), alive, credits, reason));
}

Error too_old_to_foresee(const DaemonLink& link) {
  return {
      ErrorCode::unsupported,
      fmt::format("the daemon at {} is too old to tell which batches come next", link.endpoint())};
}

/// Where the batch is read: in the arena, or in memory that is the subscription's alone.
Result<PrivateMemory::Lent> bytes_of(const std::shared_ptr<const Mapping>& arena,
                                     const Ticket& ticket, PrivateMemory* memory) {
  if (memory != nullptr) return memory->lend(arena, {{ticket.offset, ticket.size}, ticket.lease});
  const auto bytes = arena->part(ticket.offset, ticket.size);
  if (!bytes) return bytes.error();
  return PrivateMemory::Lent{{arena, *bytes, true, arena->bytes()}, nullptr};
}

}  // namespace

Result<std::shared_ptr<Session>> Session::connect(const std::string& endpoint,
                                                  ConnectSettings settings,
                                                  std::unique_ptr<Transport> transport) {
  auto session = std::make_shared<Session>(endpoint, std::move(settings), std::move(transport));
  if (auto sound = session->link_.check(); !sound) return sound.error();
  if (auto greeted = session->greet(); !greeted) return greeted.error();
  return session;
}

Result<std::shared_ptr<ClientSubscription>> Session::subscribe(wire::SubscribeT wanted,
                                                               bool writable) {
  if (!take_turn()) return busy();
  const Turn turn(*this);
  pump(after(link_.settings().limit));
  if (failure_) return *failure_;
  wanted.subscription = ++last_number_.value;
  const auto made = std::make_shared<ClientSubscription>(std::move(wanted), writable);
  subscriptions_.emplace(made->number(), made);
  if (link_.is_up()) {  // otherwise it is asked for with all others
    request(*made);
  }
  if (auto granted = await_grant(*made); !granted) return granted.error();
  return made;
}

Result<void> Session::await_grant(ClientSubscription& subscription) {
  const Deadline deadline = after(link_.settings().limit);
  const auto is_answered = [&subscription] {
    return subscription.is_served() || subscription.failure();
  };
  while (true) {
    const bool in_time = pump_until(is_answered, deadline);
    if (failure_) return *failure_;
    if (subscription.failure() && !subscription.is_served()) {
      subscription.leases().end();
      return *subscription.failure();
    }
    if (!in_time) {
      subscription.leases().close();  // the daemon may yet grant it
      return no_grant(link_, subscription);
    }
    if (subscription.is_over()) subscription.leases().close();  // a queue that had all its epochs
    if (link_.is_inline() || subscription.is_over()) return {};
    const auto mapped = link_.arena(subscription.arena(), deadline);
    if (mapped && *mapped) return {};
    if (!mapped) {
      arena_trouble(mapped.error());
    } else {
      subscription.leases().close();
      return no_grant(link_, subscription);
    }
  }
}

Result<Session::Event> Session::next(const std::shared_ptr<ClientSubscription>& subscription,
                                     const Deadline& deadline) {
  if (!take_turn()) return busy();
  const Turn turn(*this);
  while (true) {
    const auto coming = look(*subscription, deadline);
    if (!coming) return coming.error();
    if (*coming == Coming::nothing) return Event{};
    if (*coming == Coming::epoch_end) {
      const EpochEnded ended = subscription->take_end();
      // The daemon may not know that it is over: it counts from where the queue was.
      if (subscription->is_queue() && subscription->is_over()) subscription->leases().close();
      return Event{nullptr, ended};
    }
    auto batch = hand_out(subscription, deadline);
    if (!batch) return batch.error();
    if (*batch) return Event{std::move(*batch), std::nullopt};
    // The daemon was lost over it, or its arena has not come yet.
    if (deadline.passed(link_.now())) return nothing_came(link_, *subscription, deadline, false);
  }
}

Result<Session::Coming> Session::peek(ClientSubscription& subscription, const Deadline& deadline) {
  if (!take_turn()) return busy();
  const Turn turn(*this);
  return look(subscription, deadline);
}

/// Messages come in their order: when the answer comes all is here that the daemon sent before it,
/// and what it names comes after that, perhaps at the same time.
Result<Session::Upcoming> Session::upcoming(ClientSubscription& subscription, std::uint32_t count,
                                            const Deadline& deadline) {
  if (!take_turn()) return busy();
  const Turn turn(*this);
  const auto is_served = [&] {
    return (link_.is_up() && subscription.is_served()) || subscription.failure();
  };
  const auto is_answered = [&] { return subscription.upcoming() || !is_served(); };
  if (subscription.is_over()) return Upcoming{};
  do {
    pump_until(is_served, deadline);
    if (failure_) return *failure_;
    if (subscription.failure()) return *subscription.failure();
    if (!is_served()) return nothing_came(link_, subscription, deadline, false);
    if (!link_.has(Ability::upcoming)) return too_old_to_foresee(link_);
    const std::size_t wanted = count + subscription.expected().repeated();  // it names these, too
    send(encode(subscription.ask_upcoming(
        static_cast<std::uint32_t>(std::min<std::size_t>(wanted, kMostUpcoming)))));
    if (!pump_until(is_answered, deadline)) {
      return nothing_came(link_, subscription, deadline, false);
    }
  } while (!failure_ && !subscription.upcoming());  // the daemon was lost: the next one is asked
  if (failure_) return *failure_;
  std::vector<wire::UpcomingBatch> all;
  const ClientSubscription::Upcoming answer = *subscription.upcoming();
  for (const Ticket& ticket : answer.unread) {
    const auto figures = figures_of(ticket, deadline);
    if (!figures) return figures.error();
    all.push_back(*figures);
  }
  const std::size_t unread = all.size();
  all.insert(all.end(), answer.planned.begin(), answer.planned.end());
  const std::size_t repeated = std::min(subscription.expected().repeated(), all.size());
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(repeated));
  all.resize(std::min<std::size_t>(all.size(), count), wire::UpcomingBatch());
  const std::size_t certain = std::min(subscription.is_queue() ? unread : all.size(), all.size());
  return Upcoming{std::move(all), certain};
}

/// What a batch that has come says of itself.
Result<wire::UpcomingBatch> Session::figures_of(const Ticket& ticket, const Deadline& deadline) {
  Payload bytes = ticket.payload;
  if (!bytes) {
    const auto mapping = link_.arena(ticket.arena, deadline);
    if (!mapping) return mapping.error();
    if (!*mapping) return Error{ErrorCode::timed_out, "the daemon's arena has not come in time"};
    auto found = bytes_of(*mapping, ticket, nullptr);
    if (!found) return found.error();
    bytes = std::move(found->payload);
  }
  const auto found = checked_batch(bytes, ticket);
  if (!found) return found.error();
  const wire::Batch& batch = **found;
  return wire::UpcomingBatch(ticket.epoch, ticket.step, ticket.index, batch.batch_frames(),
                             batch.lengths()->size(), batch.batch_length(), ticket.rehearsal);
}

/// Waits for something that the program is to see.
Result<Session::Coming> Session::look(ClientSubscription& subscription, const Deadline& deadline) {
  bool asked = false;
  subscription.forget_reason();
  while (true) {
    if (!await_news(subscription, deadline, asked)) {
      return nothing_came(link_, subscription, deadline, asked);
    }
    if (failure_) subscription.fail(*failure_);
    const auto coming = subscription.look();
    if (!coming) return coming.error();
    if (coming->has_value()) return **coming;
  }
}

/// A client that waits says so: others may wait for batches that it has in hand, and the daemon's
/// figures take it for waiting from then on. Halfway through a wait that is getting long, the
/// client asks the daemon for the reason.
bool Session::await_news(ClientSubscription& subscription, const Deadline& deadline, bool& asked) {
  const auto news = [&subscription] { return subscription.has_news(); };
  if (pump_until(news, after(std::chrono::milliseconds(0)))) return true;
  let_wait(subscription, 0);
  ProgramWaits& waits = subscription.waits();
  const bool polled = waits.in_vain(link_.now());
  if (!polled &&
      pump_until(news, after(std::min(kPollInterval, deadline.remaining(link_.now()))))) {
    return true;
  }
  if (polled || waits.in_vain(link_.now())) say_waiting(subscription);
  const auto patience = std::max(kPatience, deadline.limit() / 2);
  if (!asked && deadline.limit() > patience) {
    const auto after_it = deadline.limit() - patience;
    if (pump_until(news, after(deadline.remaining(link_.now()) - after_it))) return true;
    asked = link_.is_up();
    if (asked) ask(subscription, false);
  }
  return pump_until(news, deadline);
}

/// A client that holds nothing is served in any case; an older daemon need not hear of it.
void Session::say_waiting(const ClientSubscription& subscription) {
  const bool counts = subscription.leases().held() != 0 || link_.has(Ability::waits);
  if (counts && link_.is_up()) ask(subscription, true);
}

/// Asks for the reason of a wait; `quiet` only says that the program waits.
void Session::ask(const ClientSubscription& subscription, bool quiet) {
  wire::AskT question;
  question.subscription = subscription.number().value;
  question.quiet = quiet;
  question.holds = static_cast<std::uint32_t>(subscription.leases().held());
  send(encode(std::move(question)));
}

/// Releases of no other subscription may wait, for the program may be long in coming back to it.
void Session::let_wait(const ClientSubscription& subscription, std::size_t releases) {
  for (const auto& [number, each] : subscriptions_) {
    each->leases().let_wait(each.get() == &subscription ? releases : 0);
  }
}

/// Null when the daemon was lost over it, and the ticket is void; or when its arena has not come in
/// time, and the batch comes with a later call.
Result<std::unique_ptr<bw_batch>> Session::hand_out(
    const std::shared_ptr<ClientSubscription>& subscription, const Deadline& deadline) {
  if (!link_.is_up() || !subscription->is_served()) {
    subscription->lost();  // the daemon that gave it is gone, and the lease with it
    return std::unique_ptr<bw_batch>();
  }
  const Ticket ticket = *subscription->coming();
  PrivateMemory::Lent lent{ticket.payload, nullptr};
  std::shared_ptr<const Mapping> arena;
  if (!lent.payload) {
    const auto mapping = link_.arena(ticket.arena, deadline);
    if (!mapping) arena_trouble(mapping.error());
    if (!mapping || !*mapping) return std::unique_ptr<bw_batch>();
    auto found = bytes_of(*mapping, ticket, subscription->memory());
    if (!found) return subscription->end(found.error());
    lent = std::move(*found);
    arena = *mapping;
  }
  const auto bytes = checked_batch(lent.payload, ticket);
  if (!bytes) return subscription->end(bytes.error());
  if (auto ours = subscription->expected().check(ticket, **bytes); !ours) {
    return subscription->end(ours.error());
  }
  const auto lease = subscription->leases().take(ticket.lease);
  if (!lease) return subscription->end(handed_out_before(ticket));
  const Position position = subscription->take_batch();
  let_wait(*subscription, subscription->releases_may_wait(link_.now()));
  auto batch = std::make_unique<bw_batch>(std::move(lent.payload), ticket, **bytes);
  batch->session = shared_from_this();
  batch->subscription = subscription;
  batch->stay = std::move(lent.stay);
  batch->lease = *lease;
  batch->position = position;
  batch->set_writable(subscription->memory() != nullptr);
  if (arena) batch->arenas = link_.arena_source();
  // The batch that comes next is copied while the program works on this one.
  const Ticket* next = subscription->coming();
  if (arena && subscription->memory() != nullptr && next != nullptr &&
      next->arena == ticket.arena) {
    subscription->memory()->prepare(arena, {{next->offset, next->size}, next->lease});
  }
  return batch;
}

void Session::tell(const ClientSubscription& subscription) {
  if (!closed_ && !subscription.leases().has_outbox({})) return;
  untold_ = true;
  send_outboxes_if_free();
}

void Session::unsubscribe(ClientSubscription& subscription) {
  if (subscription.memory() != nullptr) subscription.memory()->close();
  subscription.leases().close();
  tell(subscription);
}

void Session::close() {
  closed_ = true;
  untold_ = true;
  send_outboxes_if_free();
  link_.wake();
}

}  // namespace batchwright
