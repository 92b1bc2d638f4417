#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

// What the fuzz targets share. Each is one file that defines LLVMFuzzerTestOneInput(); libFuzzer
// calls it with what it made up, replay.cpp with files.

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace batchwright::fuzz {

/// What must hold for every input.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: does not hold: %s\n", what);
  std::abort();
}

/// Reads every byte, so that the sanitizers see whether it may be read.
template <class T>
void touch(std::span<const T> values) {
  volatile std::uint64_t sum = 0;
  for (const std::byte each : std::as_bytes(values)) sum = sum + std::to_integer<unsigned>(each);
}
inline void touch(std::string_view text) { touch(std::span(text.data(), text.size())); }

/// A copy at a multiple of 64 that ends where its memory does.
class AlignedInput {
 public:
  explicit AlignedInput(std::span<const std::byte> bytes) : size_(bytes.size()) {
    void* room = nullptr;
    require(posix_memalign(&room, 64, size_ == 0 ? 1 : size_) == 0, "there is memory");
    room_.reset(static_cast<std::byte*>(room));
    if (size_ != 0) std::memcpy(room_.get(), bytes.data(), size_);
  }
  std::span<const std::byte> bytes() const { return {room_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* room) const noexcept { std::free(room); }
  };
  std::unique_ptr<std::byte, Free> room_;
  std::size_t size_;
};

/// An input taken as numbers and texts, one after the other; zeros past its end.
class Choices {
 public:
  explicit Choices(std::span<const std::byte> bytes) : rest_(bytes) {}
  Choices(const std::uint8_t* data, std::size_t size)
      : rest_(std::as_bytes(std::span(data, size))) {}

  bool empty() const { return rest_.empty(); }
  std::span<const std::byte> rest() const { return rest_; }

  std::span<const std::byte> take(std::size_t bytes) {
    const auto taken = rest_.first(bytes < rest_.size() ? bytes : rest_.size());
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  template <class Number>
  Number number() {
    Number value{};
    const auto bytes = take(sizeof value);
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  std::uint8_t byte() { return number<std::uint8_t>(); }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace batchwright::fuzz
