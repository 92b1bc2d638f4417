#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "formats/formats.h"
#include "tests/support/temporary_folder.h"

namespace batchwright::test {

/// A daemon with one live feed, "rollouts", over real sockets: it accepts all that is pushed, keeps
/// it, grants each claim and announces each version. Its sequences have "tokens" [T] of int32,
/// "text" [U] of uint8 and "reward", a float32.
/// Threads: the test's own; a thread inside owns the sockets.
class FakeLive {
 public:
  /// A sequence, as its bytes lay there.
  struct Taken {
    std::uint64_t number = 0;
    bool framed = false;
    std::string key;
    std::uint64_t version = 0;
    std::uint64_t group = 0;
    std::uint32_t group_size = 0;
    float weight = 0;
    std::vector<std::int32_t> tokens;
    std::string text;
    float reward = 0;
  };

  explicit FakeLive(std::uint64_t area_bytes = 1U << 20);
  ~FakeLive();
  FakeLive(const FakeLive&) = delete;
  FakeLive& operator=(const FakeLive&) = delete;

  const std::string& endpoint() const { return endpoint_; }
  std::vector<Taken> taken();
  /// Closes every socket, as the kernel does for a daemon that is killed; and comes back, knowing
  /// what it has accepted.
  void die();
  void rise();

 private:
  struct Sockets;
  struct Area {
    Descriptor file;
    std::byte* start = nullptr;
  };
  struct Peer {
    std::string name;  ///< Of the producer.
    std::uint32_t area = 0;
  };
  void start();
  void run();
  void on_message(Sockets& sockets, const std::vector<std::vector<std::byte>>& frames);
  void on_produce(Sockets& sockets, const wire::Produce& wanted);
  void on_end(Sockets& sockets, const wire::EndFeed& end);
  void on_push(Sockets& sockets, const wire::Push& push, std::span<const std::byte> frame);
  void answer_arena(Sockets& sockets, std::size_t connection);
  std::uint32_t make_area();
  void drop_areas();

  TemporaryFolder folder_;
  const std::string endpoint_;
  const std::uint64_t area_bytes_;
  std::map<std::uint32_t, Area> areas_;
  std::map<std::string, std::uint64_t> next_;  ///< By the producer's name.
  std::map<std::string, Peer> peers_;
  std::uint64_t version_ = 0;
  std::uint32_t last_area_ = 65'535;
  bool ended_ = false;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::condition_variable listening_;
  bool is_listening_ = false;
  std::vector<Taken> taken_;
  std::thread thread_;
};

}  // namespace batchwright::test
