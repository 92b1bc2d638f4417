#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "daemon/delivery/feed/feed.h"
#include "daemon/delivery/pulse.h"
#include "daemon/delivery/wire/wire.h"
#include "formats/formats.h"

namespace batchwright {

/// One connected client.
struct Session {
  ClientInfo client;
  PeerName peer;
  Connection connection;                ///< Its way to us.
  std::optional<Pulse> pulse;           ///< Of a remote client.
  std::optional<PeerCredentials> user;  ///< The user of an `ipc://` peer.
  bool bound = false;                   ///< Has its connection to the arena socket.
  bool lost = false;                    ///< That connection has ended, and the process with it.
  bool returning = false;               ///< Its client has said Hello again.
  bool leaving = false;                 ///< Said Bye, and so holds nothing and does not come back.

  SessionId id() const { return client.session; }
  /// Whether it can get batches, in an arena or behind their tickets.
  bool is_reachable() const { return !lost && is_known(); }
  /// Whether its number may be told to others: a process that knows the number of an unbound
  /// session could bind it.
  bool is_known() const { return bound || client.inline_batches; }
  /// The effect of its end on the batches it holds.
  SessionEnd ending() const {
    // A connection over a network ends for many reasons; the arena socket's only with the client.
    return {returning || (client.inline_batches && !leaving), bound && !lost && !leaving, !leaving};
  }
};

/// The sessions of the clients that are here, and their deadlines.
///
/// Lifetime: destroyed when the loop no longer runs.
/// Threads: the event loop only.
class SessionTable {
 public:
  explicit SessionTable(boost::asio::io_context& loop) : loop_(loop) {}

  /// Adds the session of a peer that has none, and gives it its number. That is not guessable, so
  /// that a process cannot bind its connection to another's session.
  Session& add(Session session);
  /// Takes a session out, and with it its deadline; empty: there is none.
  std::optional<Session> take(SessionId id);

  /// The session, to which the process's connection to the arena socket belongs from now on. Its
  /// deadline is met. Null when there is none, or it has a connection, or needs none.
  Session* bind(SessionId id);
  /// Calls `then` after this time unless the session is bound or taken out before. It takes the
  /// place of the session's earlier deadline.
  void set_deadline(SessionId id, std::chrono::milliseconds after, std::function<void()> then);

  /// Null when there is none.
  Session* find(SessionId id);
  Session* find(const PeerName& peer);
  /// The session of the client with this token, which is not 0; null when there is none.
  Session* find_token(std::uint64_t token);

  const std::map<SessionId, Session>& all() const { return all_; }
  /// How many of them produce.
  std::size_t producers() const { return producers_; }

 private:
  boost::asio::io_context& loop_;
  std::map<SessionId, Session> all_;
  std::map<PeerName, SessionId> by_peer_;
  std::size_t producers_ = 0;
  std::map<SessionId, std::unique_ptr<boost::asio::steady_timer>> deadlines_;
};

}  // namespace batchwright
