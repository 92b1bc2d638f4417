#include "client/command/watch/event_stream.h"

#include <fmt/core.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>
#include <zmq.hpp>

#include "client/command/keys.h"
#include "client/command/watch/wait_note.h"
#include "client/library/batchwright/client.h"

namespace batchwright {
namespace {

// waiting_for() tells people of the same 10 s.
constexpr int kAnswerMilliseconds = 10'000;
// A daemon that is there answers within this; after it the library is asked why none does.
constexpr int kSoonMilliseconds = 300;
// How late an interrupt may be noticed, and how long Bye has to leave.
constexpr int kEventMilliseconds = 100;

void set_keys(zmq::socket_t& socket, const EventSource& source) {
  if (source.server_key.empty()) return;
  socket.set(zmq::sockopt::curve_serverkey, source.server_key);
  socket.set(zmq::sockopt::curve_publickey, source.own.public_key);
  socket.set(zmq::sockopt::curve_secretkey, source.own.secret_key);
}

/// A numeric address of IPv6 stands in brackets.
void connect(zmq::socket_t& socket, const std::string& endpoint) {
  // Off by default in libzmq, which then takes no such address.
  socket.set(zmq::sockopt::ipv6, endpoint.find('[') != std::string::npos);
  socket.connect(endpoint);
}

Error io_error(const EventSource& source, const zmq::error_t& error) {
  const bool is_system = error.num() < ZMQ_HAUSNUMERO;
  return {ErrorCode::io_error,
          fmt::format("{}: {}", source.endpoint,
                      is_system ? reason_with_limit(error.num()) : error.what())};
}

/// libzmq ends a process that cannot start its threads: one that reads and writes, and one that
/// closes sockets.
Result<void> room_for_zmq() { return room_for_threads(2, "listening to events"); }

Result<ControlMessage> decoded(const zmq::message_t& frame) {
  return ControlMessage::decode(bytes_of(frame.to_string_view()));
}

void send(zmq::socket_t& socket, const flatbuffers::DetachedBuffer& message) {
  socket.send(zmq::buffer(message.data(), message.size()), zmq::send_flags::none);
}

/// Puts the host by which the daemon was reached in the place of `*`.
std::string reachable(std::string events, const std::string& daemon) {
  constexpr std::string_view kEverywhere = "tcp://*:";
  if (!events.starts_with(kEverywhere) || !daemon.starts_with("tcp://")) return events;
  // A daemon that listens everywhere cannot know which of its addresses leads here.
  const std::string host = daemon.substr(0, daemon.rfind(':'));
  return host + events.substr(kEverywhere.size() - 1);
}

Result<std::string> events_in(const ControlMessage& answer, const EventSource& daemon) {
  if (const auto* refused = answer.as<wire::Refused>()) {
    return Error{ErrorCode::disconnected,
                 fmt::format("{} refuses: {}", daemon.endpoint, refused->message()->str())};
  }
  const auto* welcome = answer.as<wire::Welcome>();
  if (welcome == nullptr) {
    return Error{ErrorCode::malformed_message,
                 fmt::format("{}: no answer to Hello", daemon.endpoint)};
  }
  if (welcome->events() == nullptr || welcome->events()->size() == 0) {
    return Error{ErrorCode::not_found,
                 fmt::format("{}: this daemon publishes no events here", daemon.endpoint)};
  }
  return reachable(welcome->events()->str(), daemon.endpoint);
}

/// Waits for a daemon from which nothing came, and says why nothing does: the library knows how to
/// find out.
Result<void> await(const EventSource& daemon) {
  bw_connect_options options = BW_CONNECT_OPTIONS_INIT;
  options.timeout_ms = kAnswerMilliseconds;
  // No batch is wanted, and so no arena.
  options.inline_batches = 1;
  if (!daemon.server_key.empty()) {
    options.server_key = daemon.server_key.c_str();
    options.public_key = daemon.own.public_key.c_str();
    options.secret_key = daemon.own.secret_key.c_str();
  }
  bw_connection* connection = nullptr;
  const WaitNote note(waiting_for(daemon.endpoint));
  const bw_status status = bw_connect(daemon.endpoint.c_str(), &options, &connection);
  if (status != BW_OK) return Error{static_cast<ErrorCode>(status), bw_error_message()};
  // Only that it answers was to be known: the Hello that is under way is answered next.
  bw_close(connection);
  return {};
}

}  // namespace

Result<KeyPair> make_key_pair() {
  std::array<char, kCurveKeyText + 1> public_key{};
  std::array<char, kCurveKeyText + 1> secret_key{};
  // Files of keys have comments behind #, so no key begins with one.
  do {
    if (zmq_curve_keypair(public_key.data(), secret_key.data()) != 0) {
      return Error{ErrorCode::unsupported, "this ZeroMQ was built without CURVE"};
    }
  } while (public_key[0] == '#' || secret_key[0] == '#');
  return KeyPair{public_key.data(), secret_key.data()};
}

Result<KeyPair> pair_of(const std::string& secret_key) {
  std::array<char, kCurveKeyText + 1> public_key{};
  if (secret_key.size() != kCurveKeyText ||
      zmq_curve_public(public_key.data(), secret_key.c_str()) != 0) {
    return Error{ErrorCode::invalid_argument, "no secret key: 40 characters of Z85"};
  }
  return KeyPair{public_key.data(), secret_key};
}

Result<std::string> find_events(const EventSource& daemon) {
  if (auto room = room_for_zmq(); !room) return room.error();
  try {
    zmq::context_t context;
    zmq::socket_t socket(context, zmq::socket_type::dealer);
    socket.set(zmq::sockopt::linger, kEventMilliseconds);
    socket.set(zmq::sockopt::rcvtimeo, kSoonMilliseconds);
    set_keys(socket, daemon);
    connect(socket, daemon.endpoint);
    wire::HelloT hello;
    hello.protocol = kProtocolVersion;
    hello.client = "batchwright events";
    hello.inline_batches = true;  // it takes no batch, and so needs no arena
    send(socket, encode(std::move(hello)));
    zmq::message_t frame;
    if (!socket.recv(frame)) {
      if (auto there = await(daemon); !there) return there.error();
      socket.set(zmq::sockopt::rcvtimeo, kAnswerMilliseconds);
      if (!socket.recv(frame)) {
        return Error{ErrorCode::timed_out,
                     fmt::format("{}: no answer within 10 s", daemon.endpoint)};
      }
    }
    // Without it the session would count among max_clients until the daemon notices its end.
    send(socket, encode(wire::ByeT{}));
    const auto answer = decoded(frame);
    if (!answer) return answer.error();
    return events_in(*answer, daemon);
  } catch (const zmq::error_t& error) {
    return io_error(daemon, error);
  }
}

struct EventStream::State {
  zmq::context_t context;
  zmq::socket_t socket{context, zmq::socket_type::sub};
};

EventStream::EventStream(std::unique_ptr<State> state) : state_(std::move(state)) {}
EventStream::~EventStream() = default;

Result<std::unique_ptr<EventStream>> EventStream::open(const EventSource& source) {
  if (auto room = room_for_zmq(); !room) return room.error();
  try {
    auto state = std::make_unique<State>();
    state->socket.set(zmq::sockopt::linger, 0);
    state->socket.set(zmq::sockopt::rcvtimeo, kEventMilliseconds);
    state->socket.set(zmq::sockopt::subscribe, source.feed);
    set_keys(state->socket, source);
    connect(state->socket, source.endpoint);
    return std::unique_ptr<EventStream>(new EventStream(std::move(state)));
  } catch (const zmq::error_t& error) {
    return io_error(source, error);
  }
}

Result<std::optional<wire::EventT>> EventStream::next() {
  try {
    zmq::message_t frame;
    if (!state_->socket.recv(frame)) return std::optional<wire::EventT>();
    // The topic comes first, and the message last.
    while (frame.more()) static_cast<void>(state_->socket.recv(frame));
    const auto message = decoded(frame);
    if (!message) return message.error();
    const auto* event = message->as<wire::Event>();
    if (event == nullptr)
      return Error{ErrorCode::malformed_message, "a message that is not an event"};
    std::optional<wire::EventT> unpacked(std::in_place);
    event->UnPackTo(&*unpacked);
    return unpacked;
  } catch (const zmq::error_t& error) {
    // Interrupted: the caller looks whether it is to end.
    if (error.num() == EINTR) return std::optional<wire::EventT>();
    return Error{ErrorCode::io_error, error.what()};
  }
}

}  // namespace batchwright
