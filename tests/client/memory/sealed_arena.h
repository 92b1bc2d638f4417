#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "client/library/memory/mapping.h"

namespace batchwright::test {

inline const auto kPage = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

/// An arena as a daemon makes and fills it, and as a client maps it.
class SealedArena {
 public:
  static constexpr std::size_t kPages = 1024;  // more than are looked at in one call

  SealedArena() {
    Descriptor file(memfd_create("sealed-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    REQUIRE(ftruncate(file.get(), static_cast<off_t>(size())) == 0);
    void* start = mmap(nullptr, size(), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    REQUIRE(start != MAP_FAILED);
    daemons_.reset(static_cast<std::byte*>(start));
    constexpr int kSeals = F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    REQUIRE(fcntl(file.get(), F_ADD_SEALS, kSeals) == 0);
    auto mapped = Mapping::map(file, size());
    REQUIRE(mapped);
    mapping_ = std::move(*mapped);
  }

  static std::size_t size() { return kPages * kPage; }
  /// What the daemon does with a slot.
  void fill(std::size_t offset, std::size_t bytes, int value) {
    std::memset(daemons_.get() + offset, value, bytes);
  }
  void write(std::size_t offset, std::span<const std::byte> bytes) {
    std::memcpy(daemons_.get() + offset, bytes.data(), bytes.size());
  }
  const std::byte* daemons() const { return daemons_.get(); }
  const std::shared_ptr<const Mapping>& mapping() const { return mapping_; }
  /// The client lets go of it.
  void unmap() { mapping_.reset(); }

 private:
  struct Unmap {
    void operator()(std::byte* start) const noexcept { munmap(start, size()); }
  };
  std::unique_ptr<std::byte, Unmap> daemons_;
  std::shared_ptr<const Mapping> mapping_;
};

/// A batch's bytes, for its holder to write to.
inline std::byte* writable(std::span<const std::byte> bytes) {
  return const_cast<std::byte*>(bytes.data());
}

}  // namespace batchwright::test
