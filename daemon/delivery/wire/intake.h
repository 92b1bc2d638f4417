#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace batchwright {

/// Counts what the frames of one connection take of the daemon's memory, by its bytes as they
/// come: ZMTP 2 or 3, encrypted or not.
///
/// A part costs its bytes, the object that ZeroMQ keeps it in and, where a part that is not tiny
/// begins in a read, the whole buffer of that read, which ZeroMQ keeps for the part's sake. Pings
/// and pongs that are not encrypted cost nothing once they are complete.
/// Threads: one at a time.
class FrameMeter {
 public:
  /// What a part takes beside its bytes.
  static constexpr std::int64_t kPart = 64;
  /// What ZeroMQ allocates for a read: 8 KiB, and the heads of all parts that fit in there.
  static constexpr std::int64_t kBuffer = 18 * 1024;

  /// What the bytes of one read cost; negative where less is kept than was before.
  std::int64_t take(std::span<const std::byte> bytes);
  /// Whether this is no ZMTP from version 2 on: its frames cannot be told.
  bool is_foreign() const { return foreign_; }
  /// Whether frames are encrypted, so that pings look like any other.
  bool is_encrypted() const { return encrypted_; }

 private:
  enum class At : std::uint8_t { greeting, flags, length, body };

  void greet(std::uint8_t byte);
  void begin_frame(std::uint8_t flags);
  std::int64_t begin_body();
  std::int64_t end_frame();
  void compare_name(std::span<const std::byte> bytes);

  At at_ = At::greeting;
  bool foreign_ = false;
  bool encrypted_ = false;
  bool is_heartbeat_ = false;         ///< So far the frame is a ping's or a pong's.
  bool buffer_counted_ = false;       ///< In this read.
  std::uint8_t greeting_bytes_ = 64;  ///< The length of the greeting.
  std::uint8_t seen_ = 0;             ///< Bytes of the greeting, the length or the name.
  std::uint8_t length_bytes_ = 0;
  std::uint64_t length_ = 0;
  std::uint64_t body_left_ = 0;
  std::int64_t frame_cost_ = 0;
};

/// What a connection may have sent that the daemon has not consumed: a message without end comes
/// to this, for ZeroMQ gathers all parts of a message before it hands them over.
inline constexpr std::int64_t kMostUnconsumed = std::int64_t{4} << 20;

/// One connection's count of what it sent and the daemon has not consumed.
/// Threads: begin() and take() one at a time, consumed() from any. Time is an argument.
class Intake {
 public:
  using Clock = std::chrono::steady_clock;

  /// A new connection's, or none yet.
  void begin(Clock::time_point now);

  enum class Verdict : std::uint8_t { fine, flood, foreign };
  /// The bytes of one read.
  Verdict take(std::span<const std::byte> bytes, Clock::time_point now);
  /// A message of so many parts and bytes was consumed.
  void consumed(std::size_t parts, std::size_t bytes);
  std::int64_t unconsumed() const { return unconsumed_.load(std::memory_order_relaxed); }

 private:
  void change(std::int64_t by);
  std::int64_t heartbeats_until(Clock::time_point now);

  FrameMeter frames_;
  Clock::time_point since_{};  ///< Encrypted heartbeats are counted up to here.
  std::atomic<std::int64_t> unconsumed_ = 0;
};

/// ZeroMQ has accepted a connection with this descriptor: what it reads from there counts, and a
/// connection that passes kMostUnconsumed is closed, and noted by the AcceptGuard.
/// Threads: ZeroMQ's.
void count_intake(int descriptor);

/// A message of so many parts and bytes from this connection was consumed.
/// Threads: any; never waits.
void consume_intake(int descriptor, std::size_t parts, std::size_t bytes);

}  // namespace batchwright
