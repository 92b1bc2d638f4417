// Producers of a live feed, for tests/bench/live/run. Each of its jobs prints an object:
//   bench_live job=push endpoint=E feed=F frames=T [producers=P] [many=N] [seconds=S]
//              [sequences=N] [area=BYTES] [in_place=1]
// P producers, with a thread each, push sequences of T frames, N at a time, for so many seconds or
// until each has pushed so many. It says "ready" when all are there, and begins at a line on
// standard input. With in_place they write into the feed's memory, and else it is copied from
// theirs. `sequences` has a number for each producer, `bytes` are those of one sequence.
//   bench_live job=latency endpoint=E feed=F frames=T rounds=N
// Nanoseconds from before a push until the step that it completes is there, and those of the push.
//   bench_live job=memcpy bytes=B [megabytes=M]
// `rate`: bytes a second that memcpy makes of blocks of B bytes, out of and into M MB in turns.

#include <chrono>
#include <cstring>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "client/library/batchwright/client.hpp"
#include "client/library/batchwright/live.hpp"
#include "tests/bench/words.h"

namespace {

using namespace batchwright;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{120};

client::Connection connect(const bench::Words& words) {
  client::ConnectOptions options;
  options.limit = kPatience;
  return client::Connection(words.text("endpoint"), options);
}

const bw_feed& feed_of(const client::Connection& connection, const std::string& name) {
  for (const bw_feed* feed : connection.feeds()) {
    if (feed->name == name) return *feed;
  }
  throw std::runtime_error("no feed " + name);
}

/// A sequence of so many frames, every field of which is as long, or a scalar.
class Made {
 public:
  Made(const bw_feed& feed, std::uint32_t frames) {
    for (std::size_t i = 0; i < feed.field_count; ++i) {
      const bw_field& field = *feed.fields[i];
      const std::uint32_t length = field.kind == BW_SCALAR ? 1 : frames;
      std::size_t values = length;
      for (std::size_t d = 0; d < field.ndim; ++d) values *= field.shape[d];
      lengths.push_back(length);
      memory_.emplace_back(values * bw_dtype_bytes(field.dtype));
      bytes += memory_.back().size();
    }
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      sequence.add(std::span<const std::uint8_t>(memory_[i]), lengths[i]);
    }
  }
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;

  const std::vector<std::uint8_t>& values(std::size_t field) const { return memory_[field]; }

  std::uint64_t bytes = 0;
  std::vector<std::uint32_t> lengths;
  client::Sequence sequence;

 private:
  std::vector<std::vector<std::uint8_t>> memory_;
};

/// One that pushes, on a thread of its own.
class Pusher {
 public:
  Pusher(const client::Connection& connection, const bench::Words& words)
      : words_(words),
        made_(feed_of(connection, words.text("feed")),
              static_cast<std::uint32_t>(words.number("frames", 1))),
        producer_(connection, {.feed = words.text("feed"),
                               .area_bytes = words.number("area", std::uint64_t{1} << 26)}) {}

