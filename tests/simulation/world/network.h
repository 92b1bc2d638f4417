#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "tests/simulation/world/process.h"
#include "tests/simulation/world/seam.h"

namespace batchwright::simulation {

/// The bytes of a message, and for a batch after its ticket a copy that is made when it arrives:
/// until then they lie in the daemon's slot. A producer's frame is taken when it is sent.
struct Message {
  std::vector<std::byte> bytes;
  std::function<std::vector<std::byte>()> batch;
  std::function<void()> sent;  ///< The batch's bytes are needed no more. Called once.
};

/// A message as a client receives it; the batch is null for most.
struct Received {
  std::vector<std::byte> bytes;
  std::shared_ptr<const std::vector<std::byte>> batch;
};

/// One socket of a client, and its connection to a daemon once there is one.
struct Line {
  std::weak_ptr<Process> owner;
  bool remote = false;
  std::uint64_t daemon = 0;    ///< To which it is connected; 0: none, and it tries again.
  bool cut = false;            ///< The connection has ended, and the client was not told.
  bool over = false;           ///< It has ended, for both sides.
  std::deque<Received> inbox;  ///< The client's.
  std::vector<Message> kept;   ///< Until it is connected.
  Time to_daemon{};            ///< When the last message on its way arrives.
  Time to_client{};
  Time stalls_until{};
  std::optional<Time> lost_since;  ///< What was sent later does not arrive.
};

/// A client's connection to the arena socket.
struct ArenaLine {
  std::weak_ptr<Process> owner;
  std::uint64_t daemon = 0;
  SessionId session;
  bool open = true;  ///< For the daemon's direction.
};

/// Connections between clients and the daemon. Messages take any time; they keep their order within
/// a connection and not between connections.
class Network {
 public:
  explicit Network(World& world) : world_(world) {}

  // Of clients.
  std::shared_ptr<Line> connect(const std::shared_ptr<Process>& owner);
  void send(const std::shared_ptr<Line>& line, Message message);
  /// `flushed`: what was sent arrives.
  void close(const std::shared_ptr<Line>& line, bool flushed);
  /// The daemon that listens; null: none.
  Listener* daemon() const { return daemon_; }

  // Of daemons.
  void listen(Listener& daemon);
  /// Its process has ended: so do its connections.
  void end(Listener& daemon);
  /// False when the connection has ended.
  bool send_to_client(const std::shared_ptr<Line>& line, Message message);

  // Faults.
  void cut(const std::shared_ptr<Line>& line);
  /// A remote one that is connected; null when there is none.
  std::shared_ptr<Line> any_remote();

 private:
  void link(const std::shared_ptr<Line>& line);
  Time arrival(Line& line, Time& last);
  void deliver(const std::shared_ptr<Line>& line, Message message, Time sent);

  World& world_;
  Listener* daemon_ = nullptr;
  std::vector<std::weak_ptr<Line>> lines_;
};

}  // namespace batchwright::simulation
