#include "client/library/link/silence.h"

namespace batchwright {

void Silence::flowed(std::uint64_t bytes, Clock::time_point now) {
  if (bytes - bytes_ < kLeastFlow) return;
  bytes_ = bytes;
  heard_ = now;
}

bool Silence::is_too_long(Clock::time_point now) {
  if (now - heard_ < kLongest) {
    suspected_.reset();
    return false;
  }
  if (!suspected_) suspected_ = now;
  return now - *suspected_ >= kSecondLook;
}

}  // namespace batchwright
