#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "formats/formats.h"
#include "tests/support/temporary_folder.h"

namespace batchwright::test {

/// How a fake daemon behaves where it answers by itself.
struct Manners {
  std::uint16_t protocol = kProtocolVersion;
  bool answers_hello = true;
  bool answers_subscribe = true;
  bool seals = true;  ///< The arena.
  std::uint32_t world = 1;
  std::uint64_t steps = 2;  ///< Of each epoch.
};

/// A daemon without feeds, storage or plans, so that a test can have it say anything. It answers
/// Hello, Subscribe and arena requests; all else is sent by the test.
/// Threads: the test's own; a thread inside owns the sockets.
class FakeDaemon {
 public:
  explicit FakeDaemon(Manners manners = {});
  ~FakeDaemon();
  FakeDaemon(const FakeDaemon&) = delete;
  FakeDaemon& operator=(const FakeDaemon&) = delete;

  std::string endpoint() const { return "ipc://" + (folder_ / "s").string(); }

  /// Puts a batch of two rows of 3 and 2 frames into a slot of its own, and says where it lies.
  wire::DeliveryT lay_out(std::uint64_t epoch, std::uint64_t step, std::uint64_t index);
  /// Puts it there and sends the ticket to a subscription. Returns the lease.
  std::uint64_t deliver(std::uint32_t subscription, std::uint64_t epoch, std::uint64_t step,
                        std::uint64_t index);
  void end_epoch(std::uint32_t subscription, std::uint64_t epoch, bool last = false);
  /// The value in frame `frame` of row `row`, dimension `dim`, of batch `index`.
  static float value(std::uint64_t index, std::size_t row, std::size_t frame, std::size_t dim) {
    return static_cast<float>(index * 1000 + row * 100 + frame * 10 + dim);
  }

  template <class Body>
  void send(Body body) {
    send_bytes(encode(std::move(body)));
  }
  /// Sends to the client that spoke last.
  void send_bytes(const flatbuffers::DetachedBuffer& bytes);
  /// Overwrites bytes of the arena.
  void spoil(std::uint64_t offset, std::uint64_t size);
  /// Closes every socket, as the kernel does for a daemon that is killed.
  void die();

  /// Waits, at most 20 s, until what was heard so far satisfies `holds`.
  struct Heard {
    std::vector<std::uint64_t> released;      ///< Leases, in order.
    std::vector<std::uint32_t> unsubscribed;  ///< Subscriptions.
    std::vector<wire::SubscribeT> subscribed;
    std::string client;
    std::size_t byes = 0;
    std::size_t lost = 0;  ///< Arena connections that ended.
  };
  bool hears(const std::function<bool(const Heard&)>& holds);

 private:
  struct Sockets;
  void run();
  void on_frame(Sockets& sockets, std::span<const std::byte> frame);
  void on_subscribe(Sockets& sockets, const wire::Subscribe& request);
  void answer_arena(Sockets& sockets, std::size_t connection);
  void wake() const;

  TemporaryFolder folder_;
  Manners manners_;
  std::byte* memory_ = nullptr;
  int arena_ = -1;
  int alarm_ = -1;
  std::uint64_t slots_used_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<std::byte>> outbox_;
  Heard heard_;
  bool stop_ = false;
  bool listening_ = false;
  std::thread thread_;
};

}  // namespace batchwright::test
