// How long a ticket takes, for tests/bench/delivery: from the release of a batch, window 1, to the
// next batch in hand, and beside it a raw ping-pong of DEALER and ROUTER with messages as large.
//   bench_latency endpoint=E feed=F raw=E release_bytes=N delivery_bytes=N rounds=R [queue=1]
// In each round the feed's epoch 0, which must be in the cache, is taken once, or the queue's next
// epoch, and then as many ping-pongs. Prints both lists in nanoseconds.

#include <chrono>
#include <iostream>
#include <vector>

#include "client/library/batchwright/client.hpp"
#include "tests/bench/raw_zmq.h"
#include "tests/bench/words.h"

namespace {

using namespace batchwright;
using Clock = std::chrono::steady_clock;
using Times = std::vector<std::int64_t>;

constexpr std::chrono::seconds kPatience{60};

std::int64_t nanoseconds_since(Clock::time_point start) {
  return std::chrono::nanoseconds(Clock::now() - start).count();
}

/// The first batch is left out: it comes with the subscription.
void take_epoch(client::Connection& connection, const bench::Words& words, Times& times) {
  client::SubscribeOptions options{.feed = words.text("feed"), .window = 1, .epochs = 1};
  if (words.number("queue", 0) != 0) options.mode = BW_QUEUE;
  client::Subscription subscription = connection.subscribe(options);
  client::Event event = subscription.next(kPatience);
  while (event.is_batch()) {
    const auto start = Clock::now();
    event.batch.release();
    event = subscription.next(kPatience);
    if (event.is_batch()) times.push_back(nanoseconds_since(start));
  }
}

void ping_pong(zmq::socket_t& socket, std::size_t bytes, std::size_t count, Times& times) {
  const std::vector<char> ask(bytes);
  zmq::message_t answer;
  for (std::size_t i = 0; i < count; ++i) {
    const auto start = Clock::now();
    socket.send(zmq::buffer(ask), zmq::send_flags::none);
    static_cast<void>(socket.recv(answer));
    times.push_back(nanoseconds_since(start));
  }
}

void answer_for_ever(zmq::socket_t& socket, std::size_t bytes) {
  const std::vector<char> answer(bytes);
  zmq::message_t name;
  zmq::message_t ask;
  while (true) {
    static_cast<void>(socket.recv(name));
    static_cast<void>(socket.recv(ask));
    socket.send(name, zmq::send_flags::sndmore);
    socket.send(zmq::buffer(answer), zmq::send_flags::none);
  }
}

void print(const char* name, const Times& times) {
  std::cout << '"' << name << "\":[";
  for (std::size_t i = 0; i < times.size(); ++i) std::cout << (i == 0 ? "" : ",") << times[i];
  std::cout << ']';
}

void run(const bench::Words& words) {
  const bench::Peer peer(zmq::socket_type::router, words.text("raw"), [&](zmq::socket_t& socket) {
    answer_for_ever(socket, words.number("delivery_bytes", 0));
  });
  client::Connection connection(words.text("endpoint"));
  zmq::context_t context;
  zmq::socket_t socket(context, zmq::socket_type::dealer);
  socket.connect(words.text("raw"));
  Times tickets;
  Times raw;
  take_epoch(connection, words, tickets);  // fills the cache, and warms both sides up
  ping_pong(socket, words.number("release_bytes", 0), tickets.size(), raw);
  const std::size_t batches = tickets.size();
  tickets.clear();
  raw.clear();
  for (std::uint64_t round = 0; round < words.number("rounds", 10); ++round) {
    take_epoch(connection, words, tickets);
    ping_pong(socket, words.number("release_bytes", 0), batches, raw);
  }
  std::cout << '{';
  print("tickets", tickets);
  std::cout << ',';
  print("raw", raw);
  std::cout << "}\n";
}

}  // namespace

int main(int argc, char** argv) try {
  run(batchwright::bench::Words(argc, argv));
} catch (const std::exception& error) {
  std::cerr << "bench_latency: " << error.what() << '\n';
  return 1;
}
