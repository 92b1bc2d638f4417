#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "daemon/stats/stats.h"

namespace batchwright {

/// Stands in front of ZeroMQ's accept, and leaves the last descriptors of the process to others.
/// What it lets in is counted from there on (intake.h).
///
/// libzmq accepts whatever comes, and ends the process when a Unix socket's accept finds no
/// descriptor left: silent connections without a key would do. It accepts by accept4(), which this
/// guard answers in its place: a connection whose descriptor is one of the last is closed at once.
/// The kernel gives out the lowest number that is free, so that a number tells how many are in use.
/// A quarter of all is out of reach for `tcp://`, so that clients on this machine and the endpoint
/// for statistics are served whatever the network does; an eighth, at most 64, for `ipc://` too.
///
/// Lifetime: one guards at a time, from construction to destruction.
/// Threads: the event loop, but ZeroMQ's for what they accept.
class AcceptGuard {
 public:
  /// Reads how many descriptors this process may have.
  AcceptGuard(boost::asio::io_context& loop, EventLog& log);
  ~AcceptGuard();
  AcceptGuard(const AcceptGuard&) = delete;
  AcceptGuard& operator=(const AcceptGuard&) = delete;

  /// Notes a refused connection on the loop. Threads: any; never waits for the loop.
  void refused();
  /// Notes a connection that is closed because it sent too much (intake.h), with the guard that is
  /// there. Threads: any; never waits for the loop.
  static void tell_flood(int connection);

 private:
  void note();
  void flooded(std::string peer);

  boost::asio::io_context& loop_;
  EventLog& log_;
  std::atomic<std::uint64_t> untold_ = 0;
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

/// The first descriptors that new connections do not get, of so many.
struct DescriptorShares {
  int remote = 0;
  int local = 0;
};
DescriptorShares shares_of(std::uint64_t descriptors);

}  // namespace batchwright
