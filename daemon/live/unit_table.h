#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "daemon/live/events.h"
#include "daemon/live/lanes/lanes.h"
#include "daemon/live/settings.h"
#include "daemon/live/versions.h"
#include "formats/base/base.h"

namespace batchwright {

/// Values with small numbers, which are used again once they are free.
template <class T>
class SlotMap {
 public:
  T& operator[](std::uint32_t id) { return values_[id]; }
  const T& operator[](std::uint32_t id) const { return values_[id]; }
  /// Of all slots, those that are free as well.
  std::uint32_t size() const { return static_cast<std::uint32_t>(values_.size()); }
  std::uint32_t used() const { return size() - static_cast<std::uint32_t>(free_.size()); }

  std::uint32_t put(const T& value) {
    if (free_.empty()) {
      must(values_.size() < kNoId, "a table of the pool is full");
      values_.push_back(value);
      return size() - 1;
    }
    const std::uint32_t id = free_.back();
    free_.pop_back();
    values_[id] = value;
    return id;
  }
  void free(std::uint32_t id) { free_.push_back(id); }

 private:
  std::vector<T> values_;
  std::vector<std::uint32_t> free_;
};

/// A sequence that is in the pool, or in a step that is not released.
struct LiveSequence {
  ProducerId producer = 0;
  std::uint32_t length = 0;
  std::uint64_t number = 0;
  std::uint64_t arrival = 0;
  std::uint64_t bytes = 0;
  Origin origin;
  double weight = 1.0;
  std::uint32_t unit = kNoId;
  SequenceId next = kNoId;       ///< The next member of its unit.
  std::uint32_t open_steps = 0;  ///< With it, and not released.
  bool left = false;             ///< It is out of the pool.
};

/// What units amount to, one or many of them.
struct UnitSums {
  std::uint64_t units = 0;
  std::uint64_t rows = 0;  ///< Members that are here.
  std::uint64_t frames = 0;
  std::uint64_t bytes = 0;
  std::uint64_t missing = 0;  ///< Members that may still come.

  UnitSums& operator+=(const UnitSums& other);
  UnitSums& operator-=(const UnitSums& other);
  friend UnitSums operator+(UnitSums a, const UnitSums& b) { return a += b; }
};

struct AgeClass;

/// What is cut as a whole: a sequence, or a group with the members that are here.
struct LiveUnit {
  /// The index that holds it.
  enum class Place : std::uint8_t {
    nowhere,  ///< A lane's, too.
    begun,    ///< Incomplete.
    ready,    ///< Complete, and never delivered.
    kept      ///< Delivered, and to be delivered again.
  };
  std::optional<std::uint64_t> group;
  std::uint64_t size = 1;
  std::uint64_t gone = 0;  ///< So many members will not come.
  std::uint64_t arrival = 0;
  std::uint64_t until_ms = 0;  ///< When it is closed, if it is incomplete then.
  ProducerId by = 0;           ///< The producer of its first member.
  SequenceId first = kNoId, last = kNoId;
  UnitSums sums{.units = 1};  ///< `missing` is set while it has a place.
  std::uint64_t others = 0;   ///< Members of other producers.
  std::uint64_t given = 0;    ///< Deliveries.
  std::uint64_t last_step = 0;
  Age age;
  Place place = Place::nowhere;
  bool chosen = false;         ///< For the step that is being cut.
  AgeClass* cohort = nullptr;  ///< Of a unit that has a place and a member.

  std::uint64_t missing() const { return size > gone + sums.rows ? size - gone - sums.rows : 0; }
  bool complete() const { return sums.rows != 0 && missing() == 0; }
  std::uint64_t mean_length() const { return sums.frames / sums.rows; }
};

/// Units of the same age. They are equally stale whatever version comes, until another line begins.
struct AgeClass {
  Age age;
  std::map<std::uint64_t, UnitId> ready, kept;  ///< By arrival.
  UnitSums ready_sums, begun_sums;              ///< Begun units count here once they have a member.
  std::uint64_t staleness = 0;                  ///< At the current version.
};

/// The pool's sequences and units, with the orders and sums that decisions take.
///
/// A unit is changed between lift() and place(), which alone touch the indices. Either costs
/// O(log units).
class UnitTable {
 public:
  UnitTable(const Versions& versions, const LiveSettings& settings);

  LiveSequence& sequence(SequenceId id) { return sequences_[id]; }
  const LiveSequence& sequence(SequenceId id) const { return sequences_[id]; }
  LiveUnit& unit(UnitId id) { return units_[id]; }
  const LiveUnit& unit(UnitId id) const { return units_[id]; }

