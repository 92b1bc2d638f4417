#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "daemon/delivery/feed/core/events.h"
#include "daemon/planning/planning.h"

namespace batchwright::simulation {

/// A dataset that grows, commit by commit, and its plans. Sequences are lengths and no bytes.
/// Lifetime: plans refer to its lengths.
class Data {
 public:
  /// What one commit made of it.
  struct Version {
    std::uint64_t content = 0;  ///< In fingerprints.
    std::vector<std::uint32_t> lengths;
    std::size_t slot_bytes = 0;
  };

  Data(PlanSettings settings, std::uint32_t sequences);

  void grow(std::uint32_t sequences, bool needs_larger_slots);
  const Version& newest() const { return versions_.back(); }
  /// Null when no version has this content.
  const Version* find(std::uint64_t content) const;
  static Fingerprint fingerprint_of(const Version& version) { return {version.content, 2, 3}; }
  static DataFacts facts_of(const Version& version);
  const PlannedEpoch& plan(const Version& version, Epoch epoch);

 private:
  PlanSettings settings_;
  std::deque<Version> versions_;
  std::map<std::pair<std::uint64_t, Epoch>, PlannedEpoch> plans_;
};

}  // namespace batchwright::simulation
