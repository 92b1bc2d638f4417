#include "client/command/bench/bench_producers.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstring>
#include <exception>
#include <numeric>
#include <thread>
#include <vector>

#include "client/command/plan/real_bytes.h"
#include "client/command/watch/feeds.h"
#include "client/library/batchwright/live.hpp"

namespace batchwright {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

/// A push that finds no room for so long: no client takes anything.
constexpr std::chrono::seconds kPatience{60};
/// How often a client that waits looks whether all is pushed.
constexpr std::chrono::milliseconds kLook{100};
/// What is pushed with one answer.
constexpr std::size_t kMostSequences = 64;
constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 20;

/// Values that are the same in each sequence: the daemon looks at none of them.
class MadeUp {
 public:
  MadeUp(const bw_feed& feed, std::uint32_t length) {
    for (std::size_t i = 0; i < feed.pushed_count; ++i) {
      const bw_field& field = *feed.fields[i];
      const std::uint64_t frames = field.kind == BW_SCALAR ? 1 : length;
      const std::uint64_t frame =
          std::accumulate(field.shape, field.shape + field.ndim,
                          std::uint64_t{bw_dtype_bytes(field.dtype)}, std::multiplies<>());
      fields_.emplace_back(frames * frame);
      lengths_.push_back(frames);
      bytes_ += frames * frame;
    }
  }
  std::uint64_t bytes() const { return bytes_; }
  const std::vector<std::vector<std::byte>>& fields() const { return fields_; }
  client::Sequence sequence() const {
    client::Sequence sequence;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      sequence.add(std::span<const std::byte>(fields_[i]), lengths_[i]);
    }
    return sequence;
  }

 private:
  std::vector<std::vector<std::byte>> fields_;
  std::vector<std::uint64_t> lengths_;
  std::uint64_t bytes_ = 0;
};

/// The length that is asked for, or one that the feed takes.
Result<std::uint32_t> length_for(const BenchOptions& options, const bw_feed& feed) {
  constexpr std::uint32_t kUsual = 100;
  if (feed.live == 0) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("feed \"{}\" is not live: --producers push into a live feed", options.feed)};
  }
  if (options.length == 0) {
    return feed.max_length == 0 ? kUsual : std::min(kUsual, feed.max_length);
  }
  if (feed.max_length == 0 || options.length <= feed.max_length) return options.length;
  return Error{ErrorCode::invalid_argument,
               fmt::format("--length {}: feed \"{}\" takes at most {} frames (max_length)",
                           options.length, options.feed, feed.max_length)};
}

/// What one thread has done, for it alone until it is joined.
struct Worker {
  std::uint64_t batches = 0;
  std::uint64_t sequences = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;
  std::exception_ptr failure;
};

void push_until(Clock::time_point end, client::Producer& producer, const MadeUp& made,
                Worker& mine) {
  const std::uint64_t fit = kMostBytes / std::max<std::uint64_t>(made.bytes(), 1);
  const std::vector<client::Sequence> some(std::clamp<std::uint64_t>(fit, 1, kMostSequences),
                                           made.sequence());
  const auto start = Clock::now();
  while (Clock::now() < end) {
    const std::vector<client::Origin> origins(some.size(),
                                              client::Origin{.version = producer.info().version});
    const std::size_t accepted = producer.push_many(some, origins, kPatience);
    mine.sequences += accepted;
    if (accepted < some.size()) throw client::Error(BW_END, "the live feed has ended");
  }
  mine.bytes = mine.sequences * made.bytes();
  mine.seconds = Seconds(Clock::now() - start).count();
}

void take_until(const std::atomic<bool>& over, client::Subscription& subscription, Worker& mine) {
  while (!over) {
    try {
      const client::Event event = subscription.next(kLook);
      if (!event) return;
      if (!event.is_batch()) continue;
      ++mine.batches;
      mine.sequences += event.batch.header().sequences;
      mine.bytes += real_bytes(event.batch);
    } catch (const client::Error& error) {
      if (error.code() != BW_TIMED_OUT) throw;
    }
  }
}

