#include "daemon/delivery/feed/live/frame_parts.h"

#include <fmt/core.h>

#include <new>
#include <utility>

namespace batchwright {

Result<FrameParts> FrameParts::begin(const wire::PushT& first, std::shared_ptr<FrameRoom> room) {
  const std::uint64_t total = first.total_bytes;
  if (total > room->most_of_one) {
    return Error{
        ErrorCode::does_not_fit,
        fmt::format("a frame of {} bytes; the feed takes at most {}", total, room->most_of_one)};
  }
  // One thread alone takes of it.
  if (total > room->left) {
    return Error{ErrorCode::timed_out,
                 fmt::format("a frame of {} bytes: of the room for frames in parts {} are left",
                             total, room->left.load())};
  }
  room->left -= total;
  std::shared_ptr<std::vector<std::byte>> bytes(new std::vector<std::byte>,
                                                [room, total](const auto* all) {
                                                  delete all;
                                                  room->left += total;
                                                });
  try {
    bytes->reserve(total);
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::timed_out, fmt::format("no memory for a frame of {} bytes", total)};
  }
  return FrameParts(first, std::move(bytes));
}

Result<void> FrameParts::add(const wire::PushT& push, std::span<const std::byte> part) {
  const bool is_next = push.question == question_ && push.total_bytes == total_ &&
                       push.part_at == bytes_->size() && !part.empty() &&
                       part.size() <= total_ - bytes_->size();
  if (!is_next) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("a part of {} bytes at {} of a frame of {}; {} of {} bytes are here",
                             part.size(), push.part_at, push.total_bytes, bytes_->size(), total_)};
  }
  bytes_->insert(bytes_->end(), part.begin(), part.end());
  return {};
}

std::optional<wire::AcceptedT> take_part(std::optional<FrameParts>& frame,
                                         const std::shared_ptr<FrameRoom>& room, PushAsked& asked) {
  const wire::PushT& push = asked.push;
  const auto take = [&]() -> Result<void> {
    if (!push.framed) return Error{ErrorCode::invalid_argument, "parts of no frame"};
    if (push.part_at == 0) {
      frame.reset();  // its room first
      auto begun = FrameParts::begin(push, room);
      if (!begun) return begun.error();
      frame = std::move(*begun);
    }
    if (!frame) return Error{ErrorCode::invalid_argument, "a part without the first one"};
    return frame->add(push, asked.frame.bytes);
  };
  wire::AcceptedT answer;
  answer.producer = push.producer;
  answer.question = push.question;
  if (const Result<void> taken = take(); !taken) {
    answer.code = static_cast<std::uint16_t>(taken.error().code);
    answer.text = taken.error().message;
    frame.reset();
    return answer;
  }
  answer.taken = frame->bytes();
  if (!frame->is_whole()) return answer;
  asked.frame = frame->whole();
  frame.reset();
  return std::nullopt;
}

}  // namespace batchwright
