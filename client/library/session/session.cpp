// What a program asks for: the giving half of Session.

#include "client/library/session/session.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <random>
#include <utility>

#include "client/library/memory/private_memory.h"

namespace batchwright {

/// The right to subscribe and to take batches, and with it the socket.
class Session::Turn {
 public:
  explicit Turn(Session& session)
      : session_(session), taken_(!session.turn_taken_.exchange(true, std::memory_order_acquire)) {
    if (taken_) session_.socket_.lock();
  }
  ~Turn() {
    if (!taken_) return;
    session_.socket_.unlock();
    session_.turn_taken_.store(false, std::memory_order_release);
    session_.tell_news_if_free();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  explicit operator bool() const { return taken_; }

 private:
  Session& session_;
  bool taken_;
};

namespace {

/// Longer waits make the client ask the daemon for the reason.
constexpr std::chrono::milliseconds kPatience{50};
/// A wait up to this long is not reported to the daemon.
constexpr std::chrono::milliseconds kGlance{1};

Error busy() {
  return {ErrorCode::busy, "another thread is in bw_next or bw_subscribe on this connection"};
}

/// Where the batch is read: in the arena, or in memory that is the lane's alone.
Result<Payload> bytes_of(const std::shared_ptr<const Mapping>& arena, const Ticket& ticket,
                         bool writable) {
  const auto bytes = arena->part(ticket.offset, ticket.size);
  if (!bytes) return bytes.error();
  if (writable) return private_memory(*arena, ticket.offset, ticket.size);
  return Payload{arena, *bytes, true};
}

std::uint64_t random_token() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device() | 1;  // 0 would be none
}

}  // namespace

Session::Session(std::string endpoint, ConnectSettings settings)
    : endpoint_(std::move(endpoint)),
      settings_(std::move(settings)),
      pid_(getpid()),
      token_(random_token()),
      alarm_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

bool Session::forked() const { return getpid() != pid_; }

Result<std::shared_ptr<Lane>> Session::subscribe(wire::SubscribeT request, bool writable) {
  const Turn turn(*this);
  if (!turn) return busy();
  std::erase_if(lanes_, [this](const auto& entry) { return book_.closed(entry.first); });
  pump(Deadline(settings_.limit));
  if (failure_) return *failure_;
  request.subscription = ++last_number_;
  const auto lane = std::make_shared<Lane>(std::move(request), writable);
  lanes_.emplace(lane->number(), lane);
  book_.open(lane->number(), lane->is_queue());
  if (link_ && link_->up) ask_for(*lane);  // else it is asked for with all others
  return await_grant(lane);
}

Result<std::shared_ptr<Lane>> Session::await_grant(const std::shared_ptr<Lane>& lane) {
  const Deadline deadline(settings_.limit);
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
    if (is_inline()) return lane;
    const auto mapped = arena(lane->arena());
    if (mapped) return lane;
    arena_trouble(mapped.error());
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
      auto handed = hand_out(*lane, std::move(*batch));
      if (!handed) return handed.error();
      if (*handed) return std::move(**handed);
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
    if (!next) return lane.failure() ? *lane.failure() : end(lane, next.error());
    const Lane::Next& coming = *next;
    if (const auto* doubled = std::get_if<Lane::Doubled>(&coming)) {
      book_.skip(lane.number(), doubled->lease);
    } else if (!std::holds_alternative<Lane::Passed>(coming)) {
      return next;
    }
  }
}

/// A client that waits with batches in hand says so: others may wait for them. Halfway through a
/// wait that is getting long, the client asks the daemon for the reason.
bool Session::await_news(Lane& lane, const Deadline& deadline, bool& asked) {
  const auto news = [&lane] { return lane.has_news(); };
  if (pump_until(news, Deadline(std::chrono::milliseconds(0)))) return true;
  const bool glanced = lane.waited_in_vain(Clock::now());
  if (!glanced && pump_until(news, Deadline(std::min(kGlance, deadline.remaining())))) return true;
  if (glanced || lane.waited_in_vain(Clock::now())) say_waiting(lane);
  const auto patience = std::max(kPatience, deadline.limit() / 2);
  if (!asked && deadline.limit() > patience) {
    const auto behind_it = deadline.limit() - patience;
    if (pump_until(news, Deadline(deadline.remaining() - behind_it))) return true;
    asked = link_ && link_->up;
    if (asked) {
      wire::AskT question;
      question.subscription = lane.number();
      question.holds = static_cast<std::uint32_t>(book_.held(lane.number()));
      send(encode(std::move(question)));
    }
  }
  return pump_until(news, deadline);
}

/// A client that holds nothing is served in any case.
void Session::say_waiting(const Lane& lane) {
  wire::AskT question;
  question.subscription = lane.number();
  question.quiet = true;
  question.holds = static_cast<std::uint32_t>(book_.held(lane.number()));
  if (question.holds != 0 && link_ && link_->up) send(encode(std::move(question)));
}

