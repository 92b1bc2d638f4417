#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace batchwright {

/// The memory that a program may read but not write to, by address: held batches, and whole arenas.
/// It is for the handler of a signal, which may come at any instruction of any thread.
///
/// Bounds: 512 places. What comes when all are taken is not in the table, and so a write to it is
///   explained by its arena alone, or not at all.
/// Threads: any, at any time. No lock and no allocation in any method.
class FaultTable {
 public:
  static constexpr std::size_t kPlaces = 512;
  static constexpr std::size_t kNameBytes = 64;  ///< A feed's name is cut off there.

  /// The batch at an address. Without a feed it is an arena as a whole.
  struct Shown {
    std::array<char, kNameBytes + 1> feed{};
    std::uint64_t epoch = 0;
    std::uint64_t step = 0;
    std::uint64_t index = 0;
  };

  /// A place that is taken, and given back with this object.
  class Entry {
   public:
    Entry() = default;
    Entry(FaultTable& table, std::size_t place) : table_(&table), place_(place) {}
    Entry(Entry&& other) noexcept : table_(other.table_), place_(other.place_) {
      other.table_ = nullptr;
    }
    Entry& operator=(Entry&& other) noexcept {
      std::swap(table_, other.table_);
      std::swap(place_, other.place_);
      return *this;
    }
    ~Entry() {
      if (table_ != nullptr) table_->remove(place_);
    }

   private:
    FaultTable* table_ = nullptr;
    std::size_t place_ = 0;
  };

  /// The one that the signal's handler looks into.
  static FaultTable& of_process();

  Entry add(std::span<const std::byte> bytes, std::string_view feed = {}, std::uint64_t epoch = 0,
            std::uint64_t step = 0, std::uint64_t index = 0) noexcept;
  /// The contents of an address: the batch, otherwise the arena, otherwise nothing.
  std::optional<Shown> find(const void* address) const noexcept;

 private:
  static constexpr std::size_t kWords = kNameBytes / sizeof(std::uint64_t);
  /// Written between two steps of `version`, so that a reader notices a change under its hands.
  struct Place {
    std::atomic<bool> taken{false};
    std::atomic<std::uint64_t> version{0};
    std::atomic<std::uintptr_t> begin{0};
    std::atomic<std::uintptr_t> end{0};
    std::atomic<std::uint64_t> epoch{0};
    std::atomic<std::uint64_t> step{0};
    std::atomic<std::uint64_t> index{0};
    std::array<std::atomic<std::uint64_t>, kWords> feed{};
  };
  static std::optional<Shown> read(const Place& place, std::uintptr_t address) noexcept;
  void remove(std::size_t place) noexcept;

  std::array<Place, kPlaces> places_{};
  std::atomic<std::size_t> next_{0};  ///< The place at which the search for a free one begins.
};

}  // namespace batchwright
