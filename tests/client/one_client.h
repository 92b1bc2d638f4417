#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "client/library/batchwright/client.h"

namespace batchwright::test {

/// What a wait in a test may take: far more than it takes.
inline constexpr std::int64_t kLong = 20'000;

struct CloseAll {
  void operator()(bw_connection* raw) const { bw_close(raw); }
  void operator()(bw_subscription* raw) const { bw_unsubscribe(raw); }
  void operator()(bw_batch* raw) const { bw_release(raw); }
};
using ConnectionHandle = std::unique_ptr<bw_connection, CloseAll>;
using SubscriptionHandle = std::unique_ptr<bw_subscription, CloseAll>;
using BatchHandle = std::unique_ptr<bw_batch, CloseAll>;

inline bw_connect_options connecting() { return BW_CONNECT_OPTIONS_INIT; }

inline ConnectionHandle connect(const std::string& endpoint,
                                const bw_connect_options& options = connecting()) {
  bw_connection* raw = nullptr;
  REQUIRE_MESSAGE(bw_connect(endpoint.c_str(), &options, &raw) == BW_OK, bw_error_message());
  return ConnectionHandle(raw);
}

inline bw_subscribe_options train() {
  bw_subscribe_options options = BW_SUBSCRIBE_OPTIONS_INIT;
  options.feed = "train";
  return options;
}

inline SubscriptionHandle subscribe(const ConnectionHandle& connection,
                                    const bw_subscribe_options& options = train()) {
  bw_subscription* raw = nullptr;
  REQUIRE_MESSAGE(bw_subscribe(connection.get(), &options, &raw) == BW_OK, bw_error_message());
  return SubscriptionHandle(raw);
}

/// Waits until it holds, at most kLong.
inline bool eventually(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLong);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

/// The next event, which must be a batch.
inline BatchHandle next_batch(const SubscriptionHandle& subscription) {
  bw_batch* raw = nullptr;
  REQUIRE_MESSAGE(bw_next(subscription.get(), kLong, &raw, nullptr) == BW_OK, bw_error_message());
  return BatchHandle(raw);
}

/// The next event, which must be something else.
inline bw_status next_status(const SubscriptionHandle& subscription, std::int64_t limit = kLong) {
  bw_batch* raw = nullptr;
  const bw_status status = bw_next(subscription.get(), limit, &raw, nullptr);
  REQUIRE(raw == nullptr);
  return status;
}

inline bool error_says(const std::string& words) {
  const std::string text = bw_error_message();
  const bool found = text.find(words) != std::string::npos;
  if (!found) MESSAGE("the text is: " << text);
  return found;
}

inline bw_position position_of(const SubscriptionHandle& subscription) {
  bw_position position{};
  REQUIRE(bw_subscription_position(subscription.get(), &position) == BW_OK);
  return position;
}

}  // namespace batchwright::test
