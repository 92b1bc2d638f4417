// What a bare ROUTER takes, for tests/bench/run: processor time for a message in and one out, its
// ZeroMQ thread included, while it answers as many peers as a daemon would.
//   bench_router endpoint=E release_bytes=N delivery_bytes=N clients=N rounds=R
// In each round a message goes out to each peer, and one comes back from each: nothing is joined,
// planned, or looked up. Prints microseconds.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <iostream>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/bench/raw_zmq.h"
#include "tests/bench/words.h"

namespace {

using namespace batchwright;

/// RepeatingTimer before the measurement.
constexpr std::uint64_t kWarmUp = 100;
/// A router that sends nothing for so long is given up.
constexpr std::chrono::milliseconds kPatience{60'000};

/// Begins when all peers have said a first word.
void deliver_for_ever(zmq::socket_t& socket, std::size_t bytes, std::size_t clients) {
  const std::vector<char> delivery(bytes);
  zmq::message_t name;
  zmq::message_t release;
  std::vector<std::string> peers;
  while (peers.size() < clients) {
    static_cast<void>(socket.recv(name));
    static_cast<void>(socket.recv(release));
    peers.push_back(name.to_string());
  }
  while (true) {
    for (const std::string& peer : peers) {
      socket.send(zmq::buffer(peer), zmq::send_flags::sndmore);
      socket.send(zmq::buffer(delivery), zmq::send_flags::none);
    }
    for (std::size_t i = 0; i < clients; ++i) {
      static_cast<void>(socket.recv(name));
      static_cast<void>(socket.recv(release));
    }
  }
}

/// What all peers have taken together, and how many have come how far. Only the last to come wakes
/// anyone: the measurement takes no time of theirs.
struct Progress {
  explicit Progress(std::ptrdiff_t clients) : warm(clients), done(clients) {}

  std::atomic<std::uint64_t> taken = 0;
  std::latch warm;
  std::latch done;
};

/// With threads of its own, as a client's connection has them.
void take_rounds(const std::string& endpoint, std::size_t release_bytes, Progress& progress,
                 std::uint64_t rounds) {
  const std::vector<char> release(release_bytes);
  zmq::context_t context;
  zmq::socket_t socket(context, zmq::socket_type::dealer);
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::rcvtimeo, static_cast<int>(kPatience.count()));
  socket.connect(endpoint);
  zmq::message_t delivery;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    socket.send(zmq::buffer(release), zmq::send_flags::none);
    if (!socket.recv(delivery)) throw std::runtime_error("the router sends nothing");
    ++progress.taken;
    if (round + 1 == kWarmUp) progress.warm.count_down();
  }
  progress.done.count_down();
}

void run(const bench::Words& words) {
  const std::string endpoint = words.text("endpoint");
  const std::size_t clients = words.number("clients", 1);
  const std::uint64_t rounds = words.number("rounds", 1000);
  const bench::Peer router(zmq::socket_type::router, endpoint, [&](zmq::socket_t& socket) {
    deliver_for_ever(socket, words.number("delivery_bytes", 0), clients);
  });
  Progress progress(static_cast<std::ptrdiff_t>(clients));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < clients; ++i) {
    threads.emplace_back([&] {
      take_rounds(endpoint, words.number("release_bytes", 0), progress, kWarmUp + rounds);
    });
  }
  progress.warm.wait();
  const std::uint64_t before = progress.taken;
  const double began = router.cpu_seconds();
  progress.done.wait();
  const double seconds = router.cpu_seconds() - began;
  std::cout << 1e6 * seconds / static_cast<double>(progress.taken - before) << '\n';
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int argc, char** argv) try {
  run(batchwright::bench::Words(argc, argv));
} catch (const std::exception& error) {
  std::cerr << "bench_router: " << error.what() << '\n';
  return 1;
}
