// How a daemon is met, lost, and met again.
//
// An attempt is a socket of its own and a Hello on it, for a daemon that answers on a socket that
// has seen another daemon's end knows nothing of what was said before. ZeroMQ keeps the Hello until
// a daemon listens, so an attempt ends only when its connection does. All of it happens inside the
// calls that wait, bw_subscribe and bw_next, and within their limits.

#include "client/library/reach.h"
#include "client/library/session/session.h"

namespace batchwright {
namespace {

constexpr std::string_view kIpc = "ipc://";
constexpr std::string_view kTcp = "tcp://";
constexpr std::string_view kArenaSuffix = ".arena";

/// Between two attempts, so that a daemon that says goodbye at once is not asked all the time.
constexpr std::chrono::milliseconds kBetweenAttempts{50};
/// What the arena socket's answers may take in a call that has no time left.
constexpr std::chrono::milliseconds kLeastForArena{100};
/// The daemon says something every second to those without an arena.
constexpr std::chrono::milliseconds kSilence{10'000};
/// A silence counts once it has lasted for so long while a call was looking.
constexpr std::chrono::milliseconds kSecondLook{500};
constexpr std::chrono::milliseconds kNever = std::chrono::hours(24);
/// A daemon that starts makes its socket first, and opens it to its users after that.
constexpr std::chrono::milliseconds kOpensItsSocket{50};
/// Descriptors that a connection takes, those of ZeroMQ's threads included, with some to spare.
constexpr std::size_t kDescriptors = 16;

}  // namespace

Result<std::shared_ptr<Session>> Session::connect(const std::string& endpoint,
                                                  ConnectSettings settings) {
  const bool remote = endpoint.starts_with(kTcp);
  if (!remote && !endpoint.starts_with(kIpc)) {
    return Error{ErrorCode::unsupported,
                 "endpoint \"" + endpoint + "\": this client reaches ipc:// and tcp:// endpoints"};
  }
  const bool always_inline = settings.always_inline;
  auto session = std::make_shared<Session>(endpoint, std::move(settings));
  if (!session->alarm_) return Error{ErrorCode::io_error, "eventfd: no descriptor left"};
  if (remote) session->inline_reason_ = "the daemon is reached by TCP";
  if (!remote && always_inline) session->inline_reason_ = "the program asked for it";
  session->inline_ = remote || always_inline;
  if (auto greeted = session->greet(); !greeted) return greeted.error();
  return session;
}

Result<void> Session::greet() {
  const std::lock_guard lock(socket_);
  const Deadline deadline(settings_.limit);
  const auto is_up = [this] { return link_ && link_->up; };
  if (!pump_until(is_up, Deadline(std::min(settings_.limit, kOpensItsSocket)))) {
    if (const auto error = barred(endpoint_)) return *error;
  }
  if (!pump_until(is_up, deadline)) return no_welcome();
  if (failure_) return *failure_;
  return {};
}

/// What is to be done without being asked.
void Session::tend() {
  const auto now = Clock::now();
  if (away_ && now - away_->since >= settings_.reconnect) {
    return fail({ErrorCode::disconnected, away_text() + "; it is given up"});
  }
  if (!link_ && now >= next_attempt_) begin_attempt();
  if (link_ && link_->up && is_inline()) tend_silence();
}

/// A program that did not look, or could not, has heard nothing either: it looks again.
void Session::tend_silence() {
  const auto now = Clock::now();
  if (now - link_->heard < kSilence) return link_->suspected.reset();
  if (!link_->suspected) link_->suspected = now;
  if (now - *link_->suspected < kSecondLook) return;
  receive();
  if (link_ && now > link_->heard) lose("has been silent for 10 s");
}

std::chrono::milliseconds Session::until_next_chore() const {
  const auto now = Clock::now();
  auto next = now + kNever;
  if (away_) next = std::min(next, away_->since + settings_.reconnect);
  if (!link_) next = std::min(next, next_attempt_);
  if (link_ && link_->up && is_inline()) next = std::min(next, now + kSecondLook / 2);
  return std::max(std::chrono::milliseconds(0),
                  std::chrono::ceil<std::chrono::milliseconds>(next - now));
}

void Session::begin_attempt() {
  next_attempt_ = Clock::now() + kBetweenAttempts;
  if (const auto room = room_for_descriptors(kDescriptors); !room) {
    if (!was_up_) return fail(room.error());
    if (away_) away_->why = room.error().message;
    return;
  }
  auto dealer = Dealer::connect({endpoint_, settings_.keys, is_inline()});
  if (!dealer) return fail(dealer.error());
  link_.emplace();
  link_->dealer = std::move(*dealer);
  wire::HelloT hello;
  hello.protocol = kProtocolVersion;
  hello.client = settings_.program;
  hello.pid = static_cast<std::uint32_t>(pid_);
  hello.token = token_;
  hello.inline_batches = is_inline();
  send(encode(std::move(hello)));
}

/// Welcome has come: binds the arena connection, and asks for all that the program wants.
void Session::arrive(const Deadline& deadline) {
  if (!is_inline()) {
    if (!link_->shares_memory) {
      return arena_trouble({ErrorCode::io_error, "the daemon shares no memory"});
    }
    // By the way we came: where the daemon's own path leads to here is not certain.
    const std::string path = endpoint_.substr(kIpc.size()) + std::string(kArenaSuffix);
    // The first time a glance may have brought Welcome, whose end says nothing of how long to wait.
    const auto left = was_up_ ? deadline.remaining() : settings_.limit;
    const Deadline limit(std::min(settings_.limit, std::max(left, kLeastForArena)));
    auto arenas = ArenaLink::open(path, link_->session, limit);
    if (!arenas) return arena_trouble(arenas.error());
    link_->arenas = std::make_unique<Arenas>(std::move(*arenas));
  }
  link_->up = true;
  if (away_) reconnects_.fetch_add(1, std::memory_order_relaxed);
  away_.reset();
  was_up_ = true;
  for (const auto& [number, lane] : lanes_) {
    if (!book_.closed(number) && lane->wants_more()) ask_for(*lane);
  }
}

void Session::ask_for(Lane& lane) {
  wire::SubscribeT request = lane.resume();
  if (lane.is_queue()) {
    LeaseBook::Claims claims = book_.claims(lane.number());
    request.held = std::move(claims.held);
    request.released = std::move(claims.released);
  }
  send(encode(std::move(request)));
}

/// A daemon that is going, or was replaced, is lost. Memory that cannot be had is done without,
/// unless it could be had before.
void Session::arena_trouble(const Error& error) {
  const bool gone = error.code == ErrorCode::disconnected || error.code == ErrorCode::not_found ||
                    error.code == ErrorCode::timed_out;
  if (gone && (was_up_ || error.code != ErrorCode::timed_out)) return lose(error.message);
  if (error.code != ErrorCode::io_error) return fail(error);
  if (was_up_ && !(link_ && link_->up)) return lose(error.message);
  go_inline(error.message);
}

/// Bye would say that nothing is held. Where something is, the next Hello ends this session by its
/// token, and the daemon keeps the slots until the arena's connection ends with the last batch.
void Session::go_inline(const std::string& why) {
  inline_reason_ = why;
  inline_.store(true, std::memory_order_release);
  if (!book_.holds_any()) static_cast<void>(link_->dealer->send_last(encode(wire::ByeT{})));
  drop_link();
  next_attempt_ = Clock::now();
}

/// The daemon is gone: from now on it is looked for, unless the program does not want that.
void Session::lose(const std::string& how) {
  if (failure_) return;
  if (was_up_ && (settings_.reconnect.count() == 0 || book_.all_closed())) {
    return fail(daemon_gone(how));
  }
  if (was_up_) away_ = Away{away_ ? away_->since : Clock::now(), how};
  drop_link();
}

void Session::drop_link() {
  if (!link_) return;
  const bool was_up = link_->up;
  link_.reset();
  if (!was_up) return;
  book_.end_session();
  for (const auto& [number, lane] : lanes_) lane->lost();
}

}  // namespace batchwright
