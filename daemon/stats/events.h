#pragma once

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/stats/log_limit.h"

namespace batchwright {

/// Everything that can happen and that somebody may want to know of. The table below has the name
/// and the line of each. What happens with every batch is no event but a FeedCounter.
enum class Event : std::uint8_t {
  // The daemon.
  arenas_reserved,
  daemon_ready,
  stopping,
  loop_failed,
  reload_began,
  reload_applied,
  reload_refused,
  reload_left_failed,
  // Where it listens.
  listening,
  listening_insecure,
  listening_with_keys,
  events_listening,
  stats_listening,
  stats_on_socket,
  stats_exposed,
  stats_page_failed,
  stats_accept_failed,
  // Clients.
  client_connected,
  client_gone,
  client_refused,
  client_ignored,
  key_refused,
  gatekeeper_failed,
  receive_failed,
  malformed_message,
  subscribed,
  subscription_refused,
  left_behind,
  // Feeds.
  feed_opened,
  arena_reserved,
  queue_resumed,
  feed_ready,
  epoch_began,
  epoch_ended,
  queue_epoch_done,
  epoch_not_planned,
  dataset_grown,
  growth_left_out,
  arena_grown,
  batch_not_assembled,
  sequence_skipped,
  feed_failed,
  count
};

inline constexpr std::size_t kEvents = static_cast<std::size_t>(Event::count);

enum class Severity : std::uint8_t { debug, info, warning, error, critical };

/// Whether others can cause an event at will: then it is counted each time, and logged once a
/// second at most, with the number of lines left out.
enum class Pace : std::uint8_t { each, limited };

struct EventRow {
  Event event;
  std::string_view name;  ///< As in /stats and in the label `event` of /metrics.
  Severity severity;
  Pace pace;
  std::string_view line;  ///< The log line, with {} for what is told; README.md shows them all.
};

inline constexpr std::array<EventRow, kEvents> kEventRows{{
    {Event::arenas_reserved, "arenas_reserved", Severity::info, Pace::each,
     "arenas take {} of {} bytes"},
    {Event::daemon_ready, "daemon_ready", Severity::info, Pace::each, "ready: {}"},
    {Event::stopping, "stopping", Severity::info, Pace::each, "signal {}: stopping"},
    {Event::loop_failed, "loop_failed", Severity::critical, Pace::each, "the event loop ends: {}"},
    {Event::reload_began, "reload_began", Severity::info, Pace::each, "reading {} again"},
    {Event::reload_applied, "reload_applied", Severity::info, Pace::each, "reloaded: {}"},
    {Event::reload_refused, "reload_refused", Severity::error, Pace::each,
     "not reloaded, all goes on as it was: {}"},
    {Event::reload_left_failed, "reload_left_failed", Severity::error, Pace::each, "{}"},
    {Event::listening, "listening", Severity::info, Pace::each, "listening at {}"},
    {Event::listening_insecure, "listening_insecure", Severity::warning, Pace::each,
     "listening at {}, insecure: without keys, whoever reaches it is let in"},
    {Event::listening_with_keys, "listening_with_keys", Severity::info, Pace::each,
     "listening at {}, public key {}, {}"},
    {Event::events_listening, "events_listening", Severity::info, Pace::each, "events at {}"},
    {Event::stats_listening, "stats_listening", Severity::info, Pace::each,
     "stats at http://{}/stats, port {}"},
    {Event::stats_on_socket, "stats_on_socket", Severity::info, Pace::each, "stats at {}"},
    {Event::stats_exposed, "stats_exposed", Severity::warning, Pace::each,
     "stats: {} can be reached from other machines"},
    {Event::stats_page_failed, "stats_page_failed", Severity::error, Pace::limited,
     "stats: a page could not be made: {}"},
    {Event::stats_accept_failed, "stats_accept_failed", Severity::warning, Pace::limited,
     "stats: accept: {}"},
    {Event::client_connected, "client_connected", Severity::info, Pace::each,
     "session {:x}: {} (pid {}) connects{}"},
    {Event::client_gone, "client_gone", Severity::info, Pace::each,
     "session {:x}: {} (pid {}) ends: {}"},
    {Event::client_refused, "client_refused", Severity::warning, Pace::limited,
     "a client is refused: {}"},
    {Event::client_ignored, "client_ignored", Severity::warning, Pace::limited,
     "a connection is not answered any more: too many requests in vain"},
    {Event::key_refused, "key_refused", Severity::warning, Pace::limited,
     "a client at {} is refused: its key is not in authorized_keys_file: {}"},
    {Event::gatekeeper_failed, "gatekeeper_failed", Severity::error, Pace::limited,
     "gatekeeper: {}"},
    {Event::receive_failed, "receive_failed", Severity::error, Pace::limited, "receive: {}"},
    {Event::malformed_message, "malformed_message", Severity::warning, Pace::limited,
     "malformed message ({} of {} from this peer): {}"},
    {Event::subscribed, "subscribed", Severity::info, Pace::each,
     "feed {}: session {:x} subscribes ({}) at epoch {} step {}, {} of {} batches a step, window "
     "{}"},
    {Event::subscription_refused, "subscription_refused", Severity::warning, Pace::limited,
     "session {:x}: subscription refused: {}"},
    {Event::left_behind, "left_behind", Severity::info, Pace::limited,
     "feed {}: {} is left behind by {} batches, and served on its own until it catches up"},
    {Event::feed_opened, "feed_opened", Severity::info, Pace::each,
     "feed {}: {} sequences, {} steps an epoch, world {}, fingerprint {}"},
    {Event::arena_reserved, "arena_reserved", Severity::info, Pace::each,
     "feed {}: arena {}, {} slots of {}, pages {}"},
    {Event::queue_resumed, "queue_resumed", Severity::info, Pace::each,
     "feed {}: its queue is in epoch {}, {} batches done, {} out"},
    {Event::feed_ready, "feed_ready", Severity::debug, Pace::each,
     "feed {}: its first batches are there"},
    {Event::epoch_began, "epoch_began", Severity::debug, Pace::each, "feed {}: epoch {} begins"},
    {Event::epoch_ended, "epoch_ended", Severity::debug, Pace::each,
     "feed {}: epoch {} ends for the first subscriber"},
    {Event::queue_epoch_done, "queue_epoch_done", Severity::info, Pace::each,
     "feed {}: its queue has done epoch {}"},
    {Event::epoch_not_planned, "epoch_not_planned", Severity::error, Pace::each,
     "feed {}: epoch {}: {}"},
    {Event::dataset_grown, "dataset_grown", Severity::info, Pace::each,
     "feed {}: {} sequences from epoch {} on"},
    {Event::growth_left_out, "growth_left_out", Severity::warning, Pace::each,
     "feed {}: epoch {} goes on with {} sequences: {}"},
    {Event::arena_grown, "arena_grown", Severity::info, Pace::each,
     "feed {}: a new arena of {} bytes, slots of {}"},
    {Event::batch_not_assembled, "batch_not_assembled", Severity::error, Pace::each,
     "feed {}: epoch {} batch {}: {}"},
    {Event::sequence_skipped, "sequence_skipped", Severity::warning, Pace::each,
     "feed {}: epoch {} batch {}: sequence {} is left out: {}"},
    {Event::feed_failed, "feed_failed", Severity::error, Pace::each, "{}"},
}};

constexpr const EventRow& describe(Event event) {
  return kEventRows[static_cast<std::size_t>(event)];
}

/// Counts what happens and logs it, by one call.
/// Threads: the event loop, or before it runs.
class EventLog {
 public:
  using Clock = std::chrono::steady_clock;

  explicit EventLog(std::function<Clock::time_point()> clock = Clock::now);

  /// `told` fills the {} of the event's line; whether it fits is checked when this is compiled.
  template <Event E, class... Args>
  void note(const Args&... told) {
    constexpr std::string_view line = describe(E).line;
    if (count(E)) write(E, fmt::format(fmt::format_string<const Args&...>(line), told...));
  }
  /// Counts alone. Whether a line may be written now.
  bool count(Event event);
  std::uint64_t get(Event event) const { return counts_[static_cast<std::size_t>(event)]; }

 private:
  void write(Event event, std::string text);

  std::function<Clock::time_point()> clock_;
  std::array<std::uint64_t, kEvents> counts_{};
  std::vector<LogLimit> limits_;  ///< One for each event.
  std::uint64_t left_out_ = 0;    ///< Lines left out before the one that count() allowed last.
};

}  // namespace batchwright
