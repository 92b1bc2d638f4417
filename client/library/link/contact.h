#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "client/library/deadline.h"
#include "client/library/feeds.h"
#include "client/library/link/dealer.h"
#include "client/library/link/host_lookup.h"
#include "client/library/link/search.h"
#include "client/library/link/silence.h"
#include "client/library/memory/arenas.h"
#include "client/library/settings.h"
#include "formats/formats.h"

namespace batchwright {

/// All that ties us to one daemon, from the first attempt to greet it.
struct Link {
  SessionId session;
  Abilities abilities;  ///< Those that both sides have.
  bool welcomed = false;
  bool shares_memory = false;
  bool up = false;                 ///< Greeted, with arenas where memory is shared.
  std::unique_ptr<Arenas> arenas;  ///< Null until it is up, and without shared memory.
  std::unique_ptr<Dealer> dealer;  ///< Closed first, so that Bye precedes the connection's end.
  /// Since when an answer about an arena is waited for; empty: none is.
  std::optional<Deadline::Clock::time_point> asks_since;
  Silence silence;
};

/// The life of the link to a daemon: how one is met, lost, and met again.
///
/// An attempt is a socket of its own and a Hello on it, for a daemon that answers on a socket that
/// has seen another daemon's end knows nothing of what was said before. ZeroMQ keeps the Hello
/// until a daemon listens, so an attempt ends only when its connection does. All of it happens
/// inside the calls that wait, bw_subscribe and bw_next, and within their limits.
///
/// What a loss means for subscriptions is their owner's to decide: the functions that drop a link
/// return whether subscriptions lived on it.
/// Threads: one at a time, with a lock between them. From any, at any time: endpoint(), forked(),
///   is_inline(), inline_reason(), reconnects(), feeds() once the first daemon is met, and wake().
class Contact {
 public:
  Contact(std::string endpoint, ConnectSettings settings);

  /// Errors: unsupported (an endpoint of another kind), io_error (no descriptor).
  Result<void> check() const;

  const std::string& endpoint() const { return endpoint_; }
  const ConnectSettings& settings() const { return settings_; }
  /// Whether this is a forked child's copy, which touches nothing.
  bool forked() const;
  /// Whether batches come as messages, and why. The text stays where it is.
  bool is_inline() const { return inline_.load(std::memory_order_acquire); }
  const std::string& inline_reason() const { return inline_reason_; }
  /// How often a lost daemon was found again.
  std::uint64_t reconnects() const { return reconnects_.load(std::memory_order_relaxed); }
  /// The feeds of the first daemon that was met.
  const Feeds& feeds() const { return *feeds_; }
  const Search& search() const { return search_; }

  /// Whether an attempt is under way, or a daemon is there.
  bool is_linked() const { return link_.has_value(); }
  /// Whether the daemon said Welcome.
  bool is_welcomed() const { return link_ && link_->welcomed; }
  /// Whether the daemon can be asked for subscriptions.
  bool is_up() const { return link_ && link_->up; }
  /// Whether this daemon, once it said Welcome, and this library both have an ability.
  bool has(Ability ability) const { return link_ && link_->abilities.has(ability); }

  /// Does what is due without being asked. Errors end the conversation.
  Result<void> tend();
  /// Whether the daemon has been silent for too long. Asked when all that has come is taken in.
  bool is_silent();
  /// Whether the connection has ended since it was made. What came before can still be received.
  bool was_cut() { return link_->dealer->cut(); }
  /// Whether the daemon has closed the arenas' connection.
  bool lost_arenas() const { return link_->arenas && !link_->arenas->alive(); }

  /// A message, or none when none is there. Errors: as Dealer::receive().
  Result<std::optional<Dealer::Incoming>> receive();
  /// Errors: as Dealer::send(). A daemon must be linked.
  Result<void> send(const flatbuffers::DetachedBuffer& message);
  /// Waits for a message, for wake(), for what tend() has to do next, or for the end.
  /// Errors: io_error.
  Result<void> wait(const Deadline& deadline);
  /// Ends another thread's wait().
  void wake() const;

  /// Errors: malformed_message, unsupported_version.
  Result<void> welcome(const wire::Welcome& welcome);
  /// Binds the arenas' connection, where memory is shared. Errors: as ArenaLink::open().
  Result<void> open_arenas(const Deadline& deadline);
  void come_up();

  /// Null where the time is over before the answer has come, which a later call gets.
  /// Errors: disconnected; as Arenas::at(), timed_out when no call got an answer within the
  /// connection's limit.
  Result<std::shared_ptr<const Mapping>> arena(ArenaNumber number, const Deadline& deadline);
  /// The arenas' connection, for a batch to keep. Only behind arena().
  std::shared_ptr<const ArenaLink> arena_link() const { return link_->arenas->link(); }
  /// The meaning of an error of open_arenas() or arena(). A daemon that is going, or was replaced,
  /// is lost. Memory that cannot be had is done without, unless it could be had before.
  enum class Trouble { daemon_gone, no_memory, fatal };
  Trouble meaning_of(const Error& error) const;

  /// The daemon is gone: from now on it is looked for. True when it was up.
  [[nodiscard]] bool lose(const std::string& how);
  /// Greets the daemon anew, for batches in messages. True when it was up.
  [[nodiscard]] bool go_inline(const std::string& why, bool holds_batches);
  /// Ends the conversation with the daemon. It is not looked for.
  void say_goodbye();

  /// What is said of a daemon that did not answer, that is lost for good, and that is looked for.
  Error no_welcome() const;
  Error gone(const std::string& how) const;
  std::string away_text() const;

 private:
  using Clock = Deadline::Clock;

  /// Whether the daemon is reached by a Unix socket.
  bool is_local() const;
  /// The path of that socket.
  std::string socket_path() const;
  std::chrono::milliseconds until_next_chore() const;
  Result<void> begin_attempt();
  bool drop_link();
  std::string about_keys() const;

  const std::string endpoint_;
  const ConnectSettings settings_;
  const pid_t pid_;
  const std::uint64_t token_;         ///< Lets a daemon recognise this client when it reconnects.
  const Descriptor alarm_;            ///< An eventfd that wakes the thread in wait().
  std::atomic<bool> inline_ = false;  ///< Once true it stays so.
  std::string inline_reason_;         ///< Written before inline_ is.
  std::atomic<std::uint64_t> reconnects_ = 0;
  Search search_;
  HostLookup lookup_;
  const Deadline first_;      ///< Of meeting the first daemon.
  std::optional<Link> link_;  ///< Empty between two attempts, and once goodbye is said.
  std::unique_ptr<const Feeds> feeds_;
};

}  // namespace batchwright
