#pragma once

#include <memory>
#include <optional>
#include <string>

#include "client/command/keys.h"
#include "formats/formats.h"

namespace batchwright {

/// The source of events.
struct EventSource {
  std::string endpoint;    ///< The daemon's endpoint, or that of its events.
  std::string feed;        ///< Empty: all events.
  std::string server_key;  ///< Empty: no encryption.
  KeyPair own;
};

/// Asks the daemon where its events are. Errors: timed_out (10 s), disconnected (it refuses, with
/// its reason), not_found (it tells none), io_error.
Result<std::string> find_events(const EventSource& daemon);

/// Events as they come, and the command's only code that knows ZeroMQ.
/// Threads: one.
class EventStream {
 public:
  /// Errors: io_error, with the endpoint.
  static Result<std::unique_ptr<EventStream>> open(const EventSource& source);
  ~EventStream();
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

  /// The next event; empty when none comes for 100 ms. Errors: io_error.
  Result<std::optional<wire::EventT>> next();

 private:
  struct State;
  explicit EventStream(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace batchwright
