#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>

#include "client/library/memory/mapping.h"
#include "client/library/produce/free_room.h"

namespace batchwright {

/// A producer's area and what is where in it: room that is written to, and sequences that were
/// offered to the daemon, which tells by their numbers when it reads them no more.
/// Threads: one at a time; what was put somewhere may be written to meanwhile.
class AreaStore {
 public:
  AreaStore(std::shared_ptr<const Area> area, std::uint32_t number)
      : area_(std::move(area)), number_(number), free_(area_->bytes().size()) {}

  std::uint32_t number() const { return number_; }
  /// Keeps the memory.
  std::shared_ptr<const void> keeper() const { return area_; }
  std::uint64_t bytes() const { return area_->bytes().size(); }
  std::uint64_t used() const { return free_.used(); }
  /// How many sequences are in the daemon's hands.
  std::size_t offered() const { return offered_.size(); }

  /// Room for so many bytes, 64-byte aligned; empty when there is none for now.
  std::optional<std::uint64_t> take(std::uint64_t bytes) { return free_.take(bytes); }
  void give_back(std::uint64_t place, std::uint64_t bytes) { free_.give_back(place, bytes); }
  std::span<std::byte> at(std::uint64_t place, std::uint64_t bytes) const {
    return area_->bytes().subspan(place, bytes);
  }

  /// From now on the room is the daemon's, until it frees the number.
  void offer(std::uint64_t number, std::uint64_t place, std::uint64_t bytes) {
    offered_[number] = {place, bytes};
  }
  /// It is not the daemon's after all, and stays with its offer.
  void withdraw(std::uint64_t number) { offered_.erase(number); }
  /// What has no room of this number, as after a second time, changes nothing.
  void freed(std::uint64_t number) {
    const auto found = offered_.find(number);
    if (found == offered_.end()) return;
    free_.give_back(found->second.place, found->second.bytes);
    offered_.erase(found);
  }

 private:
  struct Offered {
    std::uint64_t place = 0;
    std::uint64_t bytes = 0;
  };

  const std::shared_ptr<const Area> area_;
  const std::uint32_t number_;  ///< By which it is asked for.
  FreeRoom free_;
  std::unordered_map<std::uint64_t, Offered> offered_;
};

}  // namespace batchwright
