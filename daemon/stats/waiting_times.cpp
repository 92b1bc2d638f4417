#include "daemon/stats/waiting_times.h"

namespace batchwright {

const char* name_of(WaitingFor whom) {
  switch (whom) {
    case WaitingFor::none: return "none";
    case WaitingFor::daemon: return "daemon";
    case WaitingFor::client: return "client";
  }
  return "unknown";
}

void WaitingTimes::become(WaitingFor whom, Time now) {
  if (whom == whom_) return;
  if (whom_ == WaitingFor::daemon) for_daemon_ += now - since_;
  if (whom_ == WaitingFor::client) for_client_ += now - since_;
  whom_ = whom;
  since_ = now;
}

double WaitingTimes::seconds(WaitingFor whom, std::chrono::steady_clock::duration before,
                             Time now) const {
  if (whom == whom_) before += now - since_;
  return std::chrono::duration<double>(before).count();
}

double WaitingTimes::daemon_seconds(Time now) const {
  return seconds(WaitingFor::daemon, for_daemon_, now);
}

double WaitingTimes::client_seconds(Time now) const {
  return seconds(WaitingFor::client, for_client_, now);
}

}  // namespace batchwright
