#pragma once

#include <flatbuffers/flatbuffers.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace batchwright {

/// A small FlatBuffer at an address where its scalars may be read. LMDB values and ZeroMQ
/// frames start anywhere, even at odd addresses, and the FlatBuffers verifier does not notice.
class AlignedCopy {
 public:
  explicit AlignedCopy(std::span<const std::byte> bytes)
      : words_((bytes.size() + 7) / 8), size_(bytes.size()) {
    if (size_ != 0) std::memcpy(words_.data(), bytes.data(), size_);
  }
  const std::uint8_t* data() const { return reinterpret_cast<const std::uint8_t*>(words_.data()); }
  std::size_t size() const { return size_; }

 private:
  std::vector<std::uint64_t> words_;
  std::size_t size_;
};

/// Whether the numbers of a list may be read where they lie: the FlatBuffers verifier looks at the
/// alignment of a vector's size alone. An empty one has no place.
template <class T>
bool is_aligned(const flatbuffers::Vector<T>* list) {
  return list == nullptr || list->size() == 0 ||
         reinterpret_cast<std::uintptr_t>(list->Data()) % alignof(T) == 0;
}

}  // namespace batchwright
