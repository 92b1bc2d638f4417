#include "tests/simulation/world/network.h"

#include <utility>

namespace batchwright::simulation {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// What the kernel or ZeroMQ's thread may not have taken when a process dies.
constexpr microseconds kUnsent{300};

}  // namespace

std::shared_ptr<Line> Network::connect(const std::shared_ptr<Process>& owner) {
  auto line = std::make_shared<Line>();
  line->owner = owner;
  line->remote = owner->is_remote();
  std::erase_if(lines_, [](const auto& each) { return each.expired(); });
  lines_.push_back(line);
  world_.after(world_.dice.time(microseconds(20), milliseconds(1)), [this, line] { link(line); });
  return line;
}

/// Tells the daemon what was kept for it.
void Network::link(const std::shared_ptr<Line>& line) {
  if (daemon_ == nullptr || line->daemon != 0 || line->over) return;
  line->daemon = daemon_->number();
  for (Message& message : std::exchange(line->kept, {})) send(line, std::move(message));
}

Time Network::arrival(Line& line, Time& last) {
  const Duration most = line.remote ? milliseconds(20) : milliseconds(1);
  last = std::max({last, line.stalls_until,
                   world_.now() + world_.dice.time(microseconds(line.remote ? 200 : 10), most)});
  return last;
}

void Network::send(const std::shared_ptr<Line>& line, Message message) {
  if (line->over) return;
  if (line->daemon == 0) return line->kept.push_back(std::move(message));
  const Time sent = world_.now();
  const Time arrives = arrival(*line, line->to_daemon);
  std::vector<std::byte> frame;
  if (message.batch) frame = message.batch();
  world_.after(arrives - sent,
               [this, line, sent, bytes = std::move(message.bytes), frame = std::move(frame)] {
                 if (line->lost_since && sent >= *line->lost_since) return;
                 if (daemon_ == nullptr || daemon_->number() != line->daemon) return;
                 daemon_->post(Duration::zero(), [daemon = daemon_, line, bytes, frame] {
                   daemon->hear(line, bytes, frame);
                 });
               });
}

void Network::close(const std::shared_ptr<Line>& line, bool flushed) {
  if (std::exchange(line->over, true) || flushed) return;
  line->lost_since = world_.now() - world_.dice.time(microseconds(1), kUnsent);
}

/// As with ZeroMQ, the daemon comes to the end of a connection after all that was sent over it.
bool Network::send_to_client(const std::shared_ptr<Line>& line, Message message) {
  if (line->over) {
    if (message.sent) message.sent();
    return world_.now() <= line->to_daemon;
  }
  const Time sent = world_.now();
  const Time arrives = arrival(*line, line->to_client);
  world_.after(arrives - sent, [this, line, sent, message = std::move(message)]() mutable {
    deliver(line, std::move(message), sent);
  });
  return true;
}

void Network::deliver(const std::shared_ptr<Line>& line, Message message, Time sent) {
  const auto owner = line->owner.lock();
  const bool is_lost = line->over && (!line->lost_since || sent >= *line->lost_since);
  if (owner && !is_lost && !owner->was_killed()) {
    Received received{std::move(message.bytes), nullptr};
    if (message.batch) {
      received.batch = std::make_shared<const std::vector<std::byte>>(message.batch());
    }
    line->inbox.push_back(std::move(received));
    owner->wake();
  }
  if (message.sent) message.sent();
}

void Network::listen(Listener& daemon) {
  daemon_ = &daemon;
  for (const auto& weak : lines_) {
    const auto line = weak.lock();
    if (!line || line->daemon != 0) continue;
    world_.after(world_.dice.time(microseconds(100), milliseconds(100)),
                 [this, line] { link(line); });
  }
}

void Network::end(Listener& daemon) {
  if (daemon_ == &daemon) daemon_ = nullptr;
  for (const auto& weak : lines_) {
    const auto line = weak.lock();
    if (line && line->daemon == daemon.number()) cut(line);
  }
}

void Network::cut(const std::shared_ptr<Line>& line) {
  if (std::exchange(line->over, true)) return;
  line->lost_since = world_.now() - world_.dice.time(microseconds(1), milliseconds(2));
  world_.after(world_.dice.time(microseconds(50), milliseconds(5)), [line] {
    line->cut = true;
    if (const auto owner = line->owner.lock()) owner->wake();
  });
}

std::shared_ptr<Line> Network::any_remote() {
  std::vector<std::shared_ptr<Line>> all;
  for (const auto& weak : lines_) {
    auto line = weak.lock();
    if (line && line->remote && line->daemon != 0 && !line->over) all.push_back(std::move(line));
  }
  return all.empty() ? nullptr : world_.dice.pick(all);
}

}  // namespace batchwright::simulation
