// ZeroMQ gathers the parts of a message without a bound, and knows none for a connection either.
// It reads by recv(), which this file answers in its place, so that the bytes of each connection
// can be counted where they come in; the event loop gives the count back with each message that it
// takes. A connection's descriptor is its number in a table without a lock: ZeroMQ names it with
// each message. A descriptor may stand for something else by the time it is looked at, so the
// socket's cookie decides before anything is closed.

#include "daemon/delivery/wire/intake.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <string_view>
#include <utility>

#include "daemon/delivery/wire/accept_guard.h"
#include "daemon/delivery/wire/connection.h"
#include "formats/formats.h"

namespace batchwright {
namespace {

/// Of a connection that is encrypted, what its heartbeats take, each second.
constexpr std::int64_t kHeartbeatsEachSecond = 512;
/// What encryption and frame headers add to a part's bytes, at most.
constexpr std::int64_t kWrapping = 64;
constexpr std::uint8_t kLongFrame = 2;
constexpr std::uint8_t kCommandFrame = 4;
constexpr std::string_view kPing = "\4PING";
constexpr std::string_view kPong = "\4PONG";
/// ZeroMQ copies a part of up to so many bytes out of the buffer that it was read into.
constexpr std::uint64_t kTinyPart = 33;

/// What is known of a descriptor's connection.
class Meter {
 public:
  void open(int descriptor) {
    const MutexLock lock(mutex_);
    connection_ = connection_of(descriptor);
    intake_.begin(Intake::Clock::now());
    open_.store(true, std::memory_order_release);
  }

  /// False when the connection has to end.
  bool take(int descriptor, std::span<const std::byte> bytes) {
    if (!open_.load(std::memory_order_acquire)) return true;
    const MutexLock lock(mutex_);
    const auto verdict = intake_.take(bytes, Intake::Clock::now());
    if (verdict == Intake::Verdict::fine) return true;
    open_.store(false, std::memory_order_release);
    if (connection_of(descriptor).cookie != connection_.cookie)
      return true;  // it is another one's by now
    if (verdict == Intake::Verdict::flood) AcceptGuard::tell_flood(descriptor);
    return false;
  }

  /// Without the mutex, which the intake does not need for it.
  void consumed(std::size_t parts, std::size_t bytes) NO_THREAD_SAFETY_ANALYSIS {
    intake_.consumed(parts, bytes);
  }

 private:
  std::atomic<bool> open_ = false;
  Mutex mutex_;  ///< Only a descriptor's new owner meets it.
  Intake intake_ GUARDED_BY(mutex_);
  Connection connection_ GUARDED_BY(mutex_);
};

/// Meters by descriptor, made when one is needed and kept for good.
class Meters {
 public:
  /// Null: none was made, or the number is out of reach.
  Meter* find(int descriptor) const {
    const auto number = static_cast<std::size_t>(descriptor);
    if (descriptor < 0 || number >= kMost) return nullptr;
    Block* const block = blocks_[number / kBlock].load(std::memory_order_acquire);
    return block == nullptr ? nullptr : &(*block)[number % kBlock];
  }

  /// Null: the number is out of reach.
  Meter* make(int descriptor) {
    const auto number = static_cast<std::size_t>(descriptor);
    if (descriptor < 0 || number >= kMost) return nullptr;
    auto& place = blocks_[number / kBlock];
    if (place.load(std::memory_order_acquire) == nullptr) {
      const MutexLock lock(mutex_);
      if (place.load(std::memory_order_relaxed) == nullptr) {
        place.store(new Block, std::memory_order_release);
      }
    }
    return find(descriptor);
  }

 private:
  static constexpr std::size_t kBlock = 256;
  /// Linux gives a process no more by default.
  static constexpr std::size_t kMost = std::size_t{1} << 20;
  using Block = std::array<Meter, kBlock>;

