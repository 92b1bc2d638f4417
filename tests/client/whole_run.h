#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "tests/client/fake/fake_daemon.h"
#include "tests/client/one_client.h"

namespace batchwright::test {

/// What a program saw of a subscription until nothing followed.
struct Seen {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> batches;  ///< Epoch and index.
  std::vector<std::uint64_t> ended;                              ///< Epochs.
  bw_status last = BW_OK;
};

/// Takes all there is, and gives each batch to `use`. Whenever nothing comes, `meanwhile` is
/// called.
inline Seen run_to_end(
    const SubscriptionHandle& subscription, const std::function<void()>& meanwhile,
    const std::function<void(BatchHandle)>& use = [](BatchHandle) {}) {
  Seen seen;
  for (int quiet = 0; quiet < 2000;) {
    bw_batch* raw = nullptr;
    std::uint64_t epoch = 0;
    seen.last = bw_next(subscription.get(), 10, &raw, &epoch);
    quiet = seen.last == BW_TIMED_OUT ? quiet + 1 : 0;
    if (seen.last == BW_OK) {
      seen.batches.emplace_back(epoch, bw_batch_get_header(raw)->index);
      use(BatchHandle(raw));
    } else if (seen.last == BW_EPOCH_END) {
      seen.ended.push_back(epoch);
    } else if (seen.last == BW_TIMED_OUT) {
      meanwhile();
    } else {
      break;
    }
  }
  return seen;
}

/// Waits for a batch, in vain, until the daemon has heard that; a client speaks while it waits.
inline bool hears_in_a_wait(FakeDaemon& daemon, const SubscriptionHandle& subscription,
                            const std::function<bool(const FakeDaemon::Heard&)>& holds) {
  for (int i = 0; i < 1000 && !daemon.has_heard(holds); ++i) {
    if (next_status(subscription, 20) != BW_TIMED_OUT) return false;
  }
  return daemon.has_heard(holds);
}

/// The batches of `epochs` epochs in their order, each of `count` batches.
inline std::vector<std::pair<std::uint64_t, std::uint64_t>> in_order(std::uint64_t epochs,
                                                                     std::uint64_t count) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> all;
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    for (std::uint64_t index = 0; index < count; ++index) all.emplace_back(epoch, index);
  }
  return all;
}

}  // namespace batchwright::test
