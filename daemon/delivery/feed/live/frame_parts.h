#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "daemon/delivery/feed/live/live_requests.h"
#include "formats/formats.h"

namespace batchwright {

/// Bytes that the frames of a feed that come in parts may take, from their first part until nothing
/// reads them. Threads: any may give room back.
struct FrameRoom {
  FrameRoom(std::uint64_t of_one, std::uint64_t of_all) : most_of_one(of_one), left(of_all) {}
  const std::uint64_t most_of_one;
  std::atomic<std::uint64_t> left;  ///< For all together.
};

/// The frame of a Push that is larger than a message, of which some parts are here.
/// Threads: one at a time; the bytes that it gives away may be let go of by any.
class FrameParts {
 public:
  /// Takes the room for all of it. Nothing is taken of the machine's memory before it comes.
  /// Errors: does_not_fit (more than there ever is), timed_out (more than there is for now).
  static Result<FrameParts> begin(const wire::PushT& first, std::shared_ptr<FrameRoom> room);

  /// Errors: invalid_argument, when this is not the part that comes next.
  Result<void> add(const wire::PushT& push, std::span<const std::byte> part);
  std::uint64_t bytes() const { return bytes_->size(); }
  bool is_whole() const { return bytes_->size() == total_; }
  SharedBytes whole() const { return {*bytes_, bytes_}; }

 private:
  FrameParts(const wire::PushT& first, std::shared_ptr<std::vector<std::byte>> bytes)
      : question_(first.question), total_(first.total_bytes), bytes_(std::move(bytes)) {}

  std::uint32_t question_;
  std::uint64_t total_;
  std::shared_ptr<std::vector<std::byte>> bytes_;
};

/// Takes a part of a producer's frame in, which may be the first. Empty once the frame is whole:
/// then it is that of `asked`. Otherwise the answer, without its `next`; one with a code ends the
/// frame.
std::optional<wire::AcceptedT> take_part(std::optional<FrameParts>& frame,
                                         const std::shared_ptr<FrameRoom>& room, PushAsked& asked);

}  // namespace batchwright
