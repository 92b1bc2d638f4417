#include "daemon/delivery/feed/core/events.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace batchwright {
namespace {

/// In the order of FeedEvent.
constexpr std::array<std::string_view, std::variant_size_v<FeedEvent>> kNames{
    "Started",       "SubscribeRequested", "Unsubscribed",    "Released",
    "ProgramWaits",  "ReasonAsked",        "SessionEnded",    "ProcessExited",
    "ArenaReleased", "PlanReady",          "PlanFailed",      "PlanOutdated",
    "BatchReady",    "BatchFailed",        "BatchSent",       "SlotPoisoned",
    "Written",       "SettingsChanged",    "DataOverwritten", "NotReplaced",
    "Retired",       "TimerDue",           "UpcomingAsked",   "LiveAsked",
    "SlotsGrown",    "SlotsNotGrown",      "StepsWritten"};

using Subject = std::pair<std::uint64_t, std::uint64_t>;

/// What an event is about, in two numbers.
template <class One>
Subject subject_of(const One& event) {
  if constexpr (requires { event.key; }) {
    return {event.key.session.value, event.key.number.value};
  } else if constexpr (requires { event.session; }) {
    return {event.session.value, 0};
  } else if constexpr (requires { event.asked; }) {
    return {event.client.session.value, event.asked.index()};
  } else if constexpr (requires { event.client; }) {
    return {event.client.session.value, event.request.subscription};
  } else if constexpr (requires { event.assignment; }) {
    return {event.assignment.id.epoch.value, event.assignment.id.index.value};
  } else if constexpr (requires { event.epoch; }) {
    return {event.epoch.value, 0};
  } else if constexpr (requires { event.slot; }) {
    return {event.slot.index.value, 0};
  } else if constexpr (requires { event.upto; }) {
    return {event.upto, 0};
  } else if constexpr (requires { event.timer; }) {
    return {static_cast<std::uint64_t>(event.timer), 0};
  } else {
    return {0, 0};
  }
}

}  // namespace

std::string_view name_of(const FeedEvent& event) { return kNames[event.index()]; }

void EventRing::add(const FeedEvent& event, WaitingTimes::Time now) {
  const Subject subject = std::visit([](const auto& one) { return subject_of(one); }, event);
  entries_[added_++ % kEvents] = {now, static_cast<std::uint8_t>(event.index()), subject.first,
                                  subject.second};
}

std::string EventRing::describe() const {
  std::string text;
  if (added_ == 0) return text;
  const auto last = entries_[(added_ - 1) % kEvents].when;
  for (std::size_t i = added_ - std::min(added_, kEvents); i < added_; ++i) {
    const Entry& entry = entries_[i % kEvents];
    const auto before = std::chrono::duration_cast<std::chrono::microseconds>(last - entry.when);
    text += fmt::format("{}-{} us: {} {:x} {}", text.empty() ? "" : "; ", before.count(),
                        kNames[entry.kind], entry.first, entry.second);
  }
  return text;
}

}  // namespace batchwright
