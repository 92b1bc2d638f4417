#pragma once

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "daemon/stats/log_limit.h"
#include "daemon/stats/loop_turns.h"
#include "formats/formats.h"

namespace batchwright {

/// Everything notable that can happen. The table below has the name and the line of each. What
/// happens with every batch is a FeedCounter instead.
enum class Event : std::uint8_t {
  // The daemon.
  copy_chosen,
  arenas_reserved,
  memory_short,
  daemon_ready,
  stopping,
  sockets_gone,
  reload_door_shut,
  loop_failed,
  long_turn,
  log_dropped,
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
  slots_held_over,
  client_refused,
  connection_refused,
  connection_flooded,
  arena_delayed,
  client_ignored,
  key_refused,
  gatekeeper_failed,
  receive_failed,
  malformed_message,
  subscribed,
  subscription_refused,
  subscription_waits,
  left_behind,
  long_wait,
  // Feeds.
  feed_opened,
  live_feed_opened,
  dataset_not_locked,
  dataset_stale,
  dataset_silent,
  arena_reserved,
  slots_few,
  making_reserved,
  plan_noted,
  journal_lost,
  queue_resumed,
  feed_ready,
  epoch_began,
  epoch_ended,
  queue_batch_returned,
  queue_batch_set_aside,
  queue_epoch_done,
  epoch_not_planned,
  epoch_planned_late,
  plans_take_turns,
  dataset_grown,
  growth_left_out,
  arena_grown,
  batch_not_assembled,
  sequence_skipped,
  cast_overflow,
  feed_blocked,
  feed_unblocked,
  feed_failed,
  feed_broken,
  feed_absent,
  feed_returned,
  count
};

inline constexpr std::size_t kEvents = static_cast<std::size_t>(Event::count);

/// The severity's name in /stats.
const char* name_of(Severity severity);

/// Leaves out of the log all lines less severe than this, those of no event, too. Threads: any.
void log_from(Severity least);

/// How often an event is logged. One that peers can cause at will is counted each time but logged
/// at most once a second, with the number of lines left out. Events worth a line each, such as a
/// job's start, may come a hundred at once.
enum class Pace : std::uint8_t { each, limited, bursts };

/// How clients that listen for events are told of one.
struct Told {
  enum class When : std::uint8_t {
    with_the_line,
    later,  ///< By a call of its own: what the line says is not for them yet.
  };
  wire::EventKind kind;
  When when = When::with_the_line;
};

struct EventRow {
  Event event;
  std::string_view name;  ///< Name in /stats and in the label `event` of /metrics.
  Severity severity;
  Pace pace;
  std::string_view line;  ///< The log line, with {} for its arguments; REFERENCE.md shows them all.
  std::optional<Told> told = {};  ///< What clients that listen are told; empty: nothing.
};

inline constexpr std::array<EventRow, kEvents> kEventRows{{
    {Event::copy_chosen, "copy_chosen", Severity::info, Pace::each, "batches are copied by {}"},
    {Event::arenas_reserved, "arenas_reserved", Severity::info, Pace::each, "arenas take {} of {}"},
    {Event::memory_short, "memory_short", Severity::warning, Pace::each, "{}"},
    {Event::daemon_ready, "daemon_ready", Severity::info, Pace::each, "ready: {}"},
    {Event::stopping, "stopping", Severity::info, Pace::each, "signal {}: stopping"},
    {Event::sockets_gone, "sockets_gone", Severity::error, Pace::each,
     "{} is no longer this daemon's socket, so new clients cannot connect; restart the daemon"},
    {Event::reload_door_shut, "reload_door_shut", Severity::warning, Pace::each,
     "batchwrightd --reload will not be answered, but SIGHUP still works: {}"},
    {Event::loop_failed, "loop_failed", Severity::critical, Pace::each, "event loop failed: {}"},
    {Event::long_turn, "long_turn", Severity::warning, Pace::limited,
     "the event loop served no client for {} ms, in one turn: {}"},
    {Event::log_dropped, "log_dropped", Severity::warning, Pace::each,
     "{} lines of the log were dropped, since standard error did not take them"},
    {Event::reload_began, "reload_began", Severity::info, Pace::each, "reloading {}"},
    {Event::reload_applied, "reload_applied", Severity::info, Pace::each, "reloaded: {}"},
    {Event::reload_refused, "reload_refused", Severity::error, Pace::each,
     "not reloaded, the running configuration stays in force: {}"},
    {Event::reload_left_failed, "reload_left_failed", Severity::error, Pace::each,
     "feed {}: still failed: {}"},
    {Event::listening, "listening", Severity::info, Pace::each, "listening at {}"},
    {Event::listening_insecure, "listening_insecure", Severity::warning, Pace::each,
     "listening at {}, insecure: without keys, any host that reaches it may connect"},
    {Event::listening_with_keys, "listening_with_keys", Severity::info, Pace::each,
     "listening at {}, public key {}, {}"},
    {Event::events_listening, "events_listening", Severity::info, Pace::each, "events at {}"},
    {Event::stats_listening, "stats_listening", Severity::info, Pace::each,
     "dashboard at http://{}/, figures at /stats and /metrics"},
    {Event::stats_on_socket, "stats_on_socket", Severity::info, Pace::each,
     "dashboard and figures at {}"},
    {Event::stats_exposed, "stats_exposed", Severity::warning, Pace::each,
     "stats: {} can be reached from other machines"},
    {Event::stats_page_failed, "stats_page_failed", Severity::error, Pace::limited,
     "stats: a page could not be rendered: {}"},
    {Event::stats_accept_failed, "stats_accept_failed", Severity::warning, Pace::limited,
     "stats: accept: {}"},
    {Event::client_connected, "client_connected", Severity::info, Pace::bursts,
     "session {:x}: {} (pid {}) connects{}",
     Told{wire::EventKind::client_joined, Told::When::later}},
    {Event::client_gone, "client_gone", Severity::info, Pace::bursts,
     "session {:x}: {} (pid {}) ends: {}", Told{wire::EventKind::client_left, Told::When::later}},
    {Event::slots_held_over, "slots_held_over", Severity::info, Pace::limited,
     "session {:x}: its process is alive and keeps {} slots until it unmaps the arena"},
    {Event::client_refused, "client_refused", Severity::warning, Pace::limited,
     "a client is refused: {}"},
    {Event::connection_refused, "connection_refused", Severity::warning, Pace::limited,
     "a connection is refused: this process has few file descriptors left (LimitNOFILE=)"},
    {Event::connection_flooded, "connection_flooded", Severity::warning, Pace::limited,
     "a connection is closed: {} has sent over {} MiB that make no whole message"},
    {Event::arena_delayed, "arena_delayed", Severity::warning, Pace::limited,
     "a client waits for its arena: {}"},
    {Event::client_ignored, "client_ignored", Severity::warning, Pace::limited,
     "a connection is no longer answered: too many rejected requests"},
    {Event::key_refused, "key_refused", Severity::warning, Pace::limited,
     "a client at {} is refused: its key is not in authorized_keys_file: {}"},
    {Event::gatekeeper_failed, "gatekeeper_failed", Severity::error, Pace::limited,
     "gatekeeper: {}"},
    {Event::receive_failed, "receive_failed", Severity::error, Pace::limited, "receive: {}"},
    {Event::malformed_message, "malformed_message", Severity::warning, Pace::limited,
     "malformed message ({} of {} from this peer): {}"},
    {Event::subscribed, "subscribed", Severity::info, Pace::bursts,
     "feed {}: session {:x} subscribes ({}) at epoch {} step {}, {} of {} batches a step, window "
     "{}"},
    {Event::subscription_refused, "subscription_refused", Severity::warning, Pace::limited,
     "session {:x}: subscription refused: {}"},
    {Event::subscription_waits, "subscription_waits", Severity::info, Pace::limited,
     "feed {}: session {:x} waits for the feed: {}"},
    {Event::left_behind, "left_behind", Severity::info, Pace::limited,
     "feed {}: {} is {} batches behind, and is served on its own until it catches up"},
    {Event::long_wait, "long_wait", Severity::warning, Pace::limited,
     "feed {}: {} has waited {} s for {}"},
    {Event::feed_opened, "feed_opened", Severity::info, Pace::each,
     "feed {}: {} in {} steps an epoch, world {}, fingerprint {}"},
    {Event::live_feed_opened, "live_feed_opened", Severity::info, Pace::each,
     "feed {}: live, with a pool of {}, world {}, fingerprint {}"},
    {Event::dataset_not_locked, "dataset_not_locked", Severity::warning, Pace::each, "feed {}: {}"},
    {Event::dataset_stale, "dataset_stale", Severity::warning, Pace::each,
     "feed {}: {}; the feed goes on with the old data, and a reload opens it anew"},
    {Event::dataset_silent, "dataset_silent", Severity::warning, Pace::each,
     "feed {}: whether dataset {} is still the same is not known: its file system has not answered "
     "for {} s"},
    {Event::arena_reserved, "arena_reserved", Severity::info, Pace::each,
     "feed {}: arena {}, {} slots of {}, pages {}"},
    {Event::slots_few, "slots_few", Severity::warning, Pace::each, "feed {}: {}"},
    {Event::making_reserved, "making_reserved", Severity::info, Pace::each,
     "feed {}: {} beside its arena to make its rows: {} for each of {} assembly threads, {} of "
     "noise and rooms, row_cache {}"},
    {Event::plan_noted, "plan_noted", Severity::warning, Pace::each, "feed {}: plan: {}"},
    {Event::journal_lost, "journal_lost", Severity::warning, Pace::each,
     "feed {}: journal {}: {} records were lost, as in a power cut; {} batches without a sound "
     "record are given again"},
    {Event::queue_resumed, "queue_resumed", Severity::info, Pace::each,
     "feed {}: its queue resumes in epoch {}, {} batches done, {} out"},
    {Event::feed_ready, "feed_ready", Severity::debug, Pace::each,
     "feed {}: its first batches are ready"},
    {Event::epoch_began, "epoch_began", Severity::debug, Pace::each, "feed {}: epoch {} begins",
     Told{wire::EventKind::epoch_began}},
    {Event::epoch_ended, "epoch_ended", Severity::debug, Pace::each,
     "feed {}: epoch {} ends for the first subscriber", Told{wire::EventKind::epoch_ended}},
    {Event::queue_batch_returned, "queue_batch_returned", Severity::warning, Pace::limited,
     "feed {}: batch {} of its queue's epoch {} was begun {} times and not done: a worker gave it "
     "back, or ended with it"},
    {Event::queue_batch_set_aside, "queue_batch_set_aside", Severity::error, Pace::each,
     "feed {}: batch {} of its queue's epoch {} is set aside: it was begun {} times and not done "
     "(queue_attempts)"},
    {Event::queue_epoch_done, "queue_epoch_done", Severity::info, Pace::each,
     "feed {}: its queue has finished epoch {}"},
    {Event::epoch_not_planned, "epoch_not_planned", Severity::error, Pace::limited,
     "feed {}: epoch {} cannot be planned: {}"},
    {Event::epoch_planned_late, "epoch_planned_late", Severity::info, Pace::limited,
     "feed {}: epoch {} is planned"},
    {Event::plans_take_turns, "plans_take_turns", Severity::warning, Pace::limited,
     "feed {}: clients are in {} epochs, but only {} plans are kept at a time: the epochs take "
     "turns"},
    {Event::dataset_grown, "dataset_grown", Severity::info, Pace::each,
     "feed {}: {} sequences from epoch {} on", Told{wire::EventKind::dataset_changed}},
    {Event::growth_left_out, "growth_left_out", Severity::warning, Pace::each,
     "feed {}: epoch {} continues with {} sequences: {}"},
    {Event::arena_grown, "arena_grown", Severity::info, Pace::each,
     "feed {}: a new arena of {}, slots of {}"},
    {Event::batch_not_assembled, "batch_not_assembled", Severity::error, Pace::each,
     "feed {}: epoch {} batch {}: {}"},
    {Event::sequence_skipped, "sequence_skipped", Severity::warning, Pace::limited,
     "feed {}: epoch {} batch {}: sequence {} skipped: {}"},
    {Event::cast_overflow, "cast_overflow", Severity::warning, Pace::each,
     "feed {}: field {} of sequence {} (epoch {} batch {}) has values that become infinite as they "
     "are cast; cast_overflows counts them all"},
    {Event::feed_blocked, "feed_blocked", Severity::warning, Pace::each,
     "feed {}: blocked: {}; other feeds go on"},
    {Event::feed_unblocked, "feed_unblocked", Severity::info, Pace::each,
     "feed {}: no longer blocked: the file system of {} has answered after {} s"},
    {Event::feed_failed, "feed_failed", Severity::error, Pace::each, "feed {} failed: {}",
     Told{wire::EventKind::feed_failed}},
    {Event::feed_broken, "feed_broken", Severity::error, Pace::each,
     "feed {}: an invariant does not hold: {}; its last events: {}"},
    {Event::feed_absent, "feed_absent", Severity::error, Pace::each,
     "feed {}: not served; the daemon keeps trying: {}"},
    {Event::feed_returned, "feed_returned", Severity::info, Pace::each,
     "feed {}: served again after {} s"},
}};

/// The subject of an event, for logs that programs read. Empty members do not apply.
struct EventFields {
  std::string_view event;  ///< Its name.
  std::string feed;
  std::string session;  ///< The session as name_of() writes it.
};

/// The fields of the line that this thread is writing; null when the line is of no event.
/// Threads: any.
const EventFields* fields_of_line();

/// The index of the {} right behind a word in a line; -1: there is none.
constexpr int place_behind(std::string_view line, std::string_view word) {
  int place = 0;
  for (std::size_t at = line.find('{'); at != std::string_view::npos; at = line.find('{', at + 1)) {
    if (line.substr(0, at).ends_with(word)) return place;
    ++place;
  }
  return -1;
}

constexpr const EventRow& describe(Event event) {
  return kEventRows[static_cast<std::size_t>(event)];
}

/// A line that was logged.
struct LoggedEvent {
  Event event;
  std::chrono::system_clock::time_point at;
  std::string text;
};

/// Counts what happens, logs it, and tells clients of it, by one call.
/// Threads: the event loop, or before it runs.
class EventLog {
 public:
  using Clock = std::chrono::steady_clock;

