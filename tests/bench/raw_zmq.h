#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <functional>
#include <string>
#include <zmq.hpp>

namespace batchwright::bench {

/// A child process that serves one socket until this object goes, or the thread that made it. Made
/// before the parent has a ZeroMQ context, which does not survive a fork.
class Peer {
 public:
  Peer(zmq::socket_type type, const std::string& endpoint,
       const std::function<void(zmq::socket_t&)>& serve)
      : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
      zmq::context_t context;
      zmq::socket_t socket(context, type);
      socket.bind(endpoint);
      serve(socket);
    } catch (const zmq::error_t& error) {
      std::fprintf(stderr, "raw peer: %s\n", error.what());
    }
    std::_Exit(1);
  }
  ~Peer() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  /// Seconds of processor time that its threads have taken.
  double cpu_seconds() const {
    clockid_t clock{};
    timespec time{};
    if (::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return 0;
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

 private:
  pid_t pid_;
};

}  // namespace batchwright::bench
