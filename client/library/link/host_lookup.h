#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "formats/formats.h"

namespace batchwright {

/// Finds the address of a `tcp://` endpoint whose host is a name.
///
/// The system's resolver takes the time it takes, of minutes where no server answers. libzmq would
/// ask it on the thread that moves bytes, and the end of every socket waits for that one. So a
/// thread that no call waits for asks, and leaves the answer where the next attempt finds it.
/// Threads: one at a time. Time is an argument.
class HostLookup {
 public:
  using Clock = std::chrono::steady_clock;

  /// How long a name that was not found is left alone.
  static constexpr std::chrono::milliseconds kPause{500};
  /// Where an address does not answer for so long, the name may stand for another by now.
  static constexpr std::chrono::seconds kFresh{5};

  explicit HostLookup(std::string endpoint);

  /// Whether there is a name to look up.
  bool is_needed() const { return !host_.empty(); }
  /// The endpoint with its host's address: that of the lookup under way, or of a new one. Empty
  /// while there is none; then trouble() says why. Waits for a moment, as a name may be at hand.
  /// Errors: io_error, where no thread is to be had.
  Result<std::optional<std::string>> address(Clock::time_point now);
  /// Forgets the address if it is no longer fresh; whether it did.
  bool forget_stale(Clock::time_point now);
  /// Why there is no address; empty when there is one.
  std::string trouble() const;

 private:
  struct Answer;
  bool has_failed() const;

  std::string endpoint_;
  std::string host_;  ///< Empty: it is an address already.
  std::string port_;  ///< With its colon.
  std::shared_ptr<Answer> answer_;
  Clock::time_point asked_{};
};

}  // namespace batchwright
