#include "client/library/memory/private_memory.h"

#include <fmt/core.h>

#include <cstring>
#include <new>
#include <utility>

namespace batchwright {
namespace {

/// Where a batch begins in a seat: its tensors are aligned as in the arena.
std::uint64_t in_seat(const Place& place) { return place.offset % kTensorAlignment; }

void copy_to(const Seat& seat, std::span<const std::byte> bytes, const Place& place) {
  std::memcpy(seat.bytes().data() + in_seat(place), bytes.data(), bytes.size());
}

}  // namespace

Result<PrivateMemory::Lent> PrivateMemory::lend(const std::shared_ptr<const Mapping>& arena,
                                                const Wanted& batch) {
  const auto bytes = arena->part(batch.place.offset, batch.place.bytes);
  if (!bytes) return bytes.error();
  if (auto view = view_of(arena); view && view->hold(batch.place)) {
    return lend_view(std::move(view), batch.place);
  }
  return lend_copy(*bytes, batch);
}

/// Null when this batch is to be copied ahead, or there is no such view.
std::shared_ptr<PrivateView> PrivateMemory::view_of(const std::shared_ptr<const Mapping>& arena) {
  const MutexLock lock(mutex_);
  const bool copies = copies_next(arena);
  habit_.count();
  if (copies) return nullptr;
  if (arena_.lock() == arena) return view_.lock();
  auto view = PrivateView::map(*arena);
  if (view) arena->keep(view);
  arena_ = arena;
  view_ = view;
  return view;
}

bool PrivateMemory::copies_next(const std::shared_ptr<const Mapping>& arena) const {
  return habit_.copies() || (view_.expired() && arena_.lock() == arena);
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

Result<PrivateMemory::Lent> PrivateMemory::lend_copy(std::span<const std::byte> bytes,
                                                     const Wanted& batch) {
  auto seat = copy_of(bytes, batch);
  if (!seat) {
    return Error{
        ErrorCode::does_not_fit,
        fmt::format("no memory for a batch of {} bytes that may be written to", bytes.size())};
  }
  std::shared_ptr<const void> stay(nullptr,
                                   [self = shared_from_this(), seat](const void*) mutable noexcept {
                                     self->seats_.give_back(std::move(seat));
                                   });
  const std::span<std::byte> memory = seat->bytes();
  const std::span<std::byte> copy = memory.subspan(in_seat(batch.place), bytes.size());
  return Lent{Payload{std::move(seat), copy, false, memory}, std::move(stay)};
}

/// Null when there is no memory.
std::shared_ptr<Seat> PrivateMemory::copy_of(std::span<const std::byte> bytes,
                                             const Wanted& batch) {
  if (auto prepared = take_prepared()) {
    if (prepared->batch == batch) return std::move(prepared->seat);
    seats_.give_back(std::move(prepared->seat));
  }
  auto seat = seats_.take(in_seat(batch.place) + bytes.size());
  if (seat) copy_to(*seat, bytes, batch.place);
  return seat;
}

void PrivateMemory::prepare(const std::shared_ptr<const Mapping>& arena,
                            const Wanted& batch) noexcept try {
  const auto bytes = arena->part(batch.place.offset, batch.place.bytes);
  const MutexLock lock(mutex_);
  if (!bytes || prepared_ || !copies_next(arena)) return;
  auto seat = seats_.take(in_seat(batch.place) + bytes->size());
  if (!seat) return;
  prepared_ = Prepared{batch, seat};
  copying_.begin(
      [arena, seat, from = *bytes, place = batch.place] { copy_to(*seat, from, place); });
} catch (const std::bad_alloc&) {
  forget_prepared();
}

/// Behind it nothing is being copied.
std::optional<PrivateMemory::Prepared> PrivateMemory::take_prepared() {
  std::optional<Prepared> prepared;
  {
    const MutexLock lock(mutex_);
    prepared = std::exchange(prepared_, std::nullopt);
  }
  if (prepared) copying_.finish();
  return prepared;
}

void PrivateMemory::forget_prepared() {
  if (auto prepared = take_prepared()) seats_.give_back(std::move(prepared->seat));
}

void PrivateMemory::note(std::size_t written, std::uint64_t bytes) noexcept {
  const MutexLock lock(mutex_);
  habit_.note(written, bytes / page_bytes() + 1);
}

void PrivateMemory::close() {
  forget_prepared();
  seats_.close();
  std::shared_ptr<PrivateView> view;  // unmapped behind the lock
  const MutexLock lock(mutex_);
  view = view_.lock();
  if (const auto arena = arena_.lock(); arena && view) arena->let_go(view);
}

}  // namespace batchwright
