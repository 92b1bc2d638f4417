// What the daemon says, and what becomes of it: the receiving half of Session.

#include <unistd.h>

#include "client/session.h"

namespace batchwright {
namespace {

constexpr std::string_view kIpc = "ipc://";
constexpr std::string_view kArenaSuffix = ".arena";

}  // namespace

Result<std::shared_ptr<Session>> Session::connect(const std::string& endpoint,
                                                  const std::string& program,
                                                  std::chrono::milliseconds limit) {
  if (!endpoint.starts_with(kIpc)) {
    return Error{ErrorCode::unsupported,
                 "endpoint \"" + endpoint + "\": this client reaches ipc:// endpoints only"};
  }
  auto session = std::make_shared<Session>(endpoint, limit);
  if (!session->alarm_) return Error{ErrorCode::io_error, "eventfd: no descriptor left"};
  if (auto greeted = session->greet(program); !greeted) return greeted.error();
  return session;
}

Result<void> Session::greet(const std::string& program) {
  auto dealer = Dealer::connect(endpoint_);
  if (!dealer) return dealer.error();
  const std::lock_guard lock(socket_);
  const Deadline deadline(limit_);
  link_.emplace();
  link_->dealer = std::move(*dealer);
  wire::HelloT hello;
  hello.protocol = kProtocolVersion;
  hello.client = program;
  hello.pid = static_cast<std::uint32_t>(pid_);
  send(encode(std::move(hello)));
  if (!pump_until([this] { return feeds_ != nullptr; }, deadline)) return no_welcome();
  if (failure_) return *failure_;
  // By the way we came: where the daemon's own path leads to here is not certain.
  const std::string path = endpoint_.substr(kIpc.size()) + std::string(kArenaSuffix);
  auto arenas = ArenaLink::open(path, link_->session, deadline);
  if (!arenas) return arenas.error();
  link_->arenas = std::move(*arenas);
  return {};
}

bool Session::pump_until(const std::function<bool()>& done, const Deadline& deadline) {
  while (true) {
    pump();
    if (done() || failure_) return true;
    if (deadline.passed()) return false;
    wait(deadline);
  }
}

/// Sends what is to be sent and takes in all that has come.
void Session::pump() {
  if (failure_) return;
  tell_news();
  if (book_.all_closed()) return fail({ErrorCode::disconnected, "bw_close ended the connection"});
  while (!failure_) {
    const auto message = link_->dealer->receive();
    if (!message) return fail(message.error());
    if (!message->has_value()) break;
    dispatch(**message);
  }
  if (!failure_ && link_->arenas && !link_->arenas->alive())
    fail(daemon_gone("closed the connection"));
}

void Session::wait(const Deadline& deadline) {
  const int daemon = link_->arenas ? link_->arenas->descriptor() : alarm_.get();
  const auto waited = link_->dealer->wait({alarm_.get(), daemon}, deadline.remaining());
  if (!waited) fail(waited.error());
  std::uint64_t calls = 0;
  static_cast<void>(!read(alarm_.get(), &calls, sizeof calls));  // it does not block
}

void Session::dispatch(const ControlMessage& message) {
  if (const auto* delivery = message.as<wire::Delivery>()) {
    deliver(*delivery);
  } else if (const auto* ended = message.as<wire::EpochEnd>()) {
    if (Lane* lane = find(ended->subscription())) {
      lane->push(EpochEnded{ended->epoch(), ended->steps(), ended->last()});
    }
  } else if (const auto* subscribed = message.as<wire::Subscribed>()) {
    Lane* lane = find(subscribed->subscription());
    if (lane == nullptr) return;
    if (auto granted = lane->granted(*subscribed); !granted) fail(granted.error());
  } else if (const auto* refusal = message.as<wire::Refused>()) {
    refused(*refusal);
  } else if (const auto* welcome = message.as<wire::Welcome>()) {
    if (auto done = welcomed(*welcome); !done) fail(done.error());
  } else if (message.as<wire::Bye>() != nullptr) {
    fail(daemon_gone("said goodbye"));
  } else {
    fail({ErrorCode::malformed_message,
          std::string("a message that no daemon sends: ") + wire::EnumNameBody(message.kind())});
  }
}

Result<void> Session::welcomed(const wire::Welcome& welcome) {
  if (feeds_) return Error{ErrorCode::malformed_message, "a second Welcome"};
  if (welcome.protocol() != kProtocolVersion) {
    return Error{ErrorCode::unsupported_version,
                 "the daemon speaks protocol " + std::to_string(welcome.protocol()) +
                     ", this client " + std::to_string(kProtocolVersion)};
  }
  if (welcome.arena_socket() == nullptr) {
    return Error{ErrorCode::unsupported, "the daemon at " + endpoint_ + " shares no memory"};
  }
  auto feeds = Feeds::from(welcome);
  if (!feeds) return feeds.error();
  feeds_ = std::move(*feeds);
  link_->session = SessionId{welcome.session()};
  return {};
}

/// A subscription that was closed meanwhile is not there any more, and the daemon takes its
/// batches back when it hears of it.
void Session::deliver(const wire::Delivery& delivery) {
  Lane* lane = find(delivery.subscription());
  if (lane == nullptr || lane->failure()) return;
  if (!lane->is_granted()) {
    return fail({ErrorCode::malformed_message, "a batch came before its Subscribed"});
  }
  lane->push(Ticket{delivery.lease(), delivery.arena(), delivery.offset(), delivery.size(),
                    delivery.epoch(), delivery.step(), delivery.index()});
}

void Session::refused(const wire::Refused& refusal) {
  // 0 would be no error.
  const auto code = static_cast<ErrorCode>(refusal.code());
  const Error error{refusal.code() != 0 ? code : ErrorCode::malformed_message,
                    refusal.message()->str()};
  if (refusal.subscription() == 0) return fail(error);
  if (Lane* lane = find(refusal.subscription())) lane->refuse(error);
}

Lane* Session::find(std::uint32_t subscription) {
  const auto found = lanes_.find(subscription);
  return found == lanes_.end() ? nullptr : found->second.get();
}

/// The first reason is the one that counts. Towards the daemon the conversation ends when the
/// last batch is released.
void Session::fail(const Error& error) {
  if (failure_) return;
  failure_ = error;
  for (const auto& [number, lane] : lanes_) lane->fail(error);
  book_.close_all();
}

void Session::end(Lane& lane, const Error& error) {
  lane.fail(error);
  book_.close(lane.number());
}

Error Session::no_welcome() const {
  const std::string path = endpoint_.substr(kIpc.size());
  const bool there = access(path.c_str(), F_OK) == 0;
  return {ErrorCode::timed_out, "no answer from " + endpoint_ + " within " +
                                    std::to_string(limit_.count()) + " ms: " +
                                    (there ? "the socket is there, but nobody answers on it"
                                           : "there is no such socket; is batchwrightd running?")};
}

Error Session::nothing_came(const Lane& lane, const Deadline& deadline) const {
  const std::size_t held = book_.held(lane.number());
  const std::uint32_t window = lane.grant().window;
  const bw_position due = lane.position();
  const std::string credits =
      held >= window ? "all " + std::to_string(window) + " credits are out: release a batch"
                     : std::to_string(held) + " of " + std::to_string(window) +
                           " credits are out; the next batch is of epoch " +
                           std::to_string(due.epoch) + ", step " + std::to_string(due.step);
  return {ErrorCode::timed_out, "no batch of feed \"" + lane.feed() + "\" within " +
                                    std::to_string(deadline.limit().count()) +
                                    " ms: the daemon at " + endpoint_ + " is alive and " + credits};
}

Error Session::daemon_gone(const std::string& how) const {
  return {ErrorCode::disconnected,
          "the daemon at " + endpoint_ + " " + how +
              "; batches that are held stay valid until they are released"};
}

}  // namespace batchwright