  std::array<std::atomic<Block*>, kMost / kBlock> blocks_{};
  Mutex mutex_;  ///< Held by the one that adds a block: blocks are read without it.
};

Meters& meters() {
  static Meters* const kept = new Meters;  // ZeroMQ's threads may outlive all statics
  return *kept;
}

}  // namespace

std::int64_t FrameMeter::take(std::span<const std::byte> bytes) {
  auto cost = static_cast<std::int64_t>(bytes.size());
  buffer_counted_ = false;
  while (!bytes.empty() && !foreign_) {
    std::size_t taken = 1;
    const auto byte = std::to_integer<std::uint8_t>(bytes.front());
    switch (at_) {
      case At::greeting: greet(byte); break;
      case At::flags: begin_frame(byte); break;
      case At::length:
        length_ = length_ << 8 | byte;
        if (++seen_ == length_bytes_) cost += begin_body();
        break;
      case At::body:
        taken = std::min<std::uint64_t>(body_left_, bytes.size());
        compare_name(bytes.first(taken));
        body_left_ -= taken;
        if (body_left_ == 0) cost -= end_frame();
        break;
    }
    bytes = bytes.subspan(taken);
  }
  return cost;
}

/// The greeting says in its first and tenth byte that it is one, in the eleventh which version, and
/// from the thirteenth on which mechanism.
void FrameMeter::greet(std::uint8_t byte) {
  ++seen_;
  if ((seen_ == 1 && byte != 0xff) || (seen_ == 10 && (byte & 1) == 0)) foreign_ = true;
  if (seen_ == 11 && byte == 0) foreign_ = true;
  if (seen_ == 11 && byte <= 1) greeting_bytes_ = 12;
  if (seen_ == 13) encrypted_ = byte == 'C';
  if (seen_ == greeting_bytes_) at_ = At::flags;
}

void FrameMeter::begin_frame(std::uint8_t flags) {
  length_bytes_ = (flags & kLongFrame) != 0 ? 8 : 1;
  is_heartbeat_ = (flags & kCommandFrame) != 0;
  length_ = 0;
  seen_ = 0;
  at_ = At::length;
}

/// What the frame costs beside its bytes.
std::int64_t FrameMeter::begin_body() {
  at_ = At::body;
  seen_ = 0;
  body_left_ = length_;
  std::int64_t cost = kPart;
  // What is decrypted lies elsewhere, so that the buffer is free again at once.
  const bool keeps_buffer = length_ > kTinyPart && !encrypted_;
  if (keeps_buffer && !std::exchange(buffer_counted_, true)) cost += kBuffer;
  const auto size = static_cast<std::int64_t>(std::min<std::uint64_t>(length_, INT32_MAX));
  frame_cost_ = cost + 1 + length_bytes_ + size;
  return body_left_ == 0 ? cost - end_frame() : cost;
}

/// What of the frame is no longer kept.
std::int64_t FrameMeter::end_frame() {
  at_ = At::flags;
  return is_heartbeat_ && seen_ == kPing.size() ? frame_cost_ : 0;
}

void FrameMeter::compare_name(std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes.first(std::min(bytes.size(), kPing.size() - seen_))) {
    const auto letter = static_cast<char>(byte);
    if (letter != kPing[seen_] && letter != kPong[seen_]) is_heartbeat_ = false;
    ++seen_;
  }
}

void Intake::begin(Clock::time_point now) {
  frames_ = {};
  since_ = now;
  unconsumed_.store(0, std::memory_order_relaxed);
}

Intake::Verdict Intake::take(std::span<const std::byte> bytes, Clock::time_point now) {
  change(frames_.take(bytes));
  if (frames_.is_foreign()) return Verdict::foreign;
  if (frames_.is_encrypted()) change(-heartbeats_until(now));
  return unconsumed() > kMostUnconsumed ? Verdict::flood : Verdict::fine;
}

void Intake::consumed(std::size_t parts, std::size_t bytes) {
  constexpr std::int64_t kEach = FrameMeter::kPart + FrameMeter::kBuffer + kWrapping;
  change(-static_cast<std::int64_t>(parts) * kEach - static_cast<std::int64_t>(bytes));
}

/// Never below 0: what is given back is an upper bound.
void Intake::change(std::int64_t by) {
  std::int64_t now = unconsumed();
  while (!unconsumed_.compare_exchange_weak(now, std::max<std::int64_t>(now + by, 0),
                                            std::memory_order_relaxed)) {
  }
}

std::int64_t Intake::heartbeats_until(Clock::time_point now) {
  const auto passed = std::chrono::floor<std::chrono::seconds>(now - since_);
  since_ += passed;
  return passed.count() * kHeartbeatsEachSecond;
}

void count_intake(int descriptor) {
  if (Meter* const meter = meters().make(descriptor)) meter->open(descriptor);
}

void consume_intake(int descriptor, std::size_t parts, std::size_t bytes) {
  if (Meter* const meter = meters().find(descriptor)) meter->consumed(parts, bytes);
}

}  // namespace batchwright

/// libzmq calls this instead of glibc's function, as it does accept4().
extern "C" __attribute__((visibility("default"))) ssize_t recv(int socket, void* buffer,
                                                               std::size_t size, int flags) {
  const ssize_t got = ::recvfrom(socket, buffer, size, flags, nullptr, nullptr);
  if (got <= 0 || flags != 0) return got;
  batchwright::Meter* const meter = batchwright::meters().find(socket);
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(buffer),
                                         static_cast<std::size_t>(got));
  if (meter == nullptr || meter->take(socket, bytes)) return got;
  errno = ECONNRESET;
  return -1;
}
