#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json/object.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "client/command/commands.h"
#include "client/command/exit_code.h"
#include "client/command/interrupt.h"
#include "client/command/keys.h"
#include "client/command/live/forwarded_rows.h"
#include "client/command/live/patient_producer.h"
#include "client/command/live/plan_place.h"
#include "client/command/output.h"
#include "client/command/progress.h"
#include "client/command/watch/feeds.h"
#include "client/command/watch/wait_note.h"

namespace batchwright {
namespace {

namespace json = boost::json;
using Clock = std::chrono::steady_clock;

/// A daemon that is away is looked for as long as it takes: there is nothing else to do.
constexpr std::chrono::hours kPatience{30 * 24};
/// How often a wait looks up, for Ctrl-C; and when it is told.
constexpr std::chrono::milliseconds kSlice{500};
constexpr std::chrono::seconds kTold{5};
/// Between two looks whether a feed is served.
constexpr std::chrono::milliseconds kBetweenLooks{500};
/// Sequences of one claim, as long as the feed can grant so many.
constexpr std::uint32_t kClaimed = 16;

using Outcome = PatientProducer::Outcome;

/// What came of it.
struct Forwarded {
  Outcome outcome = Outcome::done;
  std::string name;
  std::uint64_t first = 0;  ///< Number of the first sequence of this call,
  std::uint64_t sequences = 0;
  std::uint64_t bytes = 0;
  std::uint64_t epochs = 0;  ///< that ended in this call.
  std::uint64_t lost = 0;    ///< Rows whose records are corrupt.
  bool was_forgotten = false;
  double seconds = 0;
};

/// Carries the rows of one subscription into a producer.
class Forwarder {
 public:
  Forwarder(PatientProducer& producer, const bw_feed& from, const Interrupt& interrupt)
      : producer_(&producer), interrupt_(&interrupt), rows_(from, producer.feed()) {}

  Outcome run(client::Subscription& subscription, std::uint64_t skipped, Forwarded& done) {
    while (true) {
      const auto event = next_event(subscription);
      if (!event) return Outcome::interrupted;
      if (!*event) return Outcome::done;  // the epochs are over
      if (!event->is_batch()) {
        ++done.epochs;
        continue;
      }
      const std::uint64_t left_out = std::min<std::uint64_t>(
          skipped, event->batch.header().sequences + event->batch.header().rows_lost);
      skipped -= left_out;
      const Outcome outcome = forward(event->batch, left_out, done);
      if (outcome != Outcome::done) return outcome;
      show(subscription, event->batch.header(), done);
    }
  }

 private:
  /// The next event; empty when the user has had enough.
  std::optional<client::Event> next_event(client::Subscription& subscription) {
    const auto start = Clock::now();
    bool is_told = false;
    while (!interrupt_->came()) {
      try {
        return subscription.next(kSlice);
      } catch (const client::Error& error) {
        if (error.code() != BW_TIMED_OUT) throw;
        if (is_told || Clock::now() - start < kTold) continue;
        is_told = true;
        warn(error.what());
      }
    }
    return std::nullopt;
  }

  Outcome forward(const client::Batch& batch, std::uint64_t first, Forwarded& done) {
    rows_.take(batch);
    done.lost += batch.header().rows_lost;
    for (std::size_t row = first; row < rows_.size();) {
      const std::size_t end = std::min<std::size_t>(row + claimed_, rows_.size());
      std::uint64_t version = 0;
      const auto granted = claim(static_cast<std::uint32_t>(end - row), version);
      if (!granted) continue;  // fewer at once
      if (*granted != Outcome::done) return *granted;
      const std::uint64_t before = producer_->accepted();
      const Outcome outcome = push(row, end, version);
      done.sequences += producer_->accepted() - before;
      for (; row < end; ++row) done.bytes += rows_.bytes(row);
      if (outcome != Outcome::done) return outcome;
    }
    return Outcome::done;
  }

  /// Empty where the feed can never grant so many; the next claim is of fewer.
  std::optional<Outcome> claim(std::uint32_t count, std::uint64_t& version) {
    try {
      return producer_->claim(count, version);
    } catch (const client::Error& error) {
      if (error.code() != BW_DOES_NOT_FIT || count == 1) throw;
      claimed_ = count / 2;
      return std::nullopt;
    }
  }

  Outcome push(std::size_t row, std::size_t end, std::uint64_t version) {
    std::vector<bw_sequence> sequences;
    std::vector<bw_origin> origins;
    for (; row < end; ++row) {
      sequences.push_back(rows_.sequence(row));
      bw_origin& origin = origins.emplace_back();
      origin = BW_ORIGIN_INIT;
      origin.version = version;
      origin.weight = rows_.weight(row);
      origin.epoch = rows_.epoch();
    }
    return producer_->push({sequences, origins});
  }

  void show(const client::Subscription& subscription, const bw_batch_header& header,
            const Forwarded& done) {
    const auto now = Clock::now();
    if (!progress_ || shown_epoch_ != header.epoch) {
      progress_.reset();
      progress_.emplace(stderr, now);
      shown_epoch_ = header.epoch;
    }
    const std::uint64_t steps = subscription.steps();
    if (!progress_->due(now, header.step + 1, steps)) return;
    progress_->print(now, header.step + 1, steps,
                     fmt::format("of epoch {}  {} sequences, {:.1f} MB", header.epoch,
                                 done.sequences, static_cast<double>(done.bytes) / 1e6));
  }

