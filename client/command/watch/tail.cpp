#include <fmt/core.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <numeric>

#include "client/command/commands.h"
#include "client/command/exit_code.h"
#include "client/command/keys.h"
#include "client/command/output.h"
#include "client/command/plan/real_bytes.h"
#include "client/command/watch/feeds.h"
#include "client/command/watch/wait_note.h"
#include "client/library/batchwright/client.hpp"

namespace batchwright {
namespace {

namespace json = boost::json;

/// A daemon that sends nothing for so long is given up, and after the first second it is said what
/// is waited for.
constexpr std::chrono::seconds kTailPatience{60};
constexpr std::chrono::seconds kSoon{1};

void print_json(const client::Batch& batch) {
  const bw_batch_header& header = batch.header();
  json::array keys;
  for (std::size_t row = 0; row < header.sequences; ++row) keys.emplace_back(batch.key(row));
  json::object line;
  line["epoch"] = header.epoch;
  line["step"] = header.step;
  line["index"] = header.index;
  line["size"] = header.sequences;
  line["length"] = header.batch_length;
  line["frames"] = header.frames;
  line["keys"] = std::move(keys);
  line["lengths"] = json::array(batch.lengths().begin(), batch.lengths().end());
  line["ordinals"] = json::array(batch.ordinals().begin(), batch.ordinals().end());
  // Whole sequences have neither; a batch with parts has both.
  if (!batch.starts().empty()) {
    line["starts"] = json::array(batch.starts().begin(), batch.starts().end());
  }
  if (!batch.flags().empty()) {
    line["flags"] = json::array(batch.flags().begin(), batch.flags().end());
  }
  line["checksum"] = checksum(batch, batch.primary());
  print_json_line(line);
}

void print_line(const client::Batch& batch) {
  const bw_batch_header& header = batch.header();
  // Of the primary field, as the figures of a plan are.
  const auto padded = static_cast<double>(header.sequences) * header.batch_length;
  const double padding = padded > 0 ? 1.0 - static_cast<double>(header.frames) / padded : 0.0;
  fmt::print(
      "epoch {} step {} batch {}: {} sequences of up to {} frames, {:.1f} % padding, {:08x}\n",
      header.epoch, header.step, header.index, header.sequences, header.batch_length,
      100.0 * padding, checksum(batch, batch.primary()));
}

client::SubscribeOptions to_subscribe(const TailOptions& options) {
  client::SubscribeOptions wanted;
  wanted.feed = options.feed;
  wanted.mode = options.ranks ? BW_SHARDED : BW_REPLICA;
  // Of no effect for a replica; BW_AUTO is what the options of the library begin with.
  wanted.rank = options.rank.value_or(BW_AUTO);
  wanted.ranks = options.ranks.value_or(BW_AUTO);
  wanted.window = options.window;
  wanted.epoch = options.epoch;
  wanted.step = options.step;
  wanted.epochs = options.epochs;
  return wanted;
}

/// Why the feed is not there yet.
std::string wait_for_feed(const client::Connection& connection, const std::string& feed) {
  if (const auto* const absent = absent_feed(connection, feed)) {
    return fmt::format("feed \"{}\" is not served, and is waited for: {}", feed, absent->reason);
  }
  return fmt::format("feed \"{}\" has no place for this client yet", feed);
}

/// The subscription. Says what is waited for, should the daemon not grant it within a second.
client::Subscription subscribe(client::Connection& connection, const TailOptions& options) {
  const WaitNote note(wait_for_feed(connection, options.feed));
  return connection.subscribe(to_subscribe(options));
}

/// Whether the next event comes soon is the trainers' affair, too: a wait is told, not ended.
client::Event next_event(client::Subscription& subscription) {
  try {
    return subscription.next(kSoon);
  } catch (const client::Error& error) {
    if (error.code() != BW_TIMED_OUT) throw;
    warn(error.what());
  }
  return subscription.next(kTailPatience - kSoon);
}

}  // namespace

int run_tail(const TailOptions& options) {
  const auto wanted = connect_options(options.keys);
  if (!wanted) return fail(wanted.error());
  try {
    const auto connection = connect_noted(options.endpoint, *wanted);
    client::Subscription subscription = subscribe(*connection, options);
    while (const client::Event event = next_event(subscription)) {
      // The end of an epoch is an event as well, and has no line.
      if (!event.is_batch()) continue;
      options.json ? print_json(event.batch) : print_line(event.batch);
      flush_output();  // a program that reads along waits for this line
    }
    return kDone;
  } catch (const client::Error& error) {
    return fail({static_cast<ErrorCode>(error.code()), error.what()});
  }
}

}  // namespace batchwright
