#include "daemon/live/choose.h"

#include <algorithm>
#include <span>
#include <tuple>

#include "daemon/live/amounts.h"
#include "daemon/planning/planning.h"

namespace batchwright {
namespace {

/// The units of a step, as they are chosen.
class Choice {
 public:
  Choice(const LiveSettings& settings, UnitTable& table) : settings_(settings), table_(table) {}

  /// Puts a unit into the step if it fits. The budget is exceeded only to give each batch a row.
  bool put(UnitId id) {
    LiveUnit& unit = table_.unit(id);
    const bool fits = step_total(settings_, sums_ + unit.sums) <= settings_.step ||
                      batch_places(settings_, sums_) < settings_.world;
    if (!fits) return false;
    unit.chosen = true;
    sums_ += unit.sums;
    units_.push_back(id);
    return true;
  }

  std::uint64_t total() const { return step_total(settings_, sums_); }

  std::vector<UnitId> take() {
    for (const UnitId id : units_) table_.unit(id).chosen = false;
    return std::move(units_);
  }

 private:
  const LiveSettings& settings_;
  UnitTable& table_;
  UnitSums sums_{};
  std::vector<UnitId> units_;
};

/// The units of the window that are not chosen yet, nearest in length to its oldest first: a heap,
/// since a step takes few of them.
class Window {
 public:
  /// `first`: due units that did not fit, which stay before all others.
  Window(const LiveSettings& settings, const UnitTable& table, const std::vector<UnitId>& due,
         std::vector<UnitId> first)
      : first_(std::move(first)) {
    std::vector<UnitId> sorted_due = due;
    std::ranges::sort(sorted_due);
    const std::uint64_t most = settings.window * settings.step;
    StalestFirst fresh(table, &AgeClass::ready);
    UnitSums sums;
    std::uint64_t near = 0;
    for (std::uint64_t place = 0; step_total(settings, sums) < most; ++place) {
      const UnitId id = fresh.next().unit;
      if (id == kNoId) break;
      const LiveUnit& unit = table.unit(id);
      const std::uint64_t mean = unit.mean_length();
      if (place == 0) near = mean;
      sums += unit.sums;
      if (std::ranges::binary_search(sorted_due, id)) continue;
      heap_.push_back({mean > near ? mean - near : near - mean, place, id});
    }
    std::ranges::make_heap(heap_, Later{});
  }

  bool empty() const { return at_ == first_.size() && heap_.empty(); }
  UnitId front() const { return at_ < first_.size() ? first_[at_] : heap_.front().unit; }
  void pop() {
    if (at_ < first_.size()) {
      ++at_;
      return;
    }
    std::ranges::pop_heap(heap_, Later{});
    heap_.pop_back();
  }

 private:
  struct Near {
    std::uint64_t distance = 0;
    std::uint64_t place = 0;
    UnitId unit = kNoId;
  };
  struct Later {
    bool operator()(const Near& a, const Near& b) const {
      return std::tie(a.distance, a.place) > std::tie(b.distance, b.place);
    }
  };

  std::vector<UnitId> first_;
  std::size_t at_ = 0;
  std::vector<Near> heap_;
};

/// Kept units, those delivered longest ago first, until one does not fit.
void put_kept(const UnitTable& table, Choice& choice) {
  const auto& kept = table.kept_by_step();
  for (auto at = kept.begin(); at != kept.end();) {
    const std::uint64_t step = at->first.first;
    std::vector<std::tuple<std::uint64_t, std::uint64_t, UnitId>> equal;
    for (; at != kept.end() && at->first.first == step; ++at) {
      const LiveUnit& unit = table.unit(at->second);
      equal.emplace_back(~unit.cohort->staleness, unit.arrival, at->second);
    }
    std::ranges::sort(equal);
    for (const auto& [stale, arrival, id] : equal) {
      if (!choice.put(id)) return;
    }
  }
}

void choose_fifo(const LiveSettings& settings, const UnitTable& table,
                 const std::vector<UnitId>& due, std::uint64_t need, Choice& choice) {
  std::vector<UnitId> too_large;
  for (const UnitId id : due) {
    if (!choice.put(id)) too_large.push_back(id);
  }
  Window window(settings, table, due, std::move(too_large));
  while (!window.empty() && choice.total() < need && choice.put(window.front())) window.pop();
  put_kept(table, choice);
  while (!window.empty() && choice.put(window.front())) window.pop();
}

void choose_uniform(const LiveSettings& settings, UnitTable& table, std::uint64_t step,
                    std::uint64_t need, Choice& choice) {
  StalestFirst fresh(table, &AgeClass::ready);
  while (choice.total() < need) {
    const UnitId id = fresh.next().unit;
    if (id == kNoId || !choice.put(id)) break;
  }
  std::vector<UnitId> rest = table.by_arrival();
  RandomStream random(settings.seed + step, Stream::uniform);
  permute(std::span(rest), random);
  for (const UnitId id : rest) {
    if (!choice.put(id)) break;
  }
}

/// Lanes take the next in the order, whatever their lengths.
std::vector<UnitId> choose_for_lanes(const UnitTable& table) {
  std::vector<UnitId> units;
  StalestFirst ready(table, &AgeClass::ready);
  while (units.size() < table.lanes().free()) {
    const UnitId id = ready.next().unit;
    if (id == kNoId) break;
    units.push_back(id);
  }
  return units;
}

}  // namespace

std::vector<UnitId> choose_units(const LiveSettings& settings, UnitTable& table, std::uint64_t step,
                                 const std::vector<UnitId>& due, std::uint64_t need) {
  if (table.lanes().exist()) return choose_for_lanes(table);
  Choice choice(settings, table);
  if (settings.select == LiveSelect::fifo) {
    choose_fifo(settings, table, due, need, choice);
  } else {
    choose_uniform(settings, table, step, need, choice);
  }
  return choice.take();
}

}  // namespace batchwright