  PatientProducer* producer_;
  const Interrupt* interrupt_;
  ForwardedRows rows_;
  std::uint32_t claimed_ = kClaimed;
  std::optional<ProgressLine> progress_;
  std::uint64_t shown_epoch_ = 0;
};

/// FEED@HOST:PORT of tcp://, FEED@HOST/PATH of ipc://, whose paths are the same on each host.
Result<std::string> name_of(const ForwardOptions& options) {
  constexpr std::size_t kMost = 64;
  std::string name = options.name;
  if (name.empty()) {
    const std::string place = options.from.substr(std::string_view("tcp://").size());
    std::array<char, 256> host{};
    if (options.from.starts_with("ipc://")) ::gethostname(host.data(), host.size() - 1);
    name = fmt::format("{}@{}{}", options.feed, host.data(), place);
  }
  if (name.size() <= kMost) return name;
  return Error{ErrorCode::invalid_argument,
               fmt::format("the producer's name \"{}\" has {} bytes; allowed: up to {}; see --name",
                           name, name.size(), kMost)};
}

std::unique_ptr<client::Connection> connect_patiently(const std::string& endpoint,
                                                      client::ConnectOptions wanted) {
  wanted.reconnect = kPatience;
  return connect_noted(endpoint, wanted);
}

/// A connection that knows the feed, which a daemon that has just begun may still be opening.
std::unique_ptr<client::Connection> connect_to_feed(const ForwardOptions& options,
                                                    const client::ConnectOptions& wanted,
                                                    const Interrupt& interrupt) {
  std::string told;
  while (true) {
    auto connection = connect_patiently(options.from, wanted);
    const auto* const absent = absent_feed(*connection, options.feed);
    if (absent == nullptr || interrupt.came()) return connection;
    std::string why =
        fmt::format("feed \"{}\" is not served yet: {}", options.feed, absent->reason);
    if (why != told) warn(why);
    told = std::move(why);
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

client::SubscribeOptions to_subscribe(const ForwardOptions& options, const PlanPlace& place) {
  client::SubscribeOptions wanted;
  wanted.feed = options.feed;
  wanted.window = options.window;
  wanted.epoch = place.epoch;
  wanted.step = place.step;
  if (options.epochs != 0) wanted.epochs = options.epoch + options.epochs - place.epoch;
  return wanted;
}

Forwarded forward(const ForwardOptions& options, client::Connection& from,
                  const client::Connection& to, const Interrupt& interrupt) {
  const bw_feed& feed = feed_named(from, options.feed);
  if (feed.live != 0) {
    throw client::Error(BW_INVALID_ARGUMENT,
                        fmt::format("feed \"{}\" is live: only a feed with a dataset has places "
                                    "that a forwarder can go on at",
                                    options.feed));
  }
  PatientProducer producer(to, options.to, options.name, interrupt);
  Forwarder forwarder(producer, feed, interrupt);
  Forwarded done;
  done.name = options.name;
  done.first = producer.info().next;
  const auto start = Clock::now();
  const PlanPlace place =
      place_behind(from, {options.feed, options.epoch, options.epochs}, done.first);
  if (!place.is_over) {
    client::Subscription subscription = from.subscribe(to_subscribe(options, place));
    done.outcome = forwarder.run(subscription, place.rows, done);
  }
  done.was_forgotten = producer.was_forgotten();
  done.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return done;
}

void print(const ForwardOptions& options, const Forwarded& done) {
  if (options.json) {
    return print_json_line(json::object{{"feed", options.feed},
                                        {"to", options.to},
                                        {"name", done.name},
                                        {"first", done.first},
                                        {"sequences", done.sequences},
                                        {"bytes", done.bytes},
                                        {"epochs", done.epochs},
                                        {"lost", done.lost},
                                        {"seconds", done.seconds},
                                        {"ended", done.outcome == Outcome::ended}});
  }
  fmt::print("{} sequences of feed \"{}\" forwarded to \"{}\" by \"{}\", {:.3f} MB in {:.2f} s\n",
             done.sequences, options.feed, options.to, done.name,
             static_cast<double>(done.bytes) / 1e6, done.seconds);
  if (done.first != 0) {
    fmt::print("{} had been forwarded before, and were left out\n", done.first);
  }
}

void warn_of(const Forwarded& done) {
  if (done.lost != 0) {
    warn(
        fmt::format("{} rows were left out, since their records are corrupt: a forwarder that "
                    "starts again offers so many sequences twice",
                    done.lost));
  }
  if (done.was_forgotten) {
    warn(
        "the live feed's daemon was restarted meanwhile, and kept no numbers: a forwarder that "
        "starts again with this name begins too early");
  }
  if (done.outcome == Outcome::ended) warn("the live feed has ended");
  if (done.outcome == Outcome::interrupted) warn("interrupted; the same call goes on here");
}

}  // namespace

int run_forward(const ForwardOptions& given) {
  ForwardOptions options = given;
  if (options.from.find(',') != std::string::npos) {
    return fail({ErrorCode::invalid_argument,
                 "--from names one daemon: run a forwarder for each, so that none waits for "
                 "another"});
  }
  const auto from_keys = connect_options({options.from_key, options.key_file});
  if (!from_keys) return fail(from_keys.error());
  const auto to_keys = connect_options({options.to_key, options.key_file});
  if (!to_keys) return fail(to_keys.error());
  auto name = name_of(options);
  if (!name) return fail(name.error());
  options.name = std::move(*name);
  try {
    const Interrupt interrupt;
    const auto from = connect_to_feed(options, *from_keys, interrupt);
    const auto to = connect_patiently(options.endpoint, *to_keys);
    const Forwarded done = forward(options, *from, *to, interrupt);
    print(options, done);
    warn_of(done);
    // Without --epochs there is no other end.
    return done.outcome == Outcome::interrupted && options.epochs != 0 ? kFailed : kDone;
  } catch (const client::Error& error) {
    return fail({static_cast<ErrorCode>(error.code()), error.what()});
  }
}

}  // namespace batchwright