/// Empty when the daemon was lost over it, and the ticket is void.
Result<std::optional<Session::Event>> Session::hand_out(Lane& lane, NextBatch next) {
  const Ticket& ticket = next.ticket();
  if (!link_ || !link_->up || !lane.is_served()) {
    // The daemon that gave it is gone, and the lease with it.
    lane.lost();
    return std::optional<Event>();
  }
  Payload payload = ticket.payload;
  std::shared_ptr<const ArenaLink> link;
  if (!payload) {
    const auto mapping = arena(ticket.arena);
    if (!mapping) {
      arena_trouble(mapping.error());
      return std::optional<Event>();
    }
    auto found = bytes_of(*mapping, ticket, lane.is_writable());
    if (!found) return end(lane, found.error());
    payload = std::move(*found);
    link = link_->arenas->link();
  }
  const auto bytes = checked_batch(payload, ticket);
  if (!bytes) return end(lane, bytes.error());
  if (auto ours = lane.progress().check(ticket, **bytes); !ours) return end(lane, ours.error());
  const auto lease = book_.take(lane.number(), ticket.lease);
  if (!lease) {
    return end(lane, {ErrorCode::malformed_message,
                      "lease " + std::to_string(ticket.lease) +
                          " was handed out before, or its subscription is over"});
  }
  const Taken taken = std::move(next).take();
  auto batch = std::make_unique<bw_batch>(shared_from_this(), std::move(payload), taken, **bytes);
  batch->lease = *lease;
  batch->set_writable(lane.is_writable());
  batch->link = std::move(link);
  return std::optional(Event{std::move(batch), std::nullopt});
}

Result<std::shared_ptr<const Mapping>> Session::arena(std::uint32_t number) {
  if (!link_ || !link_->arenas) {
    return Error{ErrorCode::disconnected, "the arena's connection is gone"};
  }
  return link_->arenas->at(number, Deadline(settings_.limit));
}

void Session::done(const Lease& lease) {
  book_.done(lease);
  tell_news_if_free();
  if (book_.has_news()) wake_holder();
}

void Session::give_back(const Lease& lease) {
  book_.give_back(lease);
  tell_news_if_free();
  if (book_.has_news()) wake_holder();
}

void Session::unsubscribe(std::uint32_t subscription) {
  book_.close(subscription);
  tell_news_if_free();
  if (book_.has_news()) wake_holder();
}

void Session::close() {
  book_.close_all();
  tell_news_if_free();
  wake_holder();
}

/// Called by a thread that has just unlocked the socket, so that news which came meanwhile are
/// sent.
void Session::tell_news_if_free() {
  while (book_.has_news()) {
    const std::unique_lock lock(socket_, std::try_to_lock);
    if (!lock || !tell_news()) return;
  }
}

/// False when there is no daemon to send to; the book keeps the news until there is one.
bool Session::tell_news() {
  const bool up = link_ && link_->up;
  if (!up && !book_.all_closed()) return false;
  LeaseBook::News news = book_.take_news();
  const auto tell = [&](LeaseBook::Leases& told, bool keeps) {
    for (auto& [subscription, leases] : told) {
      if (!up) return;
      wire::ReleaseT release;
      release.subscription = subscription;
      release.leases = std::move(leases);
      release.keeps = keeps;
      send(encode(std::move(release)));
    }
  };
  tell(news.done, true);
  tell(news.releases, false);
  for (const std::uint32_t subscription : news.ended) {
    wire::UnsubscribeT unsubscribe;
    unsubscribe.subscription = subscription;
    send(encode(std::move(unsubscribe)));
  }
  if (!news.goodbye) return true;
  if (up && (!link_->arenas || link_->arenas->alive())) {
    static_cast<void>(link_->dealer->send_last(encode(wire::ByeT{})));
  }
  link_.reset();
  return true;
}

void Session::wake_holder() const {
  const std::uint64_t one = 1;
  static_cast<void>(!write(alarm_.get(), &one, sizeof one));  // full is as good
}

void Session::send(const flatbuffers::DetachedBuffer& message) {
  if (auto sent = link_->dealer->send(message); !sent) fail(sent.error());
}

/// The first reason is the one that counts. Towards the daemon the conversation ends when the
/// last batch is released.
void Session::fail(const Error& error) {
  if (failure_) return;
  failure_ = error;
  for (const auto& [number, lane] : lanes_) lane->fail(error);
  book_.close_all();
}

/// Returns the error as the caller gets it.
Error Session::end(Lane& lane, const Error& error) {
  const std::string feed = "feed \"" + lane.feed() + "\": ";
  const bool named = error.message.starts_with(feed);
  Error told{error.code, named ? error.message : feed + error.message};
  lane.fail(told);
  book_.close(lane.number());
  return told;
}

}  // namespace batchwright
