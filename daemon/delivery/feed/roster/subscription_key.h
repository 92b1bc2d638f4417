#pragma once

#include <compare>

#include "formats/formats.h"

namespace batchwright {

/// A subscription's name: the session's, and the number the client chose.
struct SubscriptionKey {
  SessionId session;
  SubscriptionNumber number;
  friend constexpr auto operator<=>(const SubscriptionKey&, const SubscriptionKey&) = default;
};

}  // namespace batchwright
