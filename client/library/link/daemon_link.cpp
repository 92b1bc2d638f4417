#include "client/library/link/daemon_link.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "client/library/reach.h"

namespace batchwright {
namespace {

constexpr std::string_view kTcp = "tcp://";

/// What the arena socket's answers may take in a call that has no time left.
constexpr std::chrono::milliseconds kLeastForArena{100};
constexpr std::chrono::milliseconds kNever = std::chrono::hours(24);

/// Whether the daemon is reached by a Unix socket.
bool is_local(const std::string& endpoint) { return endpoint.starts_with(kIpc); }

/// The path of that socket.
std::string socket_path(const std::string& endpoint) { return endpoint.substr(kIpc.size()); }

/// A daemon never answers a client with the wrong keys.
std::string about_keys(bool has_keys, bool local) {
  if (has_keys) {
    return "; or the keys are wrong: the daemon's own, or it does not know public_key, or it uses "
           "no CURVE";
  }
  return local ? "" : "; or it wants CURVE keys, and none were given";
}

}  // namespace

DaemonLink::DaemonLink(std::string endpoint, ConnectSettings settings,
                       std::unique_ptr<Transport> transport)
    : endpoint_(std::move(endpoint)),
      settings_(std::move(settings)),
      pid_(getpid()),
      transport_(std::move(transport)),
      token_(transport_->draw_token()),
      lookup_(endpoint_),
      first_(settings_.limit, transport_->now()) {
  const bool remote = endpoint_.starts_with(kTcp);
  if (remote) inline_reason_ = "the daemon is reached by TCP";
  if (!remote && settings_.always_inline) inline_reason_ = "the program asked for it";
  inline_ = remote || settings_.always_inline;
}

Result<void> DaemonLink::check() const {
  if (is_local(endpoint_) || endpoint_.starts_with(kTcp)) return {};
  return Error{
      ErrorCode::unsupported,
      fmt::format("endpoint \"{}\": this client reaches ipc:// and tcp:// endpoints", endpoint_)};
}

bool DaemonLink::forked() const { return getpid() != pid_; }

Result<void> DaemonLink::tend() {
  const Time time = now();
  if (away_ && time - away_->since >= settings_.reconnect) {
    return Error{ErrorCode::disconnected, fmt::format("{}; giving up", away_text())};
  }
  // An attempt at an address that does not answer, which the name may no longer stand for.
  if (connection_ && !connection_->welcomed && lookup_.forget_stale(time)) connection_.reset();
  if (!connection_) return time >= next_attempt_ ? begin_attempt() : Result<void>();
  if (connection_->socket->cut()) connection_->cut = true;
  return {};
}

std::chrono::milliseconds DaemonLink::until_next_chore() const {
  const Time time = now();
  Time next = time + kNever;
  if (away_) next = std::min(next, away_->since + settings_.reconnect);
  if (!connection_) next = std::min(next, next_attempt_);
  if (is_up() && is_inline()) next = std::min(next, time + kSecondLook / 2);
  return std::max(std::chrono::milliseconds(0),
                  std::chrono::ceil<std::chrono::milliseconds>(next - time));
}

Result<void> DaemonLink::begin_attempt() {
  next_attempt_ = now() + kBetweenAttempts;
  const auto found = address();
  if (!found) return found.error();
  if (!found->has_value()) return {};
  auto socket = transport_->connect({**found, settings_.keys, is_inline()});
  if (!socket) {
    // A machine that is short of something may have it again before the daemon is given up.
    if (!has_met_ || socket.error().code != ErrorCode::io_error) return socket.error();
    note_obstacle(socket.error().message);
    return {};
  }
  connection_.emplace();
  connection_->socket = std::move(*socket);
  wire::HelloT hello;
  hello.protocol = kProtocolVersion;
  hello.client = settings_.program;
  hello.pid = static_cast<std::uint32_t>(pid_);
  hello.token = token_;
  hello.inline_batches = is_inline();
  hello.abilities = kAbilities.bits();
  hello.produces = settings_.produces;
  return send(encode(std::move(hello)));
}

/// The endpoint with its host's address; empty while that is not known.
Result<std::optional<std::string>> DaemonLink::address() {
  if (!lookup_.is_needed()) return std::optional(endpoint_);
  auto found = lookup_.address(now());
  if (found && !found->has_value()) note_obstacle(lookup_.trouble());
  return found;
}

/// What keeps a lost daemon from being met, where it is known.
void DaemonLink::note_obstacle(const std::string& what) {
  if (away_) away_->why = what;
}

Result<std::optional<DaemonSocket::Incoming>> DaemonLink::receive() {
  auto incoming = connection_->socket->receive();
  if (incoming && incoming->has_value()) connection_->heard = now();
  return incoming;
}

const char* DaemonLink::loss() {
  if (is_silent()) return "has been silent for 10 s";
  return connection_->cut || has_lost_arenas() ? "closed the connection" : nullptr;
}

bool DaemonLink::has_lost_arenas() const {
  return connection_->arenas && !connection_->arenas->source()->alive();
}

/// A message on its way is heard, too.
bool DaemonLink::is_silent() {
  if (!is_up() || !is_inline()) return false;
  DaemonConnection& daemon = *connection_;
  const Time time = now();
  const auto bytes = daemon.socket->bytes_received();
  if (bytes && *bytes - daemon.heard_bytes >= kLeastFlow) {
    daemon.heard_bytes = *bytes;
    daemon.heard = time;
  }
  if (time - daemon.heard < kLongestSilence) {
    daemon.suspected.reset();
    return false;
  }
  if (!daemon.suspected) daemon.suspected = time;
  return time - *daemon.suspected >= kSecondLook;
}

Result<void> DaemonLink::send(const flatbuffers::DetachedBuffer& message) {
  return connection_->socket->send(message);
}

Result<void> DaemonLink::send(const flatbuffers::DetachedBuffer& message, const Payload& frame) {
  return frame ? connection_->socket->send_with(message, frame) : send(message);
}

Result<void> DaemonLink::wait(const Deadline& deadline) {
  const auto limit = std::min(deadline.remaining(now()), until_next_chore());
  if (!connection_) return transport_->wait(nullptr, nullptr, limit);
  const Arenas* const arenas = connection_->arenas.get();
  return transport_->wait(connection_->socket.get(),
                          arenas != nullptr ? arenas->source().get() : nullptr, limit);
}

Result<void> DaemonLink::welcome(const wire::Welcome& welcome) {
  if (connection_->welcomed) return Error{ErrorCode::malformed_message, "a second Welcome"};
  if (welcome.protocol() != kProtocolVersion) {
    return Error{ErrorCode::unsupported_version,
                 fmt::format("the daemon speaks protocol {}, this client {}", welcome.protocol(),
                             kProtocolVersion)};
  }
  connection_->welcomed = true;
  connection_->session = SessionId{welcome.session()};
  connection_->abilities = Abilities(welcome.abilities()) & kAbilities;
  connection_->shares_memory = welcome.arena_socket() != nullptr;
  if (feeds_) return {};  // the program has those of the first one
  auto feeds = Feeds::from(welcome);
  if (!feeds) return feeds.error();
  feeds_ = std::move(*feeds);
  return {};
}

Result<void> DaemonLink::come_up(const Deadline& deadline) {
  if (!is_inline()) {
    if (!connection_->shares_memory) {
      return Error{ErrorCode::io_error, "the daemon shares no memory"};
    }
    // By the way we came: where the daemon's own path leads to here is not certain.
    const std::string path = socket_path(endpoint_) + std::string(kArenaSuffix);
    // The first time a short poll may have brought Welcome: its end says nothing of how long to
    // wait.
    const Time time = now();
    const auto left = (has_met_ ? deadline : first_).remaining(time);
    const Deadline limit(std::min(settings_.limit, std::max(left, kLeastForArena)), time);
    auto source = transport_->open_arenas(path, connection_->session, limit);
    if (!source) return source.error();
    connection_->arenas = std::make_unique<Arenas>(std::move(*source));
  }
  connection_->up = true;
  has_met_ = true;
  if (std::exchange(away_, std::nullopt)) reconnects_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

Result<std::shared_ptr<const Mapping>> DaemonLink::arena(ArenaNumber number,
                                                         const Deadline& deadline) {
  if (!connection_ || !connection_->arenas) {
    return Error{ErrorCode::disconnected, "the arena's connection is gone"};
  }
  if (auto mapped = connection_->arenas->find(number)) {
    connection_->asks_since.reset();
    return mapped;
  }
  const Time time = now();
  if (!connection_->asks_since) connection_->asks_since = time;
  const auto passed =
      std::chrono::floor<std::chrono::milliseconds>(time - *connection_->asks_since);
  const auto patience = std::max(settings_.limit - passed, std::chrono::milliseconds(0));
  const auto left = deadline.remaining(time);
  auto mapped = connection_->arenas->fetch(number, Deadline(std::min(left, patience), time));
  // The answer may yet come, to a later call.
  const bool late = !mapped && mapped.error().code == ErrorCode::timed_out;
  if (late && left < patience) return std::shared_ptr<const Mapping>();
  connection_->asks_since.reset();
  return mapped;
}

Result<std::shared_ptr<const Area>> DaemonLink::area(ArenaNumber number, const Deadline& deadline) {
  if (!connection_ || !connection_->arenas) {
    return Error{ErrorCode::disconnected, "the arena's connection is gone"};
  }
  return connection_->arenas->source()->fetch_area(number, deadline);
}

DaemonLink::Trouble DaemonLink::meaning_of(const Error& error) const {
  const bool late = error.code == ErrorCode::timed_out;
  const bool gone = error.code == ErrorCode::disconnected || error.code == ErrorCode::not_found;
  if (gone || (late && has_met_)) return Trouble::daemon_gone;
  if (error.code != ErrorCode::io_error) return Trouble::fatal;
  return has_met_ && !is_up() ? Trouble::daemon_gone : Trouble::no_memory;
}

bool DaemonLink::lose(const std::string& how) {
  if (has_met_) away_ = Away{away_ ? away_->since : now(), how};
  return drop_connection();
}

/// Bye would say that nothing is held. Where something is, the next Hello ends this session by its
/// token, and the daemon keeps the slots until the arena's connection ends with the last batch.
bool DaemonLink::go_inline(const std::string& why, bool holds_batches) {
  inline_reason_ = why;
  inline_.store(true, std::memory_order_release);
  if (!holds_batches) static_cast<void>(connection_->socket->send_last(encode(wire::ByeT{})));
  next_attempt_ = now();
  return drop_connection();
}

void DaemonLink::say_goodbye() {
  if (is_up() && !has_lost_arenas()) {
    static_cast<void>(connection_->socket->send_last(encode(wire::ByeT{})));
  }
  connection_.reset();
}

bool DaemonLink::drop_connection() {
  const bool was_up = is_up();
  connection_.reset();
  return was_up;
}

Error DaemonLink::no_welcome() const {
  if (const auto error = diagnose_endpoint(endpoint_)) return *error;
  if (const std::string unknown = lookup_.trouble(); !unknown.empty()) {
    return {ErrorCode::timed_out, fmt::format("no answer from {} within {} ms: {}", endpoint_,
                                              settings_.limit.count(), unknown)};
  }
  std::string why = "no daemon is there, or none answers";
  const bool local = is_local(endpoint_);
  if (local) {
    const std::string path = socket_path(endpoint_);
    why = access(path.c_str(), F_OK) == 0 ? "the socket is there, but no daemon answers on it"
                                          : "there is no such socket; is batchwrightd running?";
  }
  return {ErrorCode::timed_out,
          fmt::format("no answer from {} within {} ms: {}{}", endpoint_, settings_.limit.count(),
                      why, about_keys(settings_.keys.has_value(), local))};
}

std::string DaemonLink::away_text() const {
  const auto error = diagnose_endpoint(endpoint_);
  const auto gone = std::chrono::duration_cast<std::chrono::seconds>(now() - away_->since);
  return fmt::format("the daemon at {} has been gone for {} s ({}){}", endpoint_, gone.count(),
                     away_->why, error ? "; " + error->message : "");
}

Error DaemonLink::gone(const std::string& how) const {
  return {
      ErrorCode::disconnected,
      fmt::format("the daemon at {} {}; batches that are held stay valid until they are released",
                  endpoint_, how)};
}

}  // namespace batchwright
