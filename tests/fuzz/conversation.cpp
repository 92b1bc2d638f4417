// A client that says what it likes to a running daemon: messages in any order with any figures,
// frames of any bytes, and the same on the arena socket. Whatever it does, the daemon must answer
// the next Hello.

#include <pthread.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <vector>

#include "tests/delivery/raw_client.h"
#include "tests/delivery/test_server.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/seeds/messages.h"

using namespace batchwright;
using namespace batchwright::fuzz;

namespace {

/// A peer that has sent so many malformed messages is no longer answered.
constexpr int kMostMalformed = 2;

FeedSettings small_feed() {
  FeedSettings settings = test::sorted_feed(5, 2);
  settings.slots = 4;
  return settings;
}

class Conversation {
 public:
  Conversation(test::TestServer& server, Choices input)
      : server_(server), client_(server.endpoint()), input_(input) {
    client_.join(server.arena_socket());
  }

  void hold() {
    while (!input_.empty() && ++said_ < 64) say(input_.byte());
    wire::HelloT hello;
    hello.protocol = kProtocolVersion;
    client_.send(std::move(hello));
    ++welcomes_due_;
    // Answers come in order; a Hello of raw bytes gives one more, and then this ends early.
    while (welcomes_due_ > 0) {
      const auto answer = client_.receive();
      require(answer.has_value(), "the daemon answers");
      if (answer->as<wire::Welcome>() != nullptr) --welcomes_due_;
    }
    client_.send(wire::ByeT{});
  }

 private:
  void say(std::uint8_t what) {
    switch (what % 16) {
      case 13: return malformed(input_.take(input_.byte()));
      case 14: return damaged();
      case 15: return at_arena_socket();
      default: return say_one_of(kinds_.at(what % 16 % kinds_.size()));
    }
  }

  void say_one_of(wire::Body kind) {
    const wire::MessageT message = make_message(kind, input_);
    const auto* hello = message.body.AsHello();
    if (hello != nullptr && hello->protocol == kProtocolVersion) ++welcomes_due_;
    client_.send_bytes(bytes_of(encode(message)));
    // Otherwise it gets no second batch before it has released the first.
    if (const auto* subscribe = message.body.AsSubscribe()) {
      client_.say_waiting(subscribe->subscription);
    }
  }

  static std::vector<wire::Body> kinds_of_clients() {
    std::vector<wire::Body> kinds;
    for (const MessageKind& kind : message_kinds()) {
      if (sends(Sender::client, kind)) kinds.push_back(kind.body);
    }
    return kinds;
  }

  static std::span<const std::byte> bytes_of(const flatbuffers::DetachedBuffer& message) {
    return {reinterpret_cast<const std::byte*>(message.data()), message.size()};
  }

  void malformed(std::span<const std::byte> frame) {
    if (++malformed_ <= kMostMalformed) client_.send_bytes(frame);
  }

  /// A sound message, some bytes of which are others.
  void damaged() {
    const auto message = encode(make_message(wire::Body::Subscribe, input_));
    const auto sound = bytes_of(message);
    std::vector<std::byte> bytes(sound.begin(), sound.end());
    for (int changes = input_.byte() % 4; changes >= 0; --changes) {
      bytes[input_.number<std::uint16_t>() % bytes.size()] = std::byte{input_.byte()};
    }
    malformed(bytes);
  }

  /// A second connection: a request of any kind, whole or cut short.
  void at_arena_socket() {
    const int connection = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = server_.arena_socket();
    std::memcpy(address.sun_path, path.data(), path.size());
    if (::connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
      ArenaRequest request;
      request.arena = small_or_any<std::uint32_t>();
      request.session = input_.byte() % 2 == 0 ? client_.session() : input_.number<std::uint64_t>();
      if (input_.byte() % 4 == 0) request.magic = input_.number<std::uint32_t>();
      const std::size_t bytes = input_.byte() % (sizeof request + 1);
      static_cast<void>(::send(connection, &request, bytes == 0 ? sizeof request : bytes,
                               MSG_NOSIGNAL | MSG_DONTWAIT));
    }
    ::close(connection);
  }

  template <class Number>
  Number small_or_any() {
    const std::uint8_t choice = input_.byte();
    return choice < 250 ? static_cast<Number>(choice % 8) : input_.number<Number>();
  }

  test::TestServer& server_;
  test::RawClient client_;
  Choices input_;
  const std::vector<wire::Body> kinds_ = kinds_of_clients();
  int said_ = 0;
  int malformed_ = 0;
  int welcomes_due_ = 0;
};

/// libFuzzer's clock ticks by SIGALRM, which would end a wait for a message. Threads inherit that.
test::TestServer& the_server() {
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
  spdlog::set_level(spdlog::level::off);
  static test::TestServer server(small_feed());
  return server;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Conversation(the_server(), Choices(data, size)).hold();
  return 0;
}
