#pragma once

#include <map>

#include "daemon/delivery/feed/core/slots/slot_admission.h"

namespace batchwright::test {

/// The rule on slots with the states of its subscriptions, which SubscriptionTable keeps otherwise.
struct AdmissionStates : SlotAdmission {
  using SlotAdmission::SlotAdmission;

  void note(const SubscriptionKey& key, const AdmissionState& state) {
    const auto found = states.find(key);
    change(key, found == states.end() ? nullptr : &found->second, &state);
    states.insert_or_assign(key, state);
  }
  void forget(const SubscriptionKey& key) {
    change(key, &states.at(key), nullptr);
    states.erase(key);
  }
  bool may_take(const SubscriptionKey& key, std::size_t held, bool is_held) const {
    return SlotAdmission::may_take(states.at(key), held, is_held);
  }

  std::map<SubscriptionKey, AdmissionState> states;
};

}  // namespace batchwright::test
