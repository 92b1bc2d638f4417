#include <fmt/core.h>

#include <boost/json/object.hpp>
#include <chrono>

#include "client/command/commands.h"
#include "client/command/exit_code.h"
#include "client/command/interrupt.h"
#include "client/command/keys.h"
#include "client/command/live/patient_producer.h"
#include "client/command/live/push_source.h"
#include "client/command/output.h"
#include "client/command/progress.h"
#include "client/command/watch/wait_note.h"
#include "client/library/batchwright/live.hpp"

namespace batchwright {
namespace {

namespace json = boost::json;
using Clock = std::chrono::steady_clock;

/// What is pushed with one answer: enough that answers cost nothing, little enough to be read
/// ahead.
constexpr std::size_t kMostSequences = 64;
constexpr std::uint64_t kMostBytes = std::uint64_t{8} << 20;

/// What came of it.
struct Pushed {
  PatientProducer::Outcome outcome = PatientProducer::Outcome::done;
  std::uint64_t sequences = 0;
  std::uint64_t bytes = 0;
  std::uint64_t skipped = 0;  ///< Had been accepted before.
  std::uint64_t next = 0;     ///< Number of the next one.
  std::string name;
  double seconds = 0;
};

Result<std::unique_ptr<PushSource>> open_source(const std::filesystem::path& input,
                                                const bw_feed& feed) {
  std::error_code failed;  // then it is no folder, and opening it says why
  const bool is_folder = std::filesystem::is_directory(input, failed);
  return is_folder ? open_dataset_to_push(input, feed) : open_lines_to_push(input, feed);
}

/// The next sequences, those from number `next` on, at most so many as one push takes.
Result<std::vector<SequenceToPush>> read_some(PushSource& source, std::uint64_t next) {
  std::vector<SequenceToPush> some;
  std::uint64_t bytes = 0;
  while (some.size() < kMostSequences && bytes < kMostBytes) {
    auto sequence = source.next(next + some.size());
    if (!sequence) return sequence.error();
    if (!sequence->has_value()) break;
    if ((*sequence)->number != next + some.size()) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("the first sequence has number {}, and {} is the next of this "
                               "producer: numbers have no gaps",
                               (*sequence)->number, next)};
    }
    bytes += (*sequence)->bytes();
    some.push_back(std::move(**sequence));
  }
  return some;
}

PatientProducer::Outcome push_some(PatientProducer& producer,
                                   const std::vector<SequenceToPush>& some) {
  std::vector<std::vector<bw_value>> values;
  std::vector<bw_sequence> sequences;
  std::vector<bw_origin> origins;
  std::vector<bw_of> rows(some.size());
  for (const SequenceToPush& each : some) {
    auto& row = values.emplace_back();
    for (std::size_t i = 0; i < each.values.size(); ++i) {
      row.push_back({each.values[i].data(), each.values[i].size(), each.lengths[i]});
    }
    const char* const key = each.key.empty() ? nullptr : each.key.data();
    sequences.push_back({key, each.key.size(), row.data(), row.size()});
    bw_of& named = rows[origins.size()];
    origins.push_back(each.origin);
    if (each.row_feed.empty()) continue;
    named = each.row;
    named.struct_size = sizeof named;
    named.feed = each.row_feed.c_str();
    origins.back().of = &named;
  }
  return producer.push({sequences, origins});
}

