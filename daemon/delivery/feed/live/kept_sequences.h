#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "daemon/delivery/feed/live/live_source.h"
#include "daemon/live/live.h"
#include "formats/formats.h"

namespace batchwright {

/// The sequences that a live feed keeps: those in its pool, those of steps that are kept, and those
/// that are to be written to its record. Their names here are their arrivals. Threads: one at a
/// time.
class KeptSequences {
 public:
  /// Called for a sequence that is kept no more.
  using Freed = std::function<void(ProducerId, const PushedSequence&, bool in_area)>;

  explicit KeptSequences(Freed freed) : freed_(std::move(freed)) {}

  /// It is in the pool from now on. `in_area`: its bytes lie in its producer's area.
  void add(std::shared_ptr<const PushedSequence> sequence, ProducerId producer, bool in_area);
  const std::shared_ptr<const PushedSequence>& at(std::uint64_t arrival) const {
    return all_.at(arrival).sequence;
  }
  ProducerId producer_of(std::uint64_t arrival) const { return all_.at(arrival).producer; }
  /// False for one that is kept no more.
  bool is_held(std::uint64_t arrival) const {
    const auto found = all_.find(arrival);
    return found != all_.end() && found->second.held;
  }
  bool in_pool(std::uint64_t arrival) const { return all_.at(arrival).in_pool; }
  /// It has left the pool; it may be told again with each of its steps.
  void leave_pool(std::uint64_t arrival);
  /// A step has these, which it may name several times.
  void add_step(std::uint64_t step, std::vector<std::uint64_t> arrivals);
  /// It is kept until let_go(), whatever becomes of its steps.
  void hold(std::uint64_t arrival) { all_.at(arrival).held = true; }
  void let_go(std::uint64_t arrival);
  /// The steps before this one are kept no more.
  void keep_from(std::uint64_t step);
  /// Sequences in the pool, and in steps.
  std::size_t size() const { return all_.size(); }
  std::uint64_t bytes() const { return bytes_; }  ///< Of all of them.
  /// Bytes of sequences that are in steps alone; and of those in a producer's areas.
  std::uint64_t bytes_beside_pool() const { return beside_pool_; }
  std::uint64_t area_bytes_beside_pool(ProducerId producer) const {
    return producer < of_areas_.size() ? of_areas_[producer] : 0;
  }
  /// Whether these have grown since note_looked().
  bool has_grown() const { return has_grown_; }
  void note_looked() { has_grown_ = false; }
  /// The first step that is kept; `none` if none is.
  std::uint64_t first_step(std::uint64_t none) const {
    return steps_.empty() ? none : steps_.begin()->first;
  }

 private:
  struct Kept {
    std::shared_ptr<const PushedSequence> sequence;
    ProducerId producer = 0;
    bool in_pool = true;
    bool in_area = false;
    bool held = false;
    std::uint32_t steps = 0;
  };
  void count_beside(const Kept& kept, bool in);
  void free_if_unused(std::map<std::uint64_t, Kept>::iterator of);

  Freed freed_;
  std::map<std::uint64_t, Kept> all_;
  std::map<std::uint64_t, std::vector<std::uint64_t>> steps_;
  std::uint64_t bytes_ = 0;
  std::uint64_t beside_pool_ = 0;
  std::vector<std::uint64_t> of_areas_;  ///< The same in areas, by producer.
  bool has_grown_ = false;
};

}  // namespace batchwright