  explicit EventLog(std::function<Clock::time_point()> clock = Clock::now);

  /// A turn of the event loop, or a part of one, until it is destroyed. One that was long is noted,
  /// with what it did last.
  class Turn {
   public:
    /// `what` it does: the kind of a message or an event, a page; `feed` that it is for, or empty.
    /// Only the part that is the whole turn looks at the clock, where the time is not known.
    Turn(EventLog& log, std::string_view what, std::string_view feed = {},
         std::optional<Clock::time_point> now = {})
        : log_(log) {
      log_.turns_.begin(what, feed);
      if (log_.turns_.is_outermost()) log_.turns_.begin_at(now ? *now : log_.clock_());
    }
    ~Turn() {
      if (log_.turns_.end()) log_.end_turn();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    EventLog& log_;
  };
  const LoopTurns& turns() const { return turns_; }

  /// Sets what takes the events that clients are told, on this thread and within the call.
  void on_told(std::function<void(wire::EventT)> listener) { listener_ = std::move(listener); }

  /// Counts an event and logs its line. `told` fills the {} of the line; the compiler checks that
  /// it fits.
  template <Event E, class... Args>
  void note(const Args&... told) {
    static_assert(!describe(E).told || describe(E).told->when == Told::When::later,
                  "clients are told of it, too: say what");
    log_line<E>(told...);
  }
  /// The same, and tells clients of it: all but the event's kind is in `about`.
  template <Event E, class... Args>
  void note(wire::EventT about, const Args&... told) {
    static_assert(describe(E).told && describe(E).told->when == Told::When::with_the_line);
    log_line<E>(told...);
    tell(*describe(E).told, std::move(about));
  }
  /// Tells clients of an event that was noted before.
  template <Event E>
  void tell_later(wire::EventT about) {
    static_assert(describe(E).told && describe(E).told->when == Told::When::later);
    tell(*describe(E).told, std::move(about));
  }
  /// Counts an event without logging it. Returns whether a line may be written now.
  bool count(Event event);
  std::uint64_t get(Event event) const { return counts_[static_cast<std::size_t>(event)]; }
  /// The latest kKept lines of Severity::info and above, the oldest first.
  const std::deque<LoggedEvent>& latest() const { return latest_; }
  static constexpr std::size_t kKept = 50;

 private:
  template <Event E, class... Args>
  void log_line(const Args&... told) {
    constexpr std::string_view line = describe(E).line;
    if (!count(E)) return;
    EventFields fields{describe(E).name, {}, {}};
    constexpr int feed = place_behind(line, "feed ");
    constexpr int session = place_behind(line, "session ");
    [[maybe_unused]] const auto all = std::tie(told...);
    if constexpr (feed >= 0) fields.feed = fmt::format("{}", std::get<feed>(all));
    if constexpr (session >= 0) fields.session = fmt::format("{:x}", std::get<session>(all));
    write(E, fields, fmt::format(fmt::format_string<const Args&...>(line), told...));
  }
  void end_turn() noexcept;
  void write(Event event, const EventFields& fields, std::string text);
  void tell(const Told& told, wire::EventT about);

  std::function<Clock::time_point()> clock_;
  std::function<void(wire::EventT)> listener_;
  std::array<std::uint64_t, kEvents> counts_{};
  LoopTurns turns_;
  std::vector<LogLimit> limits_;  ///< One for each event.
  std::deque<LoggedEvent> latest_;
  std::uint64_t left_out_ = 0;  ///< Lines left out before the one that count() allowed last.
};

}  // namespace batchwright
