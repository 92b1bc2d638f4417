#include "daemon/stats/waiting_times.h"

#include <algorithm>
#include <utility>

namespace batchwright {

const char* name_of(WaitingFor waited_for) {
  switch (waited_for) {
    case WaitingFor::none: return "none";
    case WaitingFor::daemon: return "daemon";
    case WaitingFor::slot: return "slot";
    case WaitingFor::step: return "step";
    case WaitingFor::client: return "client";
  }
  return "unknown";
}

void WaitingTimes::become(WaitingFor waited_for, Time now) {
  // Told whenever it may have changed: mostly it has not, and the wait at hand goes on.
  if (waited_for == waited_for_) return;
  before_.at(static_cast<std::size_t>(waited_for_)) += now - since_;
  waited_for_ = waited_for;
  since_ = now;
}

void WaitingTimes::add_short(std::chrono::microseconds waited, Time now) {
  const auto passed = now - std::exchange(told_, now);
  before_.at(static_cast<std::size_t>(WaitingFor::daemon)) +=
      std::min<std::chrono::steady_clock::duration>(waited, passed);
}

double WaitingTimes::seconds(WaitingFor waited_for, Time now) const {
  auto sum = before_.at(static_cast<std::size_t>(waited_for));
  // The wait at hand counts at once: a hanging client's figure grows while it hangs.
  if (waited_for == waited_for_) sum += now - since_;
  return std::chrono::duration<double>(sum).count();
}

double WaitingTimes::daemon_seconds(Time now) const {
  return seconds(WaitingFor::daemon, now) + slot_seconds(now) + step_seconds(now);
}

double WaitingTimes::slot_seconds(Time now) const { return seconds(WaitingFor::slot, now); }

double WaitingTimes::step_seconds(Time now) const { return seconds(WaitingFor::step, now); }

double WaitingTimes::client_seconds(Time now) const { return seconds(WaitingFor::client, now); }

}  // namespace batchwright
