#pragma once

#include <compare>
#include <cstdint>

#include "formats/formats.h"

namespace batchwright {

/// A subscription's name: the session's, and the number the client chose.
struct SubscriptionKey {
  SessionId session;
  std::uint32_t number = 0;
  friend constexpr auto operator<=>(const SubscriptionKey&, const SubscriptionKey&) = default;
};

}  // namespace batchwright
