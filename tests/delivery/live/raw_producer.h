#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/delivery/raw_client.h"
#include "tests/delivery/test_server.h"

namespace batchwright::test {

/// A live feed "live": x float32 [T, 2], ids int32 [T], score float32 []. Steps of `step`
/// sequences.
FeedSettings live_feed(std::uint32_t step, std::uint32_t world = 1);

/// A sequence as a producer offers it: all of its values follow from `number`.
struct Offered {
  std::uint64_t number = 0;
  std::uint32_t length = 0;
  std::uint64_t version = 0;
  std::uint64_t group = kNoGroup;
  std::uint32_t group_size = 0;
  float weight = 1;
  std::uint64_t epoch = 0;
};
float x_value(std::uint64_t number, std::size_t i);
std::int32_t id_value(std::uint64_t number, std::size_t i);

/// Where its fields lie from its own first byte on.
std::vector<std::byte> bytes_of_sequence(const Offered& sequence);

/// A Push of these, and their bytes, which lie one after the other from `at` on.
struct LaidOutPush {
  wire::PushT push;
  std::vector<std::byte> bytes;
};
LaidOutPush lay_out(const std::vector<Offered>& sequences, std::uint64_t at = 0);

/// A producer that speaks message by message.
class RawProducer {
 public:
  /// Hello, and Produce. `area_bytes`: 0 has it send frames.
  RawProducer(const TestServer& server, const std::string& name, std::uint64_t area_bytes = 0);
  ~RawProducer();

  RawClient& client() { return client_; }
  const wire::ProducedT& produced() const { return produced_; }
  /// Offers them in one Push, and does not wait for the answer. In an area they lie one after the
  /// other from `at` on.
  void offer(const std::vector<Offered>& sequences, std::int64_t timeout_ms = -1,
             std::uint64_t at = 0);
  /// The same in a frame that comes in parts of so many bytes; each but the last is answered before
  /// the next is sent. The answer to the last of them, or the first with a code.
  std::optional<wire::AcceptedT> push_in_parts(const std::vector<Offered>& sequences,
                                               std::size_t part_bytes);
  /// One part, with these bytes: of a frame of `total`, from `at` on.
  std::optional<wire::AcceptedT> push_part(std::uint64_t total, std::uint64_t at,
                                           std::span<const std::byte> part);
  /// The answer to it; empty where another message comes.
  std::optional<wire::AcceptedT> accepted();
  /// Both: the numbers before this one are accepted.
  std::uint64_t push(const std::vector<Offered>& sequences);
  std::optional<wire::ClaimedT> claim(std::uint32_t count, std::int64_t timeout_ms = -1);
  std::optional<wire::OutcomesT> outcomes(std::uint64_t first = 0);
  std::byte* area() { return area_; }

 private:
  RawClient client_;
  wire::ProducedT produced_;
  std::byte* area_ = nullptr;
  std::uint32_t question_ = 0;
};

/// What a client without an arena got in one batch. Of a feed with a dataset `numbers`, `versions`
/// and `producers` are empty.
struct SeenBatch {
  wire::DeliveryT ticket;
  std::vector<std::string> keys;
  std::vector<std::uint64_t> numbers;
  std::vector<float> weights;
  std::vector<std::uint64_t> versions;
  std::vector<std::string> producers;  ///< Of each row.
  std::vector<std::uint64_t> epochs;   ///< Empty: it has none.
  std::uint64_t version = 0;
  std::uint32_t zeroed = 0;
  std::uint64_t batch_frames = 0;
  std::uint64_t step_frames = 0;
  std::uint64_t step_sequences = 0;
  double loss_weight = 0;
  std::vector<std::uint32_t> lengths;
  std::vector<std::uint32_t> starts;
  std::vector<std::uint8_t> flags;
  std::vector<std::byte> x;                     ///< [B, L, 2] float32
  std::vector<std::vector<std::byte>> tensors;  ///< Of all fields.
};

/// A subscription of a client that gets its batches as messages: to feed "live", or another.
class RawTrainer {
 public:
  explicit RawTrainer(const TestServer& server, wire::SubscribeT request = {});

  RawClient& client() { return client_; }
  const std::optional<wire::SubscribedT>& subscribed() const { return subscribed_; }
  const std::optional<wire::RefusedT>& refused() const { return refused_; }
  void wait(std::uint32_t holds = 0) { client_.say_waiting(1, holds); }
  /// The next batch, which it holds; empty where another message comes, which may be refused().
  std::optional<SeenBatch> next();
  void release(const SeenBatch& batch);
  std::uint64_t advance(std::uint64_t version, bool restored = false);

 private:
  RawClient client_;
  std::optional<wire::SubscribedT> subscribed_;
  std::optional<wire::RefusedT> refused_;
};

}  // namespace batchwright::test
