#pragma once

#include <algorithm>
#include <boost/throw_exception.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>

namespace batchwright {

/// The element of an order: the length and the id of an item in one word, so that what reads the
/// order need not look up the length, which costs a cache miss an item.
inline std::uint64_t key_word(std::uint32_t key, std::uint32_t item) {
  return (std::uint64_t{key} << 32) | item;
}
inline std::uint32_t key_of(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); }
inline std::uint32_t item_of(std::uint64_t word) { return static_cast<std::uint32_t>(word); }

/// Memory for an order: first words, later packed in place to ids alone, which gives half of it
/// back. Not a vector, since that would write zeros first and move when it shrinks.
class WordBuffer {
 public:
  WordBuffer() = default;
  explicit WordBuffer(std::size_t words) : size_(words) { resize_bytes(words * 8); }

  /// Words, or items once packed.
  std::size_t size() const { return size_; }

  /// Before the first pack().
  std::span<std::uint64_t> words() {
    return {static_cast<std::uint64_t*>(static_cast<void*>(bytes_.get())), size_};
  }

  /// Puts `item` at place `to`, which is not behind the last word read. Words are spoilt.
  void pack(std::size_t to, std::uint32_t item) {
    std::memcpy(bytes_.get() + to * 4, &item, 4);  // the place is part of a word
  }
  std::uint64_t word(std::size_t i) const {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes_.get() + i * 8, 8);
    return word;
  }

  /// After the last pack(): keeps `items` of them.
  void finish_packing(std::size_t items) {
    size_ = items;
    resize_bytes(items * 4);
  }
  std::span<const std::uint32_t> items() const {
    return {static_cast<const std::uint32_t*>(static_cast<const void*>(bytes_.get())), size_};
  }

 private:
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };

  void resize_bytes(std::size_t bytes) {
    void* moved = std::realloc(bytes_.get(), std::max<std::size_t>(bytes, 1));
    if (moved == nullptr) boost::throw_exception(std::bad_alloc());
    static_cast<void>(bytes_.release());  // realloc has taken it
    bytes_.reset(static_cast<std::byte*>(moved));
  }

  std::unique_ptr<std::byte, Free> bytes_;
  std::size_t size_ = 0;
};

}  // namespace batchwright
