#include "daemon/delivery/late_answers.h"

namespace batchwright {

bool LateAnswers::add(SessionId session, Refusal refusal) {
  auto& waiting = waiting_[session];
  if (waiting.size() >= kWaiting) return false;
  waiting.push_back(std::move(refusal));
  return true;
}

std::vector<std::pair<SessionId, LateAnswers::Refusal>> LateAnswers::take_due() {
  std::vector<std::pair<SessionId, Refusal>> due;
  for (auto entry = waiting_.begin(); entry != waiting_.end();) {
    due.emplace_back(entry->first, std::move(entry->second.front()));
    entry->second.pop_front();
    entry = entry->second.empty() ? waiting_.erase(entry) : std::next(entry);
  }
  return due;
}

}  // namespace batchwright
