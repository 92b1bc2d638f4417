#include "daemon/delivery/feed/core/waits.h"

#include <algorithm>

namespace batchwright {

std::optional<std::chrono::seconds> LongWait::note(bool waits, std::uint64_t delivered, Time now) {
  if (waits && (!waits_ || delivered_ != delivered)) since_ = now;
  waits_ = waits;
  delivered_ = delivered;
  if (!waits || now - since_ < kLook) return {};
  const bool was_calm = !long_until_ || now - *long_until_ > pause_ + kLook;
  long_until_ = now;
  if (!was_calm && now < silent_until_) return {};
  pause_ = was_calm ? kLook : std::min(2 * pause_, kMostPause);
  silent_until_ = now + pause_;
  return std::chrono::duration_cast<std::chrono::seconds>(now - since_);
}

}  // namespace batchwright
