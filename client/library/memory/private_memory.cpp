#include "client/library/memory/private_memory.h"

#include <fmt/core.h>

#include <cstring>
#include <new>
#include <utility>

namespace batchwright {
namespace {

/// Where a batch begins in a buffer: its tensors are aligned as in the arena.
std::uint64_t in_buffer(const Place& place) { return place.offset % kTensorAlignment; }

void copy_to(const CopyBuffer& buffer, std::span<const std::byte> bytes, const Place& place) {
  std::memcpy(buffer.bytes().data() + in_buffer(place), bytes.data(), bytes.size());
}

}  // namespace

Result<PrivateMemory::Lent> PrivateMemory::lend(const std::shared_ptr<const Mapping>& arena,
                                                const Wanted& batch) {
  const auto bytes = arena->part(batch.place.offset, batch.place.bytes);
  if (!bytes) return bytes.error();
  auto buffer = copy_of(*bytes, batch);
  if (!buffer) {
    return Error{
        ErrorCode::does_not_fit,
        fmt::format("no memory for a batch of {} bytes that may be written to", bytes->size())};
  }
  std::shared_ptr<const void> stay(
      nullptr, [self = shared_from_this(), buffer](const void*) mutable noexcept {
        self->buffers_.give_back(std::move(buffer));
      });
  const std::span<std::byte> memory = buffer->bytes();
  const std::span<std::byte> copy = memory.subspan(in_buffer(batch.place), bytes->size());
  return Lent{Payload{std::move(buffer), copy, false, memory}, std::move(stay)};
}

/// Null when there is no memory.
std::shared_ptr<CopyBuffer> PrivateMemory::copy_of(std::span<const std::byte> bytes,
                                                   const Wanted& batch) {
  if (auto prepared = take_prepared()) {
    if (prepared->batch == batch) return std::move(prepared->buffer);
    buffers_.give_back(std::move(prepared->buffer));
  }
  auto buffer = buffers_.take(in_buffer(batch.place) + bytes.size());
  if (buffer) copy_to(*buffer, bytes, batch.place);
  return buffer;
}

void PrivateMemory::prepare(const std::shared_ptr<const Mapping>& arena,
                            const Wanted& batch) noexcept try {
  const auto bytes = arena->part(batch.place.offset, batch.place.bytes);
  const MutexLock lock(mutex_);
  if (!bytes || prepared_) return;
  auto buffer = buffers_.take(in_buffer(batch.place) + bytes->size());
  if (!buffer) return;
  prepared_ = Prepared{batch, buffer};
  copying_.begin(
      [arena, buffer, from = *bytes, place = batch.place] { copy_to(*buffer, from, place); });
} catch (const std::bad_alloc&) {
  forget_prepared();
}

/// After it nothing is being copied.
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
  if (auto prepared = take_prepared()) buffers_.give_back(std::move(prepared->buffer));
}

void PrivateMemory::close() {
  forget_prepared();
  buffers_.close();
}

}  // namespace batchwright
