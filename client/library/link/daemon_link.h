#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "client/library/deadline.h"
#include "client/library/feeds.h"
#include "client/library/link/host_lookup.h"
#include "client/library/link/transport.h"
#include "client/library/memory/arenas.h"
#include "client/library/settings.h"
#include "formats/formats.h"

namespace batchwright {

/// All that ties us to one daemon, from the first attempt to greet it.
struct DaemonConnection {
  SessionId session;
  Abilities abilities;  ///< Those that both sides have.
  bool welcomed = false;
  bool shares_memory = false;
  bool up = false;                       ///< Greeted, with arenas where memory is shared.
  bool cut = false;                      ///< It has ended; what came before can still be received.
  std::unique_ptr<Arenas> arenas;        ///< Null until it is up, and without shared memory.
  std::unique_ptr<DaemonSocket> socket;  ///< Closed first: Bye precedes the arenas' end.
  std::optional<Time> asks_since;        ///< An answer about an arena is waited for since then.
  Time heard{};                          ///< The last sign of life.
  std::uint64_t heard_bytes = 0;         ///< That had come when bytes were last one.
  std::optional<Time> suspected;         ///< Start of a closer watch on a silence.
};

/// The link to a daemon: socket and arenas; how it is made, lost, and made again.
///
/// An attempt is a socket of its own and a Hello on it, for a daemon that answers on a socket that
/// has seen another daemon's end knows nothing of what was said before. ZeroMQ keeps the Hello
/// until a daemon listens, so an attempt ends only when its connection does. All of it happens
/// inside the calls that wait, bw_subscribe and bw_next, and within their limits.
///
/// What a loss means for subscriptions is their owner's to decide: the functions that drop a
/// connection return whether subscriptions lived on it.
/// Threads: one at a time, with a lock between them. From any, at any time: endpoint(), forked(),
///   is_inline(), inline_reason(), reconnects(), feeds() once the first daemon is met, and wake().
class DaemonLink {
 public:
  /// Between two attempts, so that a daemon that says goodbye at once is not asked all the time.
  static constexpr std::chrono::milliseconds kBetweenAttempts{50};
  /// A daemon that starts makes its socket first, and opens it to its users after that.
  static constexpr std::chrono::milliseconds kOpensItsSocket{50};
  /// The daemon says something every second to those without an arena.
  static constexpr std::chrono::milliseconds kLongestSilence{10'000};
  /// A silence counts once it has lasted for so long while a call was looking: a program that did
  /// not look, or could not, has heard nothing either.
  static constexpr std::chrono::milliseconds kSecondLook{500};
  /// More bytes than ZeroMQ's own answers are in any time that matters: these say nothing of the
  /// daemon's event loop.
  static constexpr std::uint64_t kLeastFlow = 4096;

  DaemonLink(std::string endpoint, ConnectSettings settings, std::unique_ptr<Transport> transport);

  /// Errors: unsupported (an endpoint of another kind).
  Result<void> check() const;

  const std::string& endpoint() const { return endpoint_; }
  const ConnectSettings& settings() const { return settings_; }
  Time now() const { return transport_->now(); }
  /// Whether this is a forked child's copy, which touches nothing.
  bool forked() const;
  /// Whether batches come as messages, and why. The text stays where it is.
  bool is_inline() const { return inline_.load(std::memory_order_acquire); }
  const std::string& inline_reason() const { return inline_reason_; }
  /// How often a lost daemon was found again.
  std::uint64_t reconnects() const { return reconnects_.load(std::memory_order_relaxed); }
  /// The feeds of the first daemon that was met.
  const Feeds& feeds() const { return *feeds_; }
  /// What feeds() gave ends; the next Welcome has others.
  void forget_feeds() { feeds_.reset(); }

  /// Whether some daemon was met, and whether it is gone and none was met since.
  bool has_met() const { return has_met_; }
  bool is_away() const { return away_.has_value(); }
  /// Whether a daemon that is gone is looked for.
  bool reconnects_at_all() const { return settings_.reconnect.count() != 0; }
  /// Whether an attempt is under way, or a daemon is there.
  bool is_linked() const { return connection_.has_value(); }
  /// Whether the daemon said Welcome.
  bool is_welcomed() const { return connection_ && connection_->welcomed; }
  /// Whether the daemon can be asked for subscriptions.
  bool is_up() const { return connection_ && connection_->up; }
  /// Whether this daemon, once it said Welcome, and this library both have an ability.
  bool has(Ability ability) const { return connection_ && connection_->abilities.has(ability); }

  /// Does what is due without being asked. Errors end the conversation.
  Result<void> tend();
  /// A message, or none when none has come. Errors: as DaemonSocket::receive().
  Result<std::optional<DaemonSocket::Incoming>> receive();
  /// How the daemon has gone; null: it has not. Asked when all that has come is taken in.
  const char* loss();
  /// Errors: as DaemonSocket::send(). A daemon must be linked.
  Result<void> send(const flatbuffers::DetachedBuffer& message);
  /// The same with a second frame, unless that is empty.
  Result<void> send(const flatbuffers::DetachedBuffer& message, const Payload& frame);
  /// Waits for a message, for wake(), for what tend() has to do next, or for the end.
  /// Errors: io_error.
  Result<void> wait(const Deadline& deadline);
  /// Ends another thread's wait().
  void wake() const { transport_->wake(); }

  /// Errors: malformed_message, unsupported_version.
  Result<void> welcome(const wire::Welcome& welcome);
  /// Opens the arenas' connection, where memory is shared; from then on the link is up.
  /// Errors: as Transport::open_arenas().
  Result<void> come_up(const Deadline& deadline);

  /// Null where the time is over before the answer has come, which a later call gets.
  /// Errors: disconnected; as Arenas::fetch(), timed_out when no call got an answer within the
  /// connection's limit.
  Result<std::shared_ptr<const Mapping>> arena(ArenaNumber number, const Deadline& deadline);
  /// A producer's area. Errors: as ArenaSource::fetch_area(); disconnected.
  Result<std::shared_ptr<const Area>> area(ArenaNumber number, const Deadline& deadline);
  /// The arenas' connection, for a batch to keep. Only after arena().
  std::shared_ptr<const void> arena_source() const { return connection_->arenas->source(); }
  /// The meaning of an error of come_up() or arena(). A daemon that is going, or was replaced, is
  /// lost. Memory that cannot be had is done without, unless it could be had before.
  enum class Trouble { daemon_gone, no_memory, fatal };
  Trouble meaning_of(const Error& error) const;

  /// The daemon is gone: from now on it is looked for. True when it was up.
  [[nodiscard]] bool lose(const std::string& how);
  /// Greets the daemon again, for batches in messages. True when it was up.
  [[nodiscard]] bool go_inline(const std::string& why, bool holds_batches);
  /// Ends the conversation with the daemon. It is not looked for.
  void say_goodbye();

  /// What is said of a daemon that did not answer, that is lost for good, and that is looked for.
  Error no_welcome() const;
  Error gone(const std::string& how) const;
  std::string away_text() const;

 private:
  /// A daemon that was there and is not.
  struct Away {
    Time since;
    std::string why;
  };

  std::chrono::milliseconds until_next_chore() const;
  Result<void> begin_attempt();
  Result<std::optional<std::string>> address();
  void note_obstacle(const std::string& what);
  bool has_lost_arenas() const;
  bool is_silent();
  bool drop_connection();

  const std::string endpoint_;
  const ConnectSettings settings_;
  const pid_t pid_;
  const std::unique_ptr<Transport> transport_;
  const std::uint64_t token_;         ///< Lets a daemon recognise this client when it reconnects.
  std::atomic<bool> inline_ = false;  ///< Once true it stays so.
  std::string inline_reason_;         ///< Written before inline_ is.
  std::atomic<std::uint64_t> reconnects_ = 0;
  HostLookup lookup_;
  const Deadline first_;  ///< Of meeting the first daemon.
  bool has_met_ = false;
  std::optional<Away> away_;  ///< Counts from the first loss on until a daemon is met.
  Time next_attempt_{};
  std::optional<DaemonConnection> connection_;  ///< Empty between two attempts, and after goodbye.
  std::unique_ptr<const Feeds> feeds_;
};

}  // namespace batchwright