/// Bytes a second of one thread that copies the sequence again and again into memory that no cache
/// holds.
double copy_rate(const MadeUp& made) {
  constexpr std::chrono::milliseconds kTime{200};
  std::vector<std::byte> room(std::max<std::uint64_t>(std::uint64_t{64} << 20, made.bytes()));
  std::size_t place = 0;
  std::uint64_t bytes = 0;
  const auto start = Clock::now();
  while (Clock::now() - start < kTime) {
    if (made.bytes() > room.size() - place) place = 0;
    for (const auto& field : made.fields()) {
      std::memcpy(room.data() + place, field.data(), field.size());
      place += field.size();
    }
    bytes += made.bytes();
  }
  return static_cast<double>(bytes) / Seconds(Clock::now() - start).count();
}

/// Producers and clients that begin together.
class Running {
 public:
  Running(const BenchOptions& options, const client::ConnectOptions& connect, const MadeUp& made)
      : options_(options),
        connect_(connect),
        made_(made),
        together_(static_cast<std::ptrdiff_t>(options.producers + options.clients)) {}

  void run(std::vector<Worker>& producers, std::vector<Worker>& clients) {
    std::vector<std::jthread> taking;
    for (Worker& mine : clients) {
      taking.emplace_back([this, &mine] { guard(mine, [&] { take(mine); }); });
    }
    std::vector<std::jthread> pushing;
    for (Worker& mine : producers) {
      pushing.emplace_back([this, &mine] { guard(mine, [&] { push(mine); }); });
    }
    pushing.clear();  // joins
    over_ = true;
    taking.clear();
    for (const auto* workers : {&producers, &clients}) {
      for (const Worker& each : *workers) {
        if (each.failure) std::rethrow_exception(each.failure);
      }
    }
  }

 private:
  template <class Work>
  void guard(Worker& mine, const Work& work) {
    try {
      work();
    } catch (...) {
      mine.failure = std::current_exception();
      // The others would wait for this one without end.
      static_cast<void>(together_.arrive_and_drop());
    }
  }
  void push(Worker& mine) {
    const client::Connection connection(options_.endpoint, connect_);
    client::Producer producer(connection, {.feed = options_.feed});
    together_.arrive_and_wait();
    const auto time = std::chrono::duration_cast<Clock::duration>(Seconds(options_.seconds));
    push_until(Clock::now() + time, producer, made_, mine);
  }
  void take(Worker& mine) {
    client::Connection connection(options_.endpoint, connect_);
    client::SubscribeOptions wanted;
    wanted.feed = options_.feed;
    wanted.window = options_.window;
    client::Subscription subscription = connection.subscribe(wanted);
    together_.arrive_and_wait();
    take_until(over_, subscription, mine);
  }

  const BenchOptions& options_;
  const client::ConnectOptions& connect_;
  const MadeUp& made_;
  std::barrier<> together_;
  std::atomic<bool> over_ = false;
};

PushedAndTaken sum_of(const std::vector<Worker>& producers, const std::vector<Worker>& clients) {
  PushedAndTaken all;
  std::uint64_t fewest = UINT64_MAX;
  for (const Worker& each : producers) {
    all.pushed += each.sequences;
    all.pushed_bytes += each.bytes;
    all.seconds = std::max(all.seconds, each.seconds);
    fewest = std::min(fewest, each.sequences);
  }
  for (const Worker& each : clients) {
    all.batches += each.batches;
    all.taken += each.sequences;
    all.taken_bytes += each.bytes;
  }
  const double mean = static_cast<double>(all.pushed) / static_cast<double>(producers.size());
  all.slowest_share = mean == 0 ? 0 : static_cast<double>(fewest) / mean;
  return all;
}

}  // namespace

Result<PushedAndTaken> run_producers(const BenchOptions& options,
                                     const client::ConnectOptions& connect) {
  if (auto room = room_for_threads(options.producers + options.clients, "bench"); !room) {
    return room.error();
  }
  const client::Connection connection(options.endpoint, connect);
  const bw_feed& feed = feed_named(connection, options.feed);
  const auto length = length_for(options, feed);
  if (!length) return length.error();
  const MadeUp made(feed, *length);
  const double before = copy_rate(made);
  std::vector<Worker> producers(options.producers);
  std::vector<Worker> clients(options.clients);
  Running(options, connect, made).run(producers, clients);
  PushedAndTaken all = sum_of(producers, clients);
  // Twice, for other work on the machine can only make it look worse.
  all.memcpy_rate = std::max(before, copy_rate(made));
  return all;
}

}  // namespace batchwright
