#include "client/library/memory/copy_buffers.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace batchwright {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;  // where it is another size, a hint less
constexpr std::size_t kStep = std::size_t{64} << 10;     // of smaller buffers

std::size_t rounded_up(std::size_t bytes) {
  const std::size_t step = bytes < kHugePage ? kStep : kHugePage;
  return (bytes + step - 1) / step * step;
}

std::byte* map(std::size_t bytes) {
  void* start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return start == MAP_FAILED ? nullptr : static_cast<std::byte*>(start);
}

/// Begins on a huge page: what was mapped to find one is unmapped again.
std::byte* map_huge(std::size_t bytes) {
  std::byte* start = map(bytes + kHugePage);
  if (start == nullptr) return nullptr;
  const std::size_t before =
      (kHugePage - reinterpret_cast<std::uintptr_t>(start) % kHugePage) % kHugePage;
  if (before != 0) munmap(start, before);
  if (before != kHugePage) munmap(start + before + bytes, kHugePage - before);
  madvise(start + before, bytes, MADV_HUGEPAGE);
  return start + before;
}

}  // namespace

void CopyBuffer::Unmap::operator()(std::byte* start) const noexcept { munmap(start, bytes); }

std::shared_ptr<CopyBuffer> CopyBuffer::make(std::size_t bytes) {
  Start start(bytes < kHugePage ? map(bytes) : map_huge(bytes), Unmap{bytes});
  return start ? std::shared_ptr<CopyBuffer>(new CopyBuffer(std::move(start))) : nullptr;
}

std::shared_ptr<CopyBuffer> CopyBuffers::take(std::size_t bytes) {
  std::vector<std::shared_ptr<CopyBuffer>> too_small;  // freed behind the lock
  const MutexLock lock(mutex_);
  while (!free_.empty()) {
    auto buffer = std::move(free_.back());
    free_.pop_back();
    if (buffer->bytes().size() >= bytes) {
      ++out_;
      return buffer;
    }
    too_small.push_back(std::move(buffer));
  }
  free_.reserve(out_ + 1);  // so that giving back takes no memory
  auto buffer = CopyBuffer::make(std::max(largest_, rounded_up(bytes)));
  if (!buffer) return nullptr;
  largest_ = buffer->bytes().size();
  ++out_;
  return buffer;
}

void CopyBuffers::give_back(std::shared_ptr<CopyBuffer> buffer) noexcept {
  const MutexLock lock(mutex_);
  --out_;
  if (closed_ || buffer->bytes().size() < largest_) return;
  free_.push_back(std::move(buffer));
}

void CopyBuffers::close() {
  const MutexLock lock(mutex_);
  closed_ = true;
  free_.clear();
}

}  // namespace batchwright
