#pragma once

#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "client/library/batchwright/client.h"
#include "tests/support/flip_byte.h"

namespace batchwright::test {

/// A trainer with one subscription, over the C ABI. Waits end after 20 s.
class Trainer {
 public:
  /// `reconnect_ms` 0: the daemon's death is final.
  explicit Trainer(const std::string& endpoint, std::int64_t reconnect_ms = 60'000) {
    bw_connect_options options = BW_CONNECT_OPTIONS_INIT;
    options.reconnect_ms = reconnect_ms;
    require(bw_connect(endpoint.c_str(), &options, &connection_));
  }
  ~Trainer() {
    bw_release(batch_);
    bw_unsubscribe(subscription_);
    bw_close(connection_);
  }
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  void subscribe(const std::function<void(bw_subscribe_options&)>& change) {
    bw_subscribe_options options = BW_SUBSCRIBE_OPTIONS_INIT;
    options.feed = "train";
    change(options);
    require(bw_subscribe(connection_, &options, &subscription_));
  }
  std::string terms() const { return bw_subscription_terms(subscription_); }
  const bw_grant& grant() const { return *bw_subscription_grant(subscription_); }

  /// Releases the batch at hand and takes the next. BW_EPOCH_END is passed over.
  bw_status next() {
    bw_status status = BW_EPOCH_END;
    while (status == BW_EPOCH_END) status = step();
    return status;
  }
  /// The same for one event.
  bw_status step() {
    bw_release(batch_);
    batch_ = nullptr;
    return bw_next(subscription_, 20'000, &batch_, nullptr);
  }
  const bw_batch* batch() const { return batch_; }
  std::size_t last_rows() const { return bw_batch_get_header(batch_)->sequences; }
  std::vector<std::uint64_t> next_ordinals() {
    require(next());
    const bw_batch_header& header = *bw_batch_get_header(batch_);
    return {header.ordinals, header.ordinals + header.sequences};
  }
  /// Shows all batches up to the end of the epoch.
  void epoch(const std::function<void(const bw_batch*)>& show) {
    bw_status status = BW_OK;
    while ((status = step()) == BW_OK) show(batch_);
    if (status != BW_EPOCH_END && status != BW_END) require(status);
  }
  /// The ordinals of each batch until the counted epochs are over.
  std::vector<std::vector<std::uint64_t>> ordinals_until_end() {
    std::vector<std::vector<std::uint64_t>> all;
    bw_status status = BW_OK;
    while ((status = next()) == BW_OK) {
      const bw_batch_header& header = *bw_batch_get_header(batch_);
      all.emplace_back(header.ordinals, header.ordinals + header.sequences);
    }
    if (status != BW_END) require(status);
    return all;
  }
  bw_position position() const {
    bw_position position{};
    require(bw_subscription_position(subscription_, &position));
    return position;
  }

 private:
  static void require(bw_status status) {
    if (status != BW_OK) throw std::runtime_error(bw_error_message());
  }

  bw_connection* connection_ = nullptr;
  bw_subscription* subscription_ = nullptr;
  bw_batch* batch_ = nullptr;
};

}  // namespace batchwright::test