/// Pushes all that the source has and the producer has not pushed before.
Result<void> push_all(PatientProducer& producer, PushSource& source, Pushed& pushed) {
  const auto start = Clock::now();
  ProgressLine progress(stderr, start);
  const std::uint64_t total = source.total().value_or(0);
  while (pushed.outcome == PatientProducer::Outcome::done) {
    const auto some = read_some(source, pushed.skipped + pushed.sequences);
    if (!some) return some.error();
    if (some->empty()) break;
    const std::uint64_t before = producer.accepted();
    try {
      pushed.outcome = push_some(producer, *some);
    } catch (const client::Error& error) {
      pushed.sequences += producer.accepted() - before;
      return Error{static_cast<ErrorCode>(error.code()),
                   fmt::format("number {}: {}", pushed.skipped + pushed.sequences, error.what())};
    }
    pushed.sequences += producer.accepted() - before;
    for (const SequenceToPush& each : *some) pushed.bytes += each.bytes();
    const std::uint64_t done = pushed.skipped + pushed.sequences;
    const auto now = Clock::now();
    if (total == 0 || !progress.due(now, done, total)) continue;
    const double rate = static_cast<double>(pushed.sequences) / progress.seconds(now);
    progress.print(now, done, total,
                   fmt::format("{} of {} sequences  {:.0f}/s", done, total, rate));
  }
  pushed.seconds = progress.seconds(Clock::now());
  return {};
}

void print(const PushOptions& options, const Pushed& pushed) {
  if (options.json) {
    return print_json_line(json::object{{"feed", options.feed},
                                        {"name", pushed.name},
                                        {"sequences", pushed.sequences},
                                        {"bytes", pushed.bytes},
                                        {"skipped", pushed.skipped},
                                        {"next", pushed.next},
                                        {"seconds", pushed.seconds},
                                        {"ended", options.end}});
  }
  if (options.end) fmt::print("feed \"{}\" has ended\n", options.feed);
  if (options.input.empty()) return;
  fmt::print("{} sequences pushed to feed \"{}\" by \"{}\", {:.3f} MB in {:.2f} s\n",
             pushed.sequences, options.feed, pushed.name, static_cast<double>(pushed.bytes) / 1e6,
             pushed.seconds);
  if (pushed.skipped != 0) {
    fmt::print("{} had been pushed before, and were left out\n", pushed.skipped);
  }
}

/// The end of the command, where not all was pushed.
std::string why_not_all(const Pushed& pushed) {
  const std::string first =
      fmt::format("{} sequences were pushed, the next is number {}", pushed.sequences, pushed.next);
  if (pushed.outcome == PatientProducer::Outcome::ended) {
    return fmt::format("the feed has ended: {}", first);
  }
  return fmt::format("interrupted: {}; the same call with --name {} goes on there", first,
                     pushed.name);
}

Result<Pushed> push_input(const PushOptions& options, const client::Connection& connection) {
  const Interrupt interrupt;
  PatientProducer producer(connection, options.feed, options.name, interrupt);
  auto source = open_source(options.input, producer.feed());
  if (!source) return source.error();
  Pushed pushed;
  pushed.name = producer.info().name;
  pushed.skipped = producer.info().next;
  const auto done = push_all(producer, **source, pushed);
  pushed.next = producer.info().next;
  if (producer.was_forgotten()) {
    warn("the daemon was restarted meanwhile, and kept nothing of what was pushed before");
  }
  if (done) return pushed;
  const std::string before =
      pushed.sequences == 0 ? "" : fmt::format(" ({} were pushed before)", pushed.sequences);
  return Error{done.error().code, done.error().message + before};
}

}  // namespace

int run_push(const PushOptions& options) {
  const auto wanted = connect_options(options.keys);
  if (!wanted) return fail(wanted.error());
  try {
    const auto connection = connect_noted(options.endpoint, *wanted);
    Pushed pushed;
    if (!options.input.empty()) {
      auto done = push_input(options, *connection);
      if (!done) return fail(done.error());
      pushed = std::move(*done);
    }
    if (pushed.outcome != PatientProducer::Outcome::done) {
      warn(why_not_all(pushed));
      return kFailed;
    }
    if (options.end) client::LiveFeed(*connection, options.feed).end();
    print(options, pushed);
    return kDone;
  } catch (const client::Error& error) {
    return fail({static_cast<ErrorCode>(error.code()), error.what()});
  }
}

}  // namespace batchwright
