#include "client/library/memory/fault_table.h"

#include <algorithm>
#include <cstring>

namespace batchwright {

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);  // or a handler might wait

FaultTable& FaultTable::of_process() {
  static constinit FaultTable table;  // constant-initialised: it is there before any signal
  return table;
}

FaultTable::Entry FaultTable::add(std::span<const std::byte> bytes, std::string_view feed,
                                  std::uint64_t epoch, std::uint64_t step,
                                  std::uint64_t index) noexcept {
  const std::size_t first = next_.fetch_add(1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < kPlaces; ++i) {
    const std::size_t number = (first + i) % kPlaces;
    Place& place = places_[number];
    if (place.taken.exchange(true, std::memory_order_acquire)) continue;
    std::array<std::uint64_t, kWords> name{};
    if (!feed.empty()) std::memcpy(name.data(), feed.data(), std::min(feed.size(), kNameBytes));
    place.version.fetch_add(1, std::memory_order_acq_rel);
    place.epoch.store(epoch, std::memory_order_release);
    place.step.store(step, std::memory_order_release);
    place.index.store(index, std::memory_order_release);
    for (std::size_t w = 0; w < kWords; ++w) {
      place.feed[w].store(name[w], std::memory_order_release);
    }
    const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
    place.begin.store(begin, std::memory_order_release);
    place.end.store(begin + bytes.size(), std::memory_order_release);
    place.version.fetch_add(1, std::memory_order_acq_rel);
    return {*this, number};
  }
  return {};
}

void FaultTable::remove(std::size_t number) noexcept {
  Place& place = places_[number];
  place.version.fetch_add(1, std::memory_order_acq_rel);
  place.end.store(0, std::memory_order_release);
  place.begin.store(0, std::memory_order_release);
  place.version.fetch_add(1, std::memory_order_acq_rel);
  place.taken.store(false, std::memory_order_release);
}

std::optional<FaultTable::Shown> FaultTable::find(const void* address) const noexcept {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::optional<Shown> found;
  for (const Place& place : places_) {
    const auto shown = read(place, wanted);
    if (!shown) continue;
    if (shown->feed[0] != '\0') return shown;
    found = shown;
  }
  return found;
}

/// Empty when the address lies elsewhere, or the place has changed meanwhile.
std::optional<FaultTable::Shown> FaultTable::read(const Place& place,
                                                  std::uintptr_t address) noexcept {
  const std::uint64_t before = place.version.load(std::memory_order_acquire);
  if (before % 2 != 0 || address < place.begin.load(std::memory_order_acquire) ||
      address >= place.end.load(std::memory_order_acquire)) {
    return std::nullopt;
  }
  Shown shown;
  shown.epoch = place.epoch.load(std::memory_order_acquire);
  shown.step = place.step.load(std::memory_order_acquire);
  shown.index = place.index.load(std::memory_order_acquire);
  for (std::size_t w = 0; w < kWords; ++w) {
    const std::uint64_t word = place.feed[w].load(std::memory_order_acquire);
    std::memcpy(shown.feed.data() + w * sizeof word, &word, sizeof word);
  }
  if (place.version.load(std::memory_order_acquire) != before) return std::nullopt;
  return shown;
}

}  // namespace batchwright
