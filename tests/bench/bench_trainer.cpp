// A trainer that only takes batches, for tests/bench/delivery:
//   bench_trainer endpoint=E feed=F [epochs=N] [seconds=S] [step_us=U] [window=W] [inline=1]
//                 [server_key=K public_key=K secret_key=K]
// It says "ready" once it is subscribed, begins at a line on standard input, and takes batches for
// so many epochs or seconds, with a pause of U microseconds after each, as if it trained. Then it
// prints an object: `wrong` counts batches and ends of epochs that are not at their place, `ticks`
// the batches of each tenth of a second, the first of which is number `first_tick` since the
// machine's start.

#include <chrono>
#include <iostream>
#include <thread>
#include <vector>

#include "client/library/batchwright/client.hpp"
#include "tests/bench/words.h"

namespace {

using namespace batchwright;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{120};
constexpr std::chrono::milliseconds kTick{100};

/// What came, and whether it was what had to come.
class Account {
 public:
  explicit Account(const bw_grant& grant) : steps_(grant.steps), world_(grant.world) {}

  void add(const client::Batch& batch) {
    const bw_batch_header& header = batch.header();
    wrong_ += header.epoch != epoch_ || header.index != next_++ ? 1 : 0;
    ++batches_;
    bytes_ += header.bytes;
    ++tick_of(Clock::now());
  }
  void end_epoch(std::uint64_t epoch) {
    wrong_ += epoch != epoch_++ || next_ != steps_ * world_ ? 1 : 0;
    next_ = 0;
  }
  void print(Clock::duration taken) const {
    std::cout << "{\"batches\":" << batches_ << ",\"bytes\":" << bytes_ << ",\"wrong\":" << wrong_
              << ",\"seconds\":" << std::chrono::duration<double>(taken).count()
              << ",\"first_tick\":" << first_tick_ << ",\"ticks\":[";
    for (std::size_t i = 0; i < ticks_.size(); ++i) std::cout << (i == 0 ? "" : ",") << ticks_[i];
    std::cout << "]}" << std::endl;
  }

 private:
  std::uint64_t& tick_of(Clock::time_point now) {
    const auto place = static_cast<std::size_t>(now.time_since_epoch() / kTick - first_tick_);
    if (place >= ticks_.size()) ticks_.resize(place + 1);
    return ticks_[place];
  }

  std::uint64_t steps_;
  std::uint64_t world_;
  std::uint64_t epoch_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t batches_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t wrong_ = 0;
  std::int64_t first_tick_ = Clock::now().time_since_epoch() / kTick;
  std::vector<std::uint64_t> ticks_;
};

void take(client::Subscription& subscription, const bench::Words& words, Account& account) {
  const auto end = Clock::now() + std::chrono::seconds(words.number("seconds", 86'400));
  const std::chrono::microseconds step(words.number("step_us", 0));
  while (Clock::now() < end) {
    const client::Event event = subscription.next(kPatience);
    if (!event) return;
    if (event.is_batch()) {
      account.add(event.batch);
      if (step.count() > 0) std::this_thread::sleep_for(step);
    } else {
      account.end_epoch(event.epoch);
    }
  }
}

void run(const bench::Words& words) {
  client::ConnectOptions options;
  options.limit = kPatience;
  options.inline_batches = words.has("inline");
  if (words.has("server_key")) {
    options.server_key = words.text("server_key");
    options.public_key = words.text("public_key");
    options.secret_key = words.text("secret_key");
  }
  client::Connection connection(words.text("endpoint"), options);
  client::Subscription subscription =
      connection.subscribe({.feed = words.text("feed"),
                            .window = static_cast<std::uint32_t>(words.number("window", 4)),
                            .epochs = words.number("epochs", 0)});
  std::cout << "ready" << std::endl;
  std::string go;
  std::getline(std::cin, go);
  Account account(subscription.grant());
  const auto start = Clock::now();
  take(subscription, words, account);
  account.print(Clock::now() - start);
}

}  // namespace

int main(int argc, char** argv) try {
  run(batchwright::bench::Words(argc, argv));
} catch (const std::exception& error) {
  std::cerr << "bench_trainer: " << error.what() << '\n';
  return 1;
}
