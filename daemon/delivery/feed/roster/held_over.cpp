#include "daemon/delivery/feed/roster/held_over.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace batchwright {

void HeldOver::keep(const ClientInfo& client, std::vector<SlotRef> slots) {
  if (slots.empty()) return;
  Left& left = left_[client.session];
  left.client = batchwright::describe(client);
  left.slots.insert(left.slots.end(), std::make_move_iterator(slots.begin()),
                    std::make_move_iterator(slots.end()));
}

std::vector<SlotRef> HeldOver::let_go(SessionId session) {
  auto gone = left_.extract(session);
  return gone ? std::move(gone.mapped().slots) : std::vector<SlotRef>();
}

std::size_t HeldOver::slots_of(SessionId session) const {
  const auto found = left_.find(session);
  return found == left_.end() ? 0 : found->second.slots.size();
}

std::size_t HeldOver::slots() const {
  std::size_t sum = 0;
  for (const auto& [session, left] : left_) sum += left.slots.size();
  return sum;
}

std::string HeldOver::describe() const {
  std::string text;
  for (const auto& [session, left] : left_) {
    text += fmt::format("{}{}, whose session ended, holds {}", text.empty() ? "" : ", ",
                        left.client, left.slots.size());
  }
  return text;
}

}  // namespace batchwright
