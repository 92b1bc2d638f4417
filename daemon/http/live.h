#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "daemon/http/routes.h"
#include "daemon/stats/stats.h"

namespace batchwright {

/// One stream of server-sent events and its readers. An event is made once for all readers, and
/// none while there are none. Each event says everything again, so slow readers may miss some.
///
/// Lifetime: `loop` and `log` outlive it; nothing of it is called once it is gone.
/// Threads: the loop's only.
class LiveStream {
 public:
  using Event = std::shared_ptr<const std::string>;  ///< An event's bytes on the wire.
  using Push = std::function<void(const Event&)>;    ///< Takes an event or skips it; never waits.

  LiveStream(boost::asio::io_context& loop, LivePage page, std::size_t most_readers, EventLog& log)
      : page_(std::move(page)), most_readers_(most_readers), timer_(loop), log_(log) {}

  /// Adds a reader, which gets the events to come. Empty when there are enough already.
  std::optional<std::uint64_t> join(Push push);
  void leave(std::uint64_t reader) { readers_.erase(reader); }
  std::size_t readers() const { return readers_.size(); }
  /// The event of this moment; null when it cannot be made.
  Event make() const;
  void stop();

 private:
  void tick();

  LivePage page_;
  std::size_t most_readers_;
  boost::asio::steady_timer timer_;
  EventLog& log_;
  std::map<std::uint64_t, Push> readers_;
  std::uint64_t last_ = 0;
  bool ticking_ = false;
  std::shared_ptr<const bool> alive_ =
      std::make_shared<const bool>(true);  ///< Watched by the timer.
};

}  // namespace batchwright