  /// Its arrival is the number of those before it.
  SequenceId add_sequence(LiveSequence sequence);
  /// For a table that goes on: one that has its arrival. Arrivals grow from one to the next.
  SequenceId restore_sequence(const LiveSequence& sequence);
  /// The same: so many sequences were accepted.
  void restore_accepted(std::uint64_t count) { accepted_ = count; }
  std::uint64_t accepted() const { return accepted_; }  ///< Sequences ever.
  void free_sequence(SequenceId id);
  UnitId add_unit(const LiveUnit& unit);
  /// For one that has no place. Its members stay until they are freed.
  void free_unit(UnitId id);

  /// Both for units that have no place.
  void add_member(UnitId id, SequenceId member);
  void remove_member(UnitId id, SequenceId member);
  std::vector<SequenceId> members(UnitId id) const;

  /// Takes the unit out of all indices and sums, or puts it where it now belongs.
  void lift(UnitId id);
  void place(UnitId id);

  /// What lanes have taken has no other place.
  Lanes& lanes() { return lanes_; }
  const Lanes& lanes() const { return lanes_; }

  const UnitSums& ready() const { return ready_; }
  const UnitSums& kept() const { return kept_; }
  const UnitSums& begun() const { return begun_; }  ///< Those without a member, too.
  /// What was never delivered.
  UnitSums fresh() const { return ready_ + begun_; }

  /// A sequence that waits and was never delivered, and its unit.
  struct Found {
    UnitId unit = kNoId;
    SequenceId sequence = kNoId;
  };
  Found find_waiting(ProducerId producer, std::uint64_t number) const;

  /// Cohorts, the stalest first.
  const std::vector<const AgeClass*>& stalest_first() const;
  /// Incomplete units by arrival.
  const std::map<std::uint64_t, UnitId>& begun_units() const { return begun_units_; }
  /// Units that are kept, by the step of their last delivery, then by arrival.
  const std::map<std::pair<std::uint64_t, std::uint64_t>, UnitId>& kept_by_step() const {
    return kept_by_step_;
  }
  /// The unit that makes room first: the stalest of those that are kept. kNoId: none is.
  UnitId first_to_leave() const;
  /// Complete units by arrival, those that are chosen left out. Costs O(units).
  std::vector<UnitId> by_arrival();

  /// The version is another one, and with `new_line` the ages are, too, which costs
  /// O(units log units).
  void versions_changed(bool new_line);

 private:
  /// What a producer has pushed, by growing numbers: what waits, and some that no longer does.
  struct Pushed {
    std::vector<std::pair<std::uint64_t, SequenceId>> numbers;
    std::size_t most = 64;  ///< Beyond it those that no longer wait are forgotten.
  };

  bool is_waiting(SequenceId id) const;
  void note_pushed(SequenceId id);
  Age age_of(const LiveUnit& unit) const;
  void forget_those_that_left();
  AgeClass& cohort(const Age& age);
  void count(const LiveUnit& unit, bool in);

  const Versions& versions_;
  bool keeps_arrivals_;  ///< Units are asked for by arrival, as `select = "uniform"` does.
  Lanes lanes_;
  SlotMap<LiveSequence> sequences_;
  SlotMap<LiveUnit> units_;
  std::uint64_t accepted_ = 0;  ///< Sequences ever.
  std::map<Age, AgeClass> cohorts_;
  mutable std::vector<const AgeClass*> stalest_first_;  ///< Empty: to be sorted again.
  std::map<std::uint64_t, UnitId> begun_units_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, UnitId> kept_by_step_;
  std::vector<Pushed> pushed_;  ///< By producer.
  std::vector<std::pair<std::uint64_t, UnitId>>
      arrivals_;  ///< Those that left are found there, too.
  UnitSums ready_, kept_, begun_;
};

/// Walks units from the stalest to the freshest, equal ones by arrival.
class StalestFirst {
 public:
  StalestFirst(const UnitTable& table, std::map<std::uint64_t, UnitId> AgeClass::*units);

  struct Next {
    UnitId unit = kNoId;
    std::uint64_t staleness = 0;
  };
  /// The next unit; kNoId after the last. The table must not change between two calls.
  Next next();

 private:
  using Place = std::map<std::uint64_t, UnitId>::const_iterator;

  void begin_level();

  const std::vector<const AgeClass*>& cohorts_;
  std::map<std::uint64_t, UnitId> AgeClass::*units_;
  std::size_t at_ = 0;
  std::uint64_t staleness_ = 0;
  std::vector<std::pair<Place, Place>> level_;  ///< What is left of cohorts that are equally stale.
};

}  // namespace batchwright