  void run() {
    const auto end = Clock::now() + std::chrono::seconds(words_.number("seconds", 86'400));
    const std::uint64_t wanted = words_.number("sequences", UINT64_MAX);
    const std::vector<client::Sequence> many(words_.number("many", 1), made_.sequence);
    const std::vector<client::Origin> origins(many.size());
    while (pushed < wanted && Clock::now() < end) {
      const bool whole = words_.has("in_place") ? write() : push(many, origins);
      if (!whole) return;
    }
  }
  std::uint64_t bytes() const { return made_.bytes; }

  std::uint64_t pushed = 0;

 private:
  /// False when the feed has ended.
  bool push(const std::vector<client::Sequence>& many, const std::vector<client::Origin>& origins) {
    const std::size_t accepted = producer_.push_many(many, origins, kPatience);
    pushed += accepted;
    return accepted == many.size();
  }
  bool write() {
    client::Room room = producer_.reserve(made_.lengths, kPatience);
    for (std::size_t i = 0; i < made_.lengths.size(); ++i) {
      const auto to = room.field<std::uint8_t>(i);
      std::memcpy(to.data(), made_.values(i).data(), to.size());
    }
    if (!room.commit({}, kPatience)) return false;
    ++pushed;
    return true;
  }

  const bench::Words& words_;
  Made made_;
  client::Producer producer_;
};

void push(const bench::Words& words) {
  const client::Connection connection = connect(words);
  std::vector<std::unique_ptr<Pusher>> all;
  for (std::uint64_t i = 0; i < words.number("producers", 1); ++i) {
    all.push_back(std::make_unique<Pusher>(connection, words));
  }
  std::cout << "ready" << std::endl;
  std::string go;
  std::getline(std::cin, go);
  const auto start = Clock::now();
  std::vector<std::thread> threads;
  for (const auto& each : all) threads.emplace_back([&each] { each->run(); });
  for (std::thread& each : threads) each.join();
  const std::chrono::duration<double> taken = Clock::now() - start;
  std::cout << "{\"seconds\":" << taken.count() << ",\"bytes\":" << all[0]->bytes()
            << ",\"sequences\":[";
  for (std::size_t i = 0; i < all.size(); ++i) std::cout << (i == 0 ? "" : ",") << all[i]->pushed;
  std::cout << "]}" << std::endl;
}

void print(const char* name, const std::vector<std::int64_t>& times) {
  std::cout << '"' << name << "\":[";
  for (std::size_t i = 0; i < times.size(); ++i) std::cout << (i == 0 ? "" : ",") << times[i];
  std::cout << ']';
}

void latency(const bench::Words& words) {
  client::Connection connection = connect(words);
  const Made made(feed_of(connection, words.text("feed")),
                  static_cast<std::uint32_t>(words.number("frames", 1)));
  client::Producer producer(connection, {.feed = words.text("feed")});
  client::Subscription subscription =
      connection.subscribe({.feed = words.text("feed"), .window = 1});
  std::vector<std::int64_t> pushes, arrivals;
  for (std::uint64_t i = 0; i < words.number("rounds", 1000); ++i) {
    const auto start = Clock::now();
    producer.push(made.sequence, {}, kPatience);
    const auto pushed = Clock::now();
    const client::Event event = subscription.next(kPatience);
    if (!event || !event.is_batch()) throw std::runtime_error("no batch came");
    pushes.push_back((pushed - start).count());
    arrivals.push_back((Clock::now() - start).count());
  }
  std::cout << '{';
  print("push", pushes);
  std::cout << ',';
  print("arrival", arrivals);
  std::cout << '}' << std::endl;
}

void copy(const bench::Words& words) {
  const std::size_t block = words.number("bytes", 1 << 20);
  const std::size_t all = words.number("megabytes", 256) * 1'000'000 / block * block;
  std::vector<std::uint8_t> from(all, 1), to(all, 2);
  constexpr int kTimes = 4;
  const auto start = Clock::now();
  for (int time = 0; time < kTimes; ++time) {
    for (std::size_t at = 0; at < all; at += block) {
      std::memcpy(to.data() + at, from.data() + at, block);
    }
    std::swap(from, to);
  }
  const std::chrono::duration<double> taken = Clock::now() - start;
  std::cout << "{\"rate\":" << static_cast<double>(all) * kTimes / taken.count() << '}'
            << std::endl;
}

}  // namespace

int main(int argc, char** argv) try {
  const batchwright::bench::Words words(argc, argv);
  const std::string job = words.text("job");
  if (job == "push")
    push(words);
  else if (job == "latency")
    latency(words);
  else if (job == "memcpy")
    copy(words);
  else
    throw std::runtime_error("job=" + job + "; push, latency and memcpy are allowed");
} catch (const std::exception& error) {
  std::cerr << "bench_live: " << error.what() << '\n';
  return 1;
}
