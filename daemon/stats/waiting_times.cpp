#include "daemon/stats/waiting_times.h"

namespace batchwright {

const char* name_of(WaitingFor waited_for) {
  switch (waited_for) {
    case WaitingFor::none: return "none";
    case WaitingFor::daemon: return "daemon";
    case WaitingFor::client: return "client";
  }
  return "unknown";
}

void WaitingTimes::become(WaitingFor waited_for, Time now) {
  // Told whenever it may have changed: mostly it has not, and the wait at hand goes on.
  if (waited_for == waited_for_) return;
  if (waited_for_ == WaitingFor::daemon) for_daemon_ += now - since_;
  if (waited_for_ == WaitingFor::client) for_client_ += now - since_;
  waited_for_ = waited_for;
  since_ = now;
}

double WaitingTimes::seconds(WaitingFor waited_for, std::chrono::steady_clock::duration before,
                             Time now) const {
  // The wait at hand counts at once: a hanging client's figure grows while it hangs.
  if (waited_for == waited_for_) before += now - since_;
  return std::chrono::duration<double>(before).count();
}

double WaitingTimes::daemon_seconds(Time now) const {
  return seconds(WaitingFor::daemon, for_daemon_, now);
}

double WaitingTimes::client_seconds(Time now) const {
  return seconds(WaitingFor::client, for_client_, now);
}

}  // namespace batchwright
