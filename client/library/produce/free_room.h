#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace batchwright {

/// The free parts of an area: a taker gets the first that is large enough, so that a producer
/// whose sequences are read soon touches few pages.
///
/// Places and sizes are multiples of kGranule. Threads: one at a time.
class FreeRoom {
 public:
  static constexpr std::uint64_t kGranule = 64;

  /// What `bytes` take up: the next multiple of kGranule, and not nothing.
  static constexpr std::uint64_t taken_by(std::uint64_t bytes) {
    return bytes == 0 ? kGranule : (bytes + kGranule - 1) / kGranule * kGranule;
  }

  explicit FreeRoom(std::uint64_t bytes);

  /// A place for so many bytes; empty when no part is large enough.
  std::optional<std::uint64_t> take(std::uint64_t bytes);
  /// Gives back what take() gave for as many bytes.
  void give_back(std::uint64_t place, std::uint64_t bytes);

  std::uint64_t used() const { return used_; }

 private:
  std::map<std::uint64_t, std::uint64_t> free_;  ///< Sizes by place. No two parts touch.
  std::uint64_t used_ = 0;
};

}  // namespace batchwright
