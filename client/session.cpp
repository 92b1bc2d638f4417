#include "client/session.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

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

Error busy() {
  return {ErrorCode::busy, "another thread is in bw_next or bw_subscribe on this connection"};
}

}  // namespace

Session::Session(std::string endpoint, std::chrono::milliseconds limit)
    : endpoint_(std::move(endpoint)),
      limit_(limit),
      pid_(getpid()),
      alarm_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

bool Session::forked() const { return getpid() != pid_; }

Result<std::shared_ptr<Lane>> Session::subscribe(wire::SubscribeT request) {
  const Turn turn(*this);
  if (!turn) return busy();
  std::erase_if(lanes_, [this](const auto& entry) { return book_.closed(entry.first); });
  request.subscription = ++last_number_;
  const auto lane = std::make_shared<Lane>(request);
  lanes_.emplace(lane->number(), lane);
  pump();
  if (failure_) return *failure_;
  send(encode(std::move(request)));
  const bool in_time =
      pump_until([&lane] { return lane->is_granted() || lane->failure(); }, Deadline(limit_));
  return finish_subscribe(lane, in_time);
}

Result<std::shared_ptr<Lane>> Session::finish_subscribe(std::shared_ptr<Lane> lane, bool in_time) {
  if (failure_) return *failure_;
  if (lane->failure() && !lane->is_granted()) return *lane->failure();
  book_.open(lane->number());
  if (!in_time) {
    book_.close(lane->number());  // the daemon may yet grant it
    return Error{ErrorCode::timed_out, "no answer to Subscribe for feed \"" + lane->feed() +
                                           "\" within " + std::to_string(limit_.count()) +
                                           " ms: the daemon at " + endpoint_ +
                                           " is alive and silent"};
  }
  if (const auto mapped = arena(lane->arena()); !mapped) return mapped.error();
  return lane;
}

Result<Session::Event> Session::next(const std::shared_ptr<Lane>& lane, const Deadline& deadline) {
  const Turn turn(*this);
  if (!turn) return busy();
  const auto news = [&lane] { return lane->has_news(); };
  if (!pump_until(news, deadline)) return nothing_came(*lane, deadline);
  const auto next = lane->next();
  if (!next) {
    end(*lane, next.error());
    return next.error();
  }
  const Lane::Next& event = *next;
  if (const auto* ticket = std::get_if<Ticket>(&event)) return hand_out(lane, *ticket);
  if (const auto* ended = std::get_if<EpochEnded>(&event)) return Event{nullptr, *ended};
  return Event{};
}

Result<Session::Event> Session::hand_out(const std::shared_ptr<Lane>& lane, const Ticket& ticket) {
  const auto mapping = arena(ticket.arena);
  if (!mapping) return mapping.error();
  const auto bytes = checked_batch(**mapping, ticket);
  if (!bytes) {
    end(*lane, {bytes.error().code, "feed \"" + lane->feed() + "\": " + bytes.error().message});
    return *lane->failure();
  }
  auto batch = std::make_unique<bw_batch>(shared_from_this(), lane, *mapping, ticket, **bytes);
  lane->advance();
  book_.take(lane->number());
  return Event{std::move(batch), std::nullopt};
}

/// An arena is asked for once. The connection cannot be trusted after a failure: a late answer
/// would be taken for that to the next request.
Result<std::shared_ptr<const Mapping>> Session::arena(std::uint32_t number) {
  auto& mapped = link_->mapped[number];
  if (mapped) return mapped;
  auto fetched = link_->arenas->fetch(number, Deadline(limit_));
  if (!fetched) {
    fail(fetched.error());
    return fetched.error();
  }
  mapped = std::move(*fetched);
  return mapped;
}

void Session::give_back(std::uint32_t subscription, std::uint64_t lease) {
  book_.give_back(subscription, lease);
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

/// Whoever holds the socket comes here after unlocking it, so that news which came meanwhile are
/// not left lying.
void Session::tell_news_if_free() {
  while (book_.has_news()) {
    const std::unique_lock lock(socket_, std::try_to_lock);
    if (!lock) return;
    tell_news();
  }
}

void Session::tell_news() {
  LeaseBook::News news = book_.take_news();
  if (!link_) return;
  for (auto& [subscription, leases] : news.releases) {
    wire::ReleaseT release;
    release.subscription = subscription;
    release.leases = std::move(leases);
    send(encode(std::move(release)));
  }
  for (const std::uint32_t subscription : news.ended) {
    wire::UnsubscribeT unsubscribe;
    unsubscribe.subscription = subscription;
    send(encode(std::move(unsubscribe)));
  }
  if (!news.goodbye) return;
  if (link_->arenas && link_->arenas->alive()) {
    static_cast<void>(link_->dealer->send_last(encode(wire::ByeT{})));
  }
  link_.reset();
}

void Session::wake_holder() const {
  const std::uint64_t one = 1;
  static_cast<void>(!write(alarm_.get(), &one, sizeof one));  // full is as good
}

void Session::send(const flatbuffers::DetachedBuffer& message) {
  if (auto sent = link_->dealer->send(message); !sent) fail(sent.error());
}

}  // namespace batchwright
