#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/delivery/pending_subscriptions.h"
#include "daemon/delivery/session_table.h"
#include "tests/simulation/daemon/feed_host.h"
#include "tests/simulation/world/network.h"

namespace batchwright::simulation {

/// A process of the daemon: its clients' sessions, and one feed with what it waits for. The
/// conversation is that of `Server`, without its sockets: what each message does is in
/// daemon/delivery/server_conversation.cpp and server_sessions.cpp, under the same names.
/// Lifetime: from its start until it is killed; what is put off for it goes with it.
class Daemon final : public Listener, public std::enable_shared_from_this<Daemon> {
 public:
  Daemon(World& world, Network& network, Machine& machine, std::uint64_t number)
      : world_(world), network_(network), machine_(machine), number_(number) {}
  ~Daemon() override;
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  /// Begins to listen, and to open its feed.
  void start();
  void stop_for(Duration time);
  /// The feed is opened again, as after a reload.
  void replace_feed();
  void change_settings(const FeedAdjustments& settings);

  /// No client is here, no slot is held, and the queue has come to this epoch.
  bool is_at_rest(std::uint64_t queue_epochs) const;
  /// Of a live feed that has ended: nothing that was accepted was lost.
  void check_all_done() const;
  /// For a failed run: its clients, and what they hold.
  std::string describe() const;

  std::uint64_t number() const override { return number_; }
  void hear(const std::shared_ptr<Line>& line, const std::vector<std::byte>& bytes,
            const std::vector<std::byte>& frame) override;
  bool bind(const std::shared_ptr<ArenaLine>& line) override;
  void on_lost(SessionId id) override;
  std::optional<ArenaFile> find_arena(SessionId session, ArenaNumber number) override;
  void post(Duration delay, std::function<void()> work) override;

  // Of its feed.
  void send_to_session(SessionId id, const flatbuffers::DetachedBuffer& message);
  void send_batch(SessionId id, const flatbuffers::DetachedBuffer& ticket,
                  std::function<std::vector<std::byte>()> batch, std::function<void()> sent);
  /// Its feed has failed; whether another takes its place.
  bool takes_over(ErrorCode why);

 private:
  struct Peer {
    Session session;
    std::shared_ptr<Line> line;
    std::shared_ptr<ArenaLine> arena;  ///< Null until it is bound.
    Time heard{};                      ///< Of a remote one.
  };

  Peer* find(const std::shared_ptr<Line>& line);
  void on_hello(const std::shared_ptr<Line>& line, const wire::Hello& hello);
  void on_session_message(Peer& peer, const ControlMessage& message,
                          const std::vector<std::byte>& frame);
  void on_release(const Peer& peer, const wire::Release& release);
  void on_ask(const Peer& peer, const wire::Ask& question);
  void on_list_upcoming(SessionId id, const wire::ListUpcoming& question);
  void subscribe(const Peer& peer, const wire::Subscribe& request);
  void subscribe(const ClientInfo& client, wire::SubscribeT request, bool said_so);
  // daemon_live.cpp
  bool on_live_message(const Peer& peer, const ControlMessage& message,
                       const std::vector<std::byte>& frame);
  FeedHost* live_feed(const Peer& peer, Error& why) const;
  FeedHost* feed_of_producer(const Peer& peer, std::uint32_t producer);
  std::optional<ArenaFile> find_area(SessionId session, ArenaNumber number) const;
  std::string describe_live() const;
  void refuse_producer(const Peer& peer, std::uint32_t producer, const Error& error);
  template <class Table>
  bool pass_on(const Peer& peer, const ControlMessage& message);
  template <class Table>
  bool ask_version(const Peer& peer, const ControlMessage& message);
  void refuse(SessionId id, const Error& error, std::uint32_t subscription);
  void close_session(SessionId id);
  void say_alive();
  void send(Peer& peer, Message message);
  void open_feed();
  void put_away(const Error& why);

  World& world_;
  Network& network_;
  Machine& machine_;
  const std::uint64_t number_;
  unsigned stopped_ = 0;
  std::deque<std::function<void()>> backlog_;  ///< What comes while it is stopped.
  std::map<SessionId, Peer> peers_;
  PendingSubscriptions pending_;
  std::unique_ptr<FeedHost> feed_;  ///< Null while it is absent.
  std::vector<std::unique_ptr<FeedHost>> retired_;
  ArenaNumber arena_{1};  ///< Of the latest arena.
};

}  // namespace batchwright::simulation
