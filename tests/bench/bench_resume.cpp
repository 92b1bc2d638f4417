// How long it takes to go on somewhere else, for tests/bench/delivery:
//   bench_resume endpoint=E feed=F rounds=R
// In each round a new client connects, subscribes at a step of an epoch that no client asked for
// before, and takes the batch there. Prints the seconds of each round.

#include <chrono>
#include <iostream>
#include <random>

#include "client/library/batchwright/client.hpp"
#include "tests/bench/words.h"

namespace {

using namespace batchwright;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{120};

client::SubscribeOptions at(const bench::Words& words, std::uint64_t epoch, std::uint64_t step) {
  return {.feed = words.text("feed"), .epoch = epoch, .step = step};
}

double seconds_to_batch(const bench::Words& words, std::uint64_t epoch, std::uint64_t step) {
  const auto start = Clock::now();
  client::Connection connection(words.text("endpoint"), {.limit = kPatience});
  client::Subscription subscription = connection.subscribe(at(words, epoch, step));
  const client::Event event = subscription.next(kPatience);
  const double taken = std::chrono::duration<double>(Clock::now() - start).count();
  if (!event.is_batch() || event.batch.header().epoch != epoch ||
      event.batch.header().step != step) {
    throw std::runtime_error("another batch than was asked for");
  }
  return taken;
}

void run(const bench::Words& words) {
  client::Connection connection(words.text("endpoint"), {.limit = kPatience});
  const std::uint64_t steps = connection.subscribe(at(words, 0, 0)).grant().steps;
  std::mt19937_64 random(1);
  std::cout << "{\"seconds\":[";
  for (std::uint64_t round = 0; round < words.number("rounds", 10); ++round) {
    // Far apart, and never one that could have been planned ahead for the round before. The steps
    // of epochs may differ by a few.
    const double taken = seconds_to_batch(words, 10 * round + 5, random() % (steps - steps / 100));
    std::cout << (round == 0 ? "" : ",") << taken;
  }
  std::cout << "]}\n";
}

}  // namespace

int main(int argc, char** argv) try {
  run(batchwright::bench::Words(argc, argv));
} catch (const std::exception& error) {
  std::cerr << "bench_resume: " << error.what() << '\n';
  return 1;
}
