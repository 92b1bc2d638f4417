#include "client/library/link/contact.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <system_error>
#include <utility>

#include "client/library/reach.h"

namespace batchwright {
namespace {

constexpr std::string_view kTcp = "tcp://";

/// What the arena socket's answers may take in a call that has no time left.
constexpr std::chrono::milliseconds kLeastForArena{100};
constexpr std::chrono::milliseconds kNever = std::chrono::hours(24);
/// Descriptors that a connection takes, those of ZeroMQ's threads included, with some to spare.
constexpr std::size_t kDescriptors = 16;
constexpr std::size_t kThreads = 2;  // of ZeroMQ

/// Not by std::random_device: a library that holds the C++ library would need glibc 2.36 for it.
std::uint64_t random_token() {
  std::uint64_t token = 0;
  if (::getentropy(&token, sizeof token) != 0) {
    throw std::system_error(errno, std::generic_category(), "getentropy");
  }
  return token | 1;  // 0 would be none
}

}  // namespace

Contact::Contact(std::string endpoint, ConnectSettings settings)
    : endpoint_(std::move(endpoint)),
      settings_(std::move(settings)),
      pid_(getpid()),
      token_(random_token()),
      alarm_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      search_(settings_.reconnect),
      lookup_(endpoint_),
      first_(settings_.limit) {
  const bool remote = endpoint_.starts_with(kTcp);
  if (remote) inline_reason_ = "the daemon is reached by TCP";
  if (!remote && settings_.always_inline) inline_reason_ = "the program asked for it";
  inline_ = remote || settings_.always_inline;
}

Result<void> Contact::check() const {
  if (!is_local() && !endpoint_.starts_with(kTcp)) {
    return Error{
        ErrorCode::unsupported,
        fmt::format("endpoint \"{}\": this client reaches ipc:// and tcp:// endpoints", endpoint_)};
  }
  if (!alarm_) return Error{ErrorCode::io_error, "eventfd: no descriptor left"};
  return {};
}

bool Contact::forked() const { return getpid() != pid_; }

bool Contact::is_local() const { return endpoint_.starts_with(kIpc); }

std::string Contact::socket_path() const { return endpoint_.substr(kIpc.size()); }

Result<void> Contact::tend() {
  const auto now = Clock::now();
  if (search_.is_given_up(now)) {
    return Error{ErrorCode::disconnected, fmt::format("{}; it is given up", away_text())};
  }
  // An attempt at an address that nobody answers at, which the name may no longer stand for.
  const bool greets = link_ && !link_->welcomed;
  if (greets && lookup_.forget_stale(now)) link_.reset();
  if (!link_ && search_.attempt_is_due(now)) return begin_attempt();
  return {};
}

bool Contact::is_silent() {
  if (!is_up() || !is_inline()) return false;
  const auto now = Clock::now();
  if (const auto bytes = link_->dealer->bytes_received()) link_->silence.flowed(*bytes, now);
  return link_->silence.is_too_long(now);
}

std::chrono::milliseconds Contact::until_next_chore() const {
  const auto now = Clock::now();
  auto next = search_.next_change(!link_, now + kNever);
  if (is_up() && is_inline()) next = std::min(next, now + Silence::kSecondLook / 2);
  return std::max(std::chrono::milliseconds(0),
                  std::chrono::ceil<std::chrono::milliseconds>(next - now));
}

Result<void> Contact::begin_attempt() {
  search_.attempted(Clock::now());
  auto room = room_for_descriptors(kDescriptors);
  if (room) room = room_for_threads(kThreads, "a connection");
  if (!room) {
    if (!search_.has_met()) return room;
    search_.note_obstacle(room.error().message);
    return {};
  }
  std::string address = endpoint_;
  if (lookup_.is_needed()) {
    auto found = lookup_.address(Clock::now());
    if (!found) return found.error();
    if (!found->has_value()) {
      search_.note_obstacle(lookup_.trouble());
      return {};
    }
    address = **found;
  }
  auto dealer = Dealer::connect({address, settings_.keys, is_inline()});
  if (!dealer) return dealer.error();
  link_.emplace();
  link_->dealer = std::move(*dealer);
  wire::HelloT hello;
  hello.protocol = kProtocolVersion;
  hello.client = settings_.program;
  hello.pid = static_cast<std::uint32_t>(pid_);
  hello.token = token_;
  hello.inline_batches = is_inline();
  hello.abilities = kAbilities.bits();
  return send(encode(std::move(hello)));
}

Result<std::optional<Dealer::Incoming>> Contact::receive() {
  auto incoming = link_->dealer->receive();
  if (incoming && incoming->has_value()) link_->silence.heard(Clock::now());
  return incoming;
}

Result<void> Contact::send(const flatbuffers::DetachedBuffer& message) {
  return link_->dealer->send(message);
}

Result<void> Contact::wait(const Deadline& deadline) {
  const auto limit = std::min(deadline.remaining(), until_next_chore());
  Result<void> waited;
  if (link_) {
    const int daemon = link_->arenas ? link_->arenas->descriptor() : alarm_.get();
    waited = link_->dealer->wait({alarm_.get(), daemon}, limit);
  } else {
    pollfd alarm{alarm_.get(), POLLIN, 0};
    static_cast<void>(
        poll(&alarm, 1, static_cast<int>(std::min<std::int64_t>(limit.count(), INT_MAX))));
  }
  std::uint64_t calls = 0;
  static_cast<void>(!read(alarm_.get(), &calls, sizeof calls));  // it does not block
  return waited;
}

void Contact::wake() const {
  const std::uint64_t one = 1;
  static_cast<void>(!write(alarm_.get(), &one, sizeof one));  // full is as good
}

Result<void> Contact::welcome(const wire::Welcome& welcome) {
  if (link_->welcomed) return Error{ErrorCode::malformed_message, "a second Welcome"};
  if (welcome.protocol() != kProtocolVersion) {
    return Error{ErrorCode::unsupported_version,
                 fmt::format("the daemon speaks protocol {}, this client {}", welcome.protocol(),
                             kProtocolVersion)};
  }
  link_->welcomed = true;
  link_->session = SessionId{welcome.session()};
  link_->abilities = Abilities(welcome.abilities()) & kAbilities;
  link_->shares_memory = welcome.arena_socket() != nullptr;
  if (feeds_) return {};  // the program has those of the first one
  auto feeds = Feeds::from(welcome);
  if (!feeds) return feeds.error();
  feeds_ = std::move(*feeds);
  return {};
}

Result<void> Contact::open_arenas(const Deadline& deadline) {
  if (is_inline()) return {};
  if (!link_->shares_memory) {
    return Error{ErrorCode::io_error, "the daemon shares no memory"};
  }
  // By the way we came: where the daemon's own path leads to here is not certain.
  const std::string path = socket_path() + std::string(kArenaSuffix);
  // The first time a glance may have brought Welcome, whose end says nothing of how long to wait.
  const auto left = search_.has_met() ? deadline.remaining() : first_.remaining();
  const Deadline limit(std::min(settings_.limit, std::max(left, kLeastForArena)));
  auto arenas = ArenaLink::open(path, link_->session, limit);
  if (!arenas) return arenas.error();
  link_->arenas = std::make_unique<Arenas>(std::move(*arenas));
  return {};
}

void Contact::come_up() {
  link_->up = true;
  if (search_.met()) reconnects_.fetch_add(1, std::memory_order_relaxed);
}

Result<std::shared_ptr<const Mapping>> Contact::arena(ArenaNumber number,
                                                      const Deadline& deadline) {
  if (!link_ || !link_->arenas) {
    return Error{ErrorCode::disconnected, "the arena's connection is gone"};
  }
  const auto now = Clock::now();
  if (!link_->asks_since) link_->asks_since = now;
  const auto passed = std::chrono::floor<std::chrono::milliseconds>(now - *link_->asks_since);
  const auto patience = std::max(settings_.limit - passed, std::chrono::milliseconds(0));
  const auto left = deadline.remaining();
  auto mapped = link_->arenas->at(number, Deadline(std::min(left, patience)));
  // The answer may yet come, to a later call.
  const bool late = !mapped && mapped.error().code == ErrorCode::timed_out;
  if (late && left < patience) return std::shared_ptr<const Mapping>();
  link_->asks_since.reset();
  return mapped;
}

Contact::Trouble Contact::meaning_of(const Error& error) const {
  const bool late = error.code == ErrorCode::timed_out;
  const bool gone = error.code == ErrorCode::disconnected || error.code == ErrorCode::not_found;
  if (gone || (late && search_.has_met())) return Trouble::daemon_gone;
  if (error.code != ErrorCode::io_error) return Trouble::fatal;
  return search_.has_met() && !is_up() ? Trouble::daemon_gone : Trouble::no_memory;
}

bool Contact::lose(const std::string& how) {
  search_.lost(how, Clock::now());
  return drop_link();
}

/// Bye would say that nothing is held. Where something is, the next Hello ends this session by its
/// token, and the daemon keeps the slots until the arena's connection ends with the last batch.
bool Contact::go_inline(const std::string& why, bool holds_batches) {
  inline_reason_ = why;
  inline_.store(true, std::memory_order_release);
  if (!holds_batches) static_cast<void>(link_->dealer->send_last(encode(wire::ByeT{})));
  search_.hurry(Clock::now());
  return drop_link();
}

void Contact::say_goodbye() {
  if (is_up() && !lost_arenas()) {
    static_cast<void>(link_->dealer->send_last(encode(wire::ByeT{})));
  }
  link_.reset();
}

bool Contact::drop_link() {
  const bool was_up = is_up();
  link_.reset();
  return was_up;
}

Error Contact::no_welcome() const {
  if (const auto error = barred(endpoint_)) return *error;
  if (const std::string unknown = lookup_.trouble(); !unknown.empty()) {
    return {ErrorCode::timed_out, fmt::format("no answer from {} within {} ms: {}", endpoint_,
                                              settings_.limit.count(), unknown)};
  }
  std::string why = "no daemon is there, or none answers";
  if (is_local()) {
    const std::string path = socket_path();
    why = access(path.c_str(), F_OK) == 0 ? "the socket is there, but no daemon answers on it"
                                          : "there is no such socket; is batchwrightd running?";
  }
  return {ErrorCode::timed_out, fmt::format("no answer from {} within {} ms: {}{}", endpoint_,
                                            settings_.limit.count(), why, about_keys())};
}

/// A daemon never answers a client with the wrong keys.
std::string Contact::about_keys() const {
  if (settings_.keys) {
    return "; or the keys are wrong: the daemon's own, or it does not know public_key, or it uses "
           "no CURVE";
  }
  return is_local() ? "" : "; or it wants CURVE keys, and none were given";
}

std::string Contact::away_text() const {
  const auto error = barred(endpoint_);
  return fmt::format("the daemon at {} {}{}", endpoint_, search_.text(Clock::now()),
                     error ? "; " + error->message : "");
}

Error Contact::gone(const std::string& how) const {
  return {
      ErrorCode::disconnected,
      fmt::format("the daemon at {} {}; batches that are held stay valid until they are released",
                  endpoint_, how)};
}

}  // namespace batchwright
