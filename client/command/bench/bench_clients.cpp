#include "client/command/bench/bench_clients.h"

#include <algorithm>
#include <barrier>
#include <exception>
#include <thread>

#include "client/command/plan/real_bytes.h"
#include "client/library/batchwright/client.hpp"

namespace batchwright {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

/// A daemon that sends nothing for so long is given up.
constexpr std::chrono::seconds kPatience{60};
constexpr std::size_t kPage = 4096;

/// All batches of each epoch for each client: so the daemon may hand one batch to several.
client::SubscribeOptions replica(const BenchOptions& options, std::uint64_t epoch) {
  client::SubscribeOptions wanted;
  wanted.feed = options.feed;
  wanted.window = options.window;
  wanted.epoch = epoch;
  return wanted;
}

/// Reads as much of a batch as is asked for. The result depends on every byte read, so that no
/// compiler leaves the reading out.
std::uint64_t touch(const client::Batch& batch, BenchTouch how) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < batch.tensors(); ++i) {
    const client::Tensor tensor = batch[i];
    sum += tensor.shape()[0];
    // All: every real byte, for a checksum. Page: a byte of each, which is what maps it in.
    if (how == BenchTouch::all) sum += checksum(batch, tensor);
    if (how != BenchTouch::page) continue;
    const auto bytes = tensor.bytes();
    for (std::size_t at = 0; at < bytes.size(); at += kPage) {
      sum += static_cast<std::uint64_t>(bytes[at]);
    }
  }
  return sum;
}

/// What one thread has taken, for it alone until it is joined.
struct Client {
  Taken taken;
  std::uint64_t seen = 0;
  std::exception_ptr failure;
};

void take_batches(client::Subscription& subscription, const BenchOptions& options, Client& mine) {
  const auto start = Clock::now();
  const auto end = start + std::chrono::duration_cast<Clock::duration>(Seconds(options.seconds));
  auto now = start;
  while (now < end) {
    const client::Event event = subscription.next(kPatience);
    // Before touching: what the client does with a batch is not the daemon's doing.
    mine.taken.waited_seconds += Seconds(Clock::now() - now).count();
    if (event.is_batch()) {
      mine.seen += touch(event.batch, options.touch);
      ++mine.taken.batches;
      mine.taken.sequences += event.batch.header().sequences;
      mine.taken.bytes += real_bytes(event.batch);
      mine.taken.padded_bytes += event.batch.header().bytes;
    }
    now = Clock::now();
  }
  // To the end of the last batch, which lies a little behind `end`.
  mine.taken.seconds = Seconds(now - start).count();
}

Taken sum_up(const std::vector<Client>& clients) {
  Taken all;
  for (const Client& client : clients) {
    all.batches += client.taken.batches;
    all.sequences += client.taken.sequences;
    all.bytes += client.taken.bytes;
    all.padded_bytes += client.taken.padded_bytes;
    all.waited_seconds += client.taken.waited_seconds;
    // They run side by side, so the slowest one's time is that of all.
    all.seconds = std::max(all.seconds, client.taken.seconds);
  }
  return all;
}

}  // namespace

std::vector<std::uint64_t> record_rows(const BenchOptions& options,
                                       const client::ConnectOptions& connect,
                                       std::uint64_t most_bytes, std::chrono::seconds limit) {
  client::Connection connection(options.endpoint, connect);
  client::Subscription subscription = connection.subscribe(replica(options, 0));
  std::vector<std::uint64_t> ordinals;
  std::uint64_t bytes = 0;
  const auto end = Clock::now() + limit;
  while (bytes < most_bytes && Clock::now() < end) {
    const client::Event event = subscription.next(kPatience);
    if (!event.is_batch()) break;
    const auto rows = event.batch.ordinals();
    ordinals.insert(ordinals.end(), rows.begin(), rows.end());
    bytes += real_bytes(event.batch);
  }
  return ordinals;
}

Result<Taken> run_clients(const BenchOptions& options, const client::ConnectOptions& connect,
                          std::uint64_t epoch) {
  // One that cannot be started would leave the others waiting for it.
  if (auto room = room_for_threads(options.clients, "bench"); !room) return room.error();
  std::vector<Client> clients(options.clients);
  // All subscribe before the first takes a batch: connecting is not measured.
  std::barrier together(static_cast<std::ptrdiff_t>(options.clients));
  const auto run = [&](Client& mine) {
    try {
      client::Connection connection(options.endpoint, connect);
      client::Subscription subscription = connection.subscribe(replica(options, epoch));
      together.arrive_and_wait();
      take_batches(subscription, options, mine);
    } catch (...) {
      mine.failure = std::current_exception();
      // The others would wait for this one without end.
      static_cast<void>(together.arrive_and_drop());
    }
  };
  std::vector<std::jthread> threads;
  for (Client& mine : clients) threads.emplace_back(run, std::ref(mine));
  threads.clear();  // joins
  for (const Client& client : clients) {
    if (client.failure) std::rethrow_exception(client.failure);
  }
  return sum_up(clients);
}

}  // namespace batchwright
