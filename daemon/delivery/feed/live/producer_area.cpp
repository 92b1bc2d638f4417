#include "daemon/delivery/feed/live/producer_area.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "daemon/assembly/assembly.h"

namespace batchwright {
namespace {

/// Below that an area is of no use: sequences then come in frames.
constexpr std::uint64_t kLeast = 64 * 1024;

Error failed(const char* call, std::uint64_t bytes) {
  const int code = errno;
  const bool passes = code == ENOMEM || code == ENOSPC || code == EMFILE || code == ENFILE;
  return {
      passes ? ErrorCode::busy : ErrorCode::io_error,
      fmt::format("a producer's area of {}: {}: {}", in_mib(bytes), call, reason_with_limit(code))};
}

}  // namespace

Result<std::shared_ptr<const ProducerArea>> ProducerArea::create(std::uint64_t bytes) {
  Descriptor made(::memfd_create("batchwright-producer", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made) return failed("memfd_create", bytes);
  if (::ftruncate(made.get(), static_cast<off_t>(bytes)) != 0) return failed("ftruncate", bytes);
  if (::fcntl(made.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return failed("F_ADD_SEALS", bytes);
  }
  void* const start = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, made.get(), 0);
  if (start == MAP_FAILED) return failed("mmap", bytes);
  return std::make_shared<const ProducerArea>(std::move(made), static_cast<const std::byte*>(start),
                                              bytes);
}

ProducerArea::~ProducerArea() { ::munmap(const_cast<std::byte*>(start_), bytes_); }

std::optional<ProducerAreas::Given> ProducerAreas::give(SessionId session, std::uint64_t wanted) {
  const std::uint64_t bytes = whole_pages(std::min(wanted, left_));
  if (bytes < kLeast || bytes > left_) return {};
  auto made = ProducerArea::create(bytes);
  if (!made) return {};
  last_ = last_ % ArenaNumber::kMostAreas + 1;
  const ArenaNumber number = feed_.area(last_);
  if (areas_.contains({session, number})) return {};
  left_ -= bytes;
  areas_.emplace(Key{session, number}, *made);
  return Given{number, *made};
}

const ProducerArea* ProducerAreas::find(SessionId session, ArenaNumber number) const {
  const auto found = areas_.find({session, number});
  return found == areas_.end() ? nullptr : found->second.get();
}

void ProducerAreas::forget(SessionId session) {
  for (auto at = areas_.lower_bound({session, {}});
       at != areas_.end() && at->first.first == session;) {
    left_ += at->second->bytes().size();
    at = areas_.erase(at);
  }
}

}  // namespace batchwright
