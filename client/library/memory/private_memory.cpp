#include "client/library/memory/private_memory.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstring>
#include <utility>

namespace batchwright {

Result<PrivateMemory::Lent> PrivateMemory::lend(const std::shared_ptr<const Mapping>& arena,
                                                const Place& place) {
  const auto batch = arena->part(place.offset, place.bytes);
  if (!batch) return batch.error();
  if (auto view = view_of(arena); view && view->hold(place)) {
    return lend_view(std::move(view), place);
  }
  return lend_copy(*batch, place.offset);
}

/// Null when this batch is to be copied ahead, or there is no such view.
std::shared_ptr<PrivateView> PrivateMemory::view_of(const std::shared_ptr<const Mapping>& arena) {
  const std::lock_guard lock(mutex_);
  if (habit_.copies_next()) return nullptr;
  if (arena_.lock() == arena) return view_.lock();
  auto view = PrivateView::map(*arena);
  if (view) arena->keep(view);
  arena_ = arena;
  view_ = view;
  return view;
}

Result<PrivateMemory::Lent> PrivateMemory::lend_view(std::shared_ptr<PrivateView> view,
                                                     const Place& place) {
  const std::span<const std::byte> memory = view->bytes();
  std::shared_ptr<const void> stay(nullptr,
                                   [self = shared_from_this(), view, place](const void*) noexcept {
                                     self->note(view->end(place), place.bytes);
                                   });
  Payload payload{std::move(view), memory.subspan(place.offset, place.bytes), false, memory};
  return Lent{std::move(payload), std::move(stay)};
}

Result<PrivateMemory::Lent> PrivateMemory::lend_copy(std::span<const std::byte> batch,
                                                     std::uint64_t offset) {
  const std::uint64_t before = offset % kTensorAlignment;  // tensors are aligned as in the arena
  auto seat = seats_.take(before + batch.size());
  if (!seat) {
    return Error{
        ErrorCode::does_not_fit,
        fmt::format("no memory for a batch of {} bytes that may be written to", batch.size())};
  }
  std::shared_ptr<const void> stay(nullptr,
                                   [self = shared_from_this(), seat](const void*) mutable noexcept {
                                     self->seats_.give_back(std::move(seat));
                                   });
  const std::span<std::byte> bytes = seat->bytes().subspan(before, batch.size());
  std::memcpy(bytes.data(), batch.data(), batch.size());
  const std::span<const std::byte> memory = seat->bytes();
  return Lent{Payload{std::move(seat), bytes, false, memory}, std::move(stay)};
}

void PrivateMemory::note(std::size_t written, std::uint64_t bytes) noexcept {
  static const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::lock_guard lock(mutex_);
  habit_.note(written, bytes / page + 1);
}

void PrivateMemory::close() {
  seats_.close();
  std::shared_ptr<PrivateView> view;  // unmapped behind the lock
  const std::lock_guard lock(mutex_);
  view = view_.lock();
  if (const auto arena = arena_.lock(); arena && view) arena->let_go(view);
}

}  // namespace batchwright
