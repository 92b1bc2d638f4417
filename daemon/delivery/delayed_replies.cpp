#include "daemon/delivery/delayed_replies.h"

namespace batchwright {

DelayedReplies::DelayedReplies(boost::asio::io_context& loop, std::chrono::milliseconds pause,
                               std::function<void(SessionId, const Refusal&)> send)
    : send_(std::move(send)), rounds_(loop, pause, [this] { return send_due(); }) {}

bool DelayedReplies::add(SessionId session, Refusal refusal) {
  const bool is_first = waiting_.empty();
  auto& waiting = waiting_[session];
  if (waiting.size() >= kWaiting) return false;
  waiting.push_back(std::move(refusal));
  if (is_first) rounds_.start();
  return true;
}

bool DelayedReplies::send_due() {
  for (const auto& [session, refusal] : take_due()) send_(session, refusal);
  return !waiting_.empty();
}

std::vector<std::pair<SessionId, DelayedReplies::Refusal>> DelayedReplies::take_due() {
  std::vector<std::pair<SessionId, Refusal>> due;
  for (auto entry = waiting_.begin(); entry != waiting_.end();) {
    due.emplace_back(entry->first, std::move(entry->second.front()));
    entry->second.pop_front();
    entry = entry->second.empty() ? waiting_.erase(entry) : std::next(entry);
  }
  return due;
}

}  // namespace batchwright
