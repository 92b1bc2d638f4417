#include "client/library/memory/mapping.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

namespace batchwright {
namespace {

Error malformed(std::string_view name, const std::string& what) {
  return {ErrorCode::malformed_message, fmt::format("the daemon's {} {}", name, what)};
}

Error io_error(const std::string& what) {
  return {ErrorCode::io_error, fmt::format("{}: {}", what, std::strerror(errno))};
}

/// The size of the file, where it has the bytes that were announced and keeps them. Without the
/// seal a daemon that shrinks it would kill its clients by SIGBUS.
Result<std::size_t> checked_size(const Descriptor& file, std::uint64_t bytes,
                                 std::string_view name) {
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return io_error(fmt::format("fstat of the {}", name));
  if (bytes == 0 || static_cast<std::uint64_t>(status.st_size) < bytes) {
    return malformed(name,
                     fmt::format("has {} bytes and was announced with {}", status.st_size, bytes));
  }
  const int seals = fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return malformed(name, "is not sealed against shrinking");
  }
  return static_cast<std::size_t>(status.st_size);
}

}  // namespace

Result<std::shared_ptr<const Mapping>> Mapping::map(const Descriptor& arena, std::uint64_t bytes) {
  // All of the file, which is longer than the arena where it lies in huge pages: of these no part
  // can be unmapped.
  const auto whole = checked_size(arena, bytes, "arena");
  if (!whole) return whole.error();
  void* start = mmap(nullptr, *whole, PROT_READ, MAP_SHARED | MAP_POPULATE, arena.get(), 0);
  if (start == MAP_FAILED) return io_error(fmt::format("mmap of an arena of {} bytes", *whole));
  return std::make_shared<const Mapping>(std::span(static_cast<const std::byte*>(start), *whole));
}

Mapping::~Mapping() { munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size()); }

Result<std::span<const std::byte>> Mapping::part(std::uint64_t offset, std::uint64_t size) const {
  if (offset > bytes_.size() || size > bytes_.size() - offset) {
    return malformed("arena", fmt::format("has {} bytes; a batch was announced at {} with {}",
                                          bytes_.size(), offset, size));
  }
  return bytes_.subspan(offset, size);
}

Result<std::shared_ptr<const Area>> Area::map(const Descriptor& area, std::uint64_t bytes) {
  if (auto size = checked_size(area, bytes, "area"); !size) return size.error();
  const auto size = static_cast<std::size_t>(bytes);
  void* start = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, area.get(), 0);
  if (start == MAP_FAILED) return io_error(fmt::format("mmap of an area of {} bytes", size));
  return std::make_shared<const Area>(std::span(static_cast<std::byte*>(start), size));
}

Area::~Area() { munmap(bytes_.data(), bytes_.size()); }

}  // namespace batchwright
