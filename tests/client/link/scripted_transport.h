#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/library/link/transport.h"
#include "tests/client/session/answers.h"

namespace batchwright::test {

/// A network and the daemon behind it under a script, in virtual time and in the test's own thread:
/// a wait of the session runs the script until something has come or the wait is over.
class ScriptedTransport final : public Transport {
 public:
  ScriptedTransport() { virtual_time_ = &time_; }

  std::uint64_t draw_token() override { return 7; }
  Result<std::unique_ptr<DaemonSocket>> connect(const Address& address) override {
    ++attempts;
    if (obstacle) return *obstacle;
    line_ = std::make_shared<Line>();
    line_->inline_batches = address.inline_batches;
    return std::unique_ptr<DaemonSocket>(std::make_unique<Socket>(*this, line_));
  }
  Result<std::shared_ptr<ArenaSource>> open_arenas(const std::string& /*path*/, SessionId /*id*/,
                                                   const Deadline& /*deadline*/) override {
    return std::shared_ptr<ArenaSource>(std::make_shared<Source>(*this, line_));
  }
  Result<void> wait(DaemonSocket* socket, const ArenaSource* /*arenas*/,
                    std::chrono::milliseconds limit) override {
    const Time end = time_ + limit;
    while (!woken_ && (socket == nullptr || (line_->inbox.empty() && !line_->cut))) {
      const auto first = script_.begin();
      if (first == script_.end() || first->first > end) {
        time_ = std::max(time_, end);
        break;
      }
      time_ = std::max(time_, first->first);
      const auto event = std::move(first->second);
      script_.erase(first);
      event();
    }
    woken_ = false;
    return {};
  }
  void wake() override { woken_ = true; }

  // The script.
  void after(std::chrono::milliseconds delay, std::function<void()> event) {
    script_.emplace(time_ + delay, std::move(event));
  }
  void pass(std::chrono::milliseconds time) { time_ += time; }
  /// The daemon says something, on the socket that was made last.
  template <class TableT>
  void say(TableT body, Payload batch = {}) {
    line_->inbox.push_back({received(std::move(body)), std::move(batch)});
  }
  /// The daemon is killed: its connections end, and no one listens.
  void die() {
    lives_ = false;
    if (line_) line_->cut = line_->ended = true;
  }
  /// A daemon listens again: it hears what the latest socket has kept for it.
  void rise() {
    lives_ = true;
    if (!line_ || line_->ended) return;
    for (const ControlMessage& message : std::exchange(line_->kept, {})) hear(message);
  }

  std::function<void(const ControlMessage&)> hear = [](const ControlMessage&) {};
  std::optional<Error> obstacle;         ///< What keeps sockets from being made.
  std::shared_ptr<const Mapping> arena;  ///< That every number stands for.
  std::function<Result<std::shared_ptr<const Area>>(ArenaNumber)> area;  ///< A producer's.
  std::vector<std::byte> frame;        ///< That came after the last message that had one.
  std::optional<std::uint64_t> bytes;  ///< That have come over the connection.
  std::size_t attempts = 0;            ///< Sockets that were asked for.

 private:
  /// One connection, as both ends see it.
  struct Line {
    std::deque<DaemonSocket::Incoming> inbox;
    std::vector<ControlMessage> kept;
    bool inline_batches = false;
    bool cut = false;    ///< Ended, and not reported yet.
    bool ended = false;  ///< For the arenas' connection, too.
  };
  class Socket final : public DaemonSocket {
   public:
    Socket(ScriptedTransport& world, std::shared_ptr<Line> line)
        : world_(world), line_(std::move(line)) {}

    Result<void> send(const flatbuffers::DetachedBuffer& message) override {
      auto sent =
          ControlMessage::decode(std::as_bytes(std::span(message.data(), message.size()))).value();
      if (world_.lives_) {
        world_.hear(sent);
      } else {
        line_->kept.push_back(std::move(sent));
      }
      return {};
    }
    Result<void> send_with(const flatbuffers::DetachedBuffer& message,
                           const Payload& second) override {
      world_.frame.assign(second.bytes.begin(), second.bytes.end());
      return send(message);
    }
    Result<void> send_last(const flatbuffers::DetachedBuffer& message) override {
      return send(message);
    }
    Result<std::optional<Incoming>> receive() override {
      if (line_->inbox.empty()) return std::optional<Incoming>();
      std::optional<Incoming> first = std::move(line_->inbox.front());
      line_->inbox.pop_front();
      return first;
    }
    std::optional<std::uint64_t> bytes_received() override { return world_.bytes; }
    bool cut() override { return std::exchange(line_->cut, false); }

   private:
    ScriptedTransport& world_;
    const std::shared_ptr<Line> line_;
  };
  class Source final : public ArenaSource {
   public:
    Source(ScriptedTransport& world, std::shared_ptr<Line> line)
        : world_(world), line_(std::move(line)) {}

    Result<std::shared_ptr<const Mapping>> fetch(ArenaNumber /*arena*/,
                                                 const Deadline& /*deadline*/) override {
      return world_.arena;
    }
    Result<std::shared_ptr<const Area>> fetch_area(ArenaNumber number,
                                                   const Deadline& /*deadline*/) override {
      return world_.area(number);
    }
    bool alive() const override { return !line_->ended; }
    int descriptor() const override { return -1; }

   private:
    ScriptedTransport& world_;
    const std::shared_ptr<Line> line_;
  };

  Time time_{std::chrono::hours(1)};
  std::multimap<Time, std::function<void()>> script_;
  std::shared_ptr<Line> line_;
  bool lives_ = true;
  bool woken_ = false;
};

}  // namespace batchwright::test
