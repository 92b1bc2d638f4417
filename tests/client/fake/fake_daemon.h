#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "formats/formats.h"
#include "tests/support/temporary_folder.h"

namespace batchwright::test {

/// How a fake daemon behaves where it answers by itself.
struct ThreadPolicy {
  std::uint16_t protocol = kProtocolVersion;
  bool answers_hello = true;
  bool answers_subscribe = true;
  bool seals = true;  ///< The arena.
  std::uint32_t world = 1;
  std::uint64_t steps = 2;  ///< Of each epoch.

  std::uint64_t data = 1;         ///< Of the fingerprint {data, settings, 3}.
  std::uint64_t settings = 2;     ///< Compared by the client alone.
  std::string terms{};            ///< In words; empty: not told.
  std::string feed = "train";     ///< That its batches say they are of.
  bool dies_at_hello = false;     ///< As if killed while it reads it.
  bool shares_arena = true;       ///< Listens on the arena socket.
  std::uint64_t arena_bytes = 0;  ///< As announced; 0: as it is.
  /// How the arena of the second subscription, and of later ones, is handed over.
  enum class Second : std::uint8_t { same, too_large, late } second = Second::same;
  bool pauses = false;               ///< Before the first answer on the arena socket, 300 ms.
  bool alive = true;                 ///< Says so to clients without an arena.
  bool explains = false;             ///< Answers Ask.
  bool compares = true;              ///< Refuses clients that expect other data.
  std::string field = "features";    ///< The primary field's name.
  std::string endpoint{};            ///< Empty: an ipc:// socket in a folder of its own.
  std::string curve_secret{};        ///< Z85; empty: no CURVE.
  bool serves = false;               ///< Sends batches by itself, within windows.
  std::size_t part_bytes = 0;        ///< Batches in messages come in parts; 0: in one frame.
  std::uint64_t dies_after = 0;      ///< So many releases; 0: it lives on.
  bool may_join = false;             ///< Its tickets say that releases may wait for each other.
  Abilities abilities{};             ///< What it says it can do.
  std::string absent{};              ///< A feed that it cannot serve for now; empty: none.
  std::uint64_t grows_at_epoch = 0;  ///< From it on one step more, and other data; 0: never.
};

/// A daemon without feeds, storage or plans, so that a test can have it say anything. It answers
/// Hello, Subscribe and arena requests; all else is sent by the test, or served in order.
/// Threads: the test's own; a thread inside owns the sockets.
class FakeDaemon {
 public:
  explicit FakeDaemon(ThreadPolicy manners = {});
  ~FakeDaemon();
  FakeDaemon(const FakeDaemon&) = delete;
  FakeDaemon& operator=(const FakeDaemon&) = delete;

  const std::string& endpoint() const { return endpoint_; }

  /// Puts a batch of two rows of 3 and 2 frames into a slot of its own, and says where it lies.
  wire::DeliveryT lay_out(std::uint64_t epoch, std::uint64_t step, std::uint64_t index);
  /// Puts it there and sends the ticket to a subscription. Returns the lease.
  std::uint64_t deliver(std::uint32_t subscription, std::uint64_t epoch, std::uint64_t step,
                        std::uint64_t index);
  /// The same, with a lease of the test's own.
  void deliver(wire::DeliveryT ticket);
  void end_epoch(std::uint32_t subscription, std::uint64_t epoch, bool last = false);
  /// The value in frame `frame` of row `row`, dimension `dim`, of batch `index`.
  static float value(std::uint64_t index, std::size_t row, std::size_t frame, std::size_t dim) {
    return static_cast<float>(index * 1000 + row * 100 + frame * 10 + dim);
  }

  template <class Body>
  void send(Body body) {
    send_bytes(encode(std::move(body)));
  }
  /// Waits until all that was sent is on its way.
  void flush();
  /// Sends to the client that spoke last; with a second frame when `batch` is not empty.
  void send_bytes(const flatbuffers::DetachedBuffer& bytes, std::vector<std::byte> batch = {});
  /// Overwrites bytes of the arena.
  void spoil(std::uint64_t offset, std::uint64_t size);
  /// Closes every socket, as the kernel does for a daemon that is killed.
  void die();
  /// Comes back at the same endpoint, with another arena and knowing nothing. After die(), or when
  /// is_dead().
  void rise(ThreadPolicy manners);
  bool is_dead();

  /// Waits, at most 20 s, until what was heard so far satisfies `holds`.
  struct Heard {
    std::vector<std::uint64_t> released;      ///< Leases, in order.
    std::vector<std::uint64_t> returned;      ///< Those that were not done, which are not above.
    std::size_t releases = 0;                 ///< Messages that named them.
    std::vector<std::uint32_t> unsubscribed;  ///< Subscriptions.
    std::vector<wire::SubscribeT> subscribed;
    std::vector<wire::HelloT> hellos;
    std::string client;
    std::size_t asked = 0;        ///< For a reason.
    std::size_t waits = 0;        ///< That the program waits is all that was said.
    std::uint64_t waited_us = 0;  ///< Told with releases.
    std::size_t byes = 0;
    std::size_t lost = 0;  ///< Arena connections that ended.
  };
  bool hears(const std::function<bool(const Heard&)>& holds);
  /// The same without waiting.
  bool has_heard(const std::function<bool(const Heard&)>& holds);

 private:
  struct Sockets;
  struct Outgoing {
    std::vector<std::byte> bytes;
    std::vector<std::byte> batch;
  };
  /// A subscription that is served, and the next batch for it.
  struct Served {
    wire::SubscribeT request;
    std::uint64_t credit = 0;
    std::uint64_t epoch = 0;
    std::uint64_t step = 0;
    std::uint64_t place = 0;
    bool over = false;
  };
  void start();
  void run();
  void serve_sockets(Sockets& sockets);
  void on_frame(Sockets& sockets, std::span<const std::byte> frame);
  void on_hello(Sockets& sockets, const wire::Hello& hello);
  void on_subscribe(Sockets& sockets, const wire::Subscribe& request);
  void note(const ControlMessage& message);
  void on_release(const wire::Release& release);
  void serve(Served& served);
  void turn_epoch(Served& served);
  std::uint64_t steps_of(std::uint64_t epoch) const;
  wire::Fingerprint plan_of(std::uint64_t epoch) const;
  void answer_arena(Sockets& sockets, std::size_t connection);
  void wake() const;
  void make_arena();
  void drop_arena();

  TemporaryFolder folder_;
  ThreadPolicy manners_;
  std::string endpoint_;
  std::uint64_t session_ = 0xFEED;
  std::byte* memory_ = nullptr;
  int arena_ = -1;
  int large_arena_ = -1;
  bool was_late_ = false;
  int alarm_ = -1;
  std::uint64_t slots_used_ = 0;
  std::uint64_t releases_ = 0;
  std::map<std::uint32_t, Served> served_;
  std::atomic<bool> inline_ = false;  ///< The client that spoke last wants second frames.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Outgoing> outbox_;
  bool flushed_ = true;  ///< Nothing is in the outbox, or on its way out of it.
  Heard heard_;
  bool stop_ = false;
  bool listening_ = false;
  bool dead_ = false;
  std::thread thread_;
};

}  // namespace batchwright::test
