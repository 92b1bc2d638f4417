// Bytes a second of batches as messages, for tests/bench/delivery, beside a raw transfer.
//   bench_transfer endpoint=E feed=F raw=E rounds=R
// In each round the feed's epoch 0, which must be in the cache, is taken once as messages; then a
// PUSH socket in another process sends messages of the same sizes, in the same order, out of
// memory as large, without a copy. Prints bytes and seconds of both.

#include <chrono>
#include <iostream>
#include <vector>

#include "client/library/batchwright/client.hpp"
#include "tests/bench/raw_zmq.h"
#include "tests/bench/words.h"

namespace {

using namespace batchwright;
using Clock = std::chrono::steady_clock;
using Sizes = std::vector<std::size_t>;

constexpr std::chrono::seconds kPatience{60};
/// Messages that the raw sender may be ahead: as many as a subscription's window.
constexpr int kWindow = 8;

struct Rate {
  std::uint64_t bytes = 0;
  std::vector<double> seconds;  ///< Of each round.
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Measured from the first batch in hand to the last, without the subscription's beginning.
Sizes take_epoch(client::Connection& connection, const bench::Words& words, Rate& rate) {
  client::Subscription subscription =
      connection.subscribe({.feed = words.text("feed"), .window = kWindow, .epochs = 1});
  Sizes sizes;
  client::Event event = subscription.next(kPatience);
  const auto start = Clock::now();
  while (event.is_batch()) {
    sizes.push_back(event.batch.header().bytes);
    event.batch.release();
    event = subscription.next(kPatience);
  }
  rate.seconds.push_back(seconds_since(start));
  return sizes;
}

void send_for_ever(zmq::socket_t& socket, const Sizes& sizes) {
  std::size_t total = 0;
  for (const std::size_t size : sizes) total += size;
  std::vector<char> memory(total, 1);
  while (true) {
    std::size_t place = 0;
    for (const std::size_t size : sizes) {
      zmq::message_t message(
          memory.data() + place, size, [](void*, void*) {}, nullptr);
      socket.send(message, zmq::send_flags::none);
      place += size;
    }
  }
}

void receive_epoch(zmq::socket_t& socket, std::size_t messages, Rate& rate) {
  zmq::message_t message;
  static_cast<void>(socket.recv(message));
  const auto start = Clock::now();
  for (std::size_t i = 1; i < messages; ++i) static_cast<void>(socket.recv(message));
  rate.seconds.push_back(seconds_since(start));
}

void print(const char* name, const Rate& rate) {
  std::cout << '"' << name << "\":{\"bytes\":" << rate.bytes << ",\"seconds\":[";
  for (std::size_t i = 0; i < rate.seconds.size(); ++i) {
    std::cout << (i == 0 ? "" : ",") << rate.seconds[i];
  }
  std::cout << "]}";
}

/// The raw sender runs only while it is measured: it is made for each round, and waits for a
/// receiver.
void raw_round(const std::string& endpoint, const Sizes& sizes, Rate& rate) {
  const bench::Peer peer(zmq::socket_type::push, endpoint,
                         [&](zmq::socket_t& socket) { send_for_ever(socket, sizes); });
  zmq::context_t context;
  zmq::socket_t socket(context, zmq::socket_type::pull);
  socket.set(zmq::sockopt::rcvhwm, kWindow);
  socket.connect(endpoint);
  receive_epoch(socket, sizes.size(), rate);
}

void run(const bench::Words& words) {
  client::Connection connection(words.text("endpoint"), {.inline_batches = true});
  Rate warm;
  const Sizes sizes = take_epoch(connection, words, warm);
  Rate batches;
  Rate raw;
  for (std::size_t i = 1; i < sizes.size(); ++i) batches.bytes += sizes[i];
  raw.bytes = batches.bytes;
  for (std::uint64_t round = 0; round < words.number("rounds", 10); ++round) {
    take_epoch(connection, words, batches);
    raw_round(words.text("raw"), sizes, raw);
  }
  std::cout << '{';
  print("batches", batches);
  std::cout << ',';
  print("raw", raw);
  std::cout << "}\n";
}

}  // namespace

int main(int argc, char** argv) try {
  run(batchwright::bench::Words(argc, argv));
} catch (const std::exception& error) {
  std::cerr << "bench_transfer: " << error.what() << '\n';
  return 1;
}
