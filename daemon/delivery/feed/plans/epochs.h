#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "daemon/delivery/feed/plans/planner.h"

namespace batchwright {

/// The planned epochs that a feed still needs, and which of their batches were assembled before.
/// Threads: the event loop only.
class Epochs {
 public:
  /// The epoch's plan; empty when it is not there (yet).
  std::shared_ptr<const EpochSource> find(Epoch epoch) const;
  /// Its batches, as they are assembled; empty as before.
  std::shared_ptr<const BatchSource> batches(Epoch epoch) const;
  std::uint64_t steps(Epoch epoch) const;  ///< 0 when it is not there.
  void planned(PlannedEpoch epoch);

  /// The batches of a planned epoch that are largest with their padding, largest first.
  std::vector<BatchIndex> worst(Epoch epoch) const;

  /// Notes that a batch was assembled; true when it had been before.
  bool mark_assembled(const BatchId& id);
  /// Notes a sequence that is left out of an epoch; how many different ones are by now.
  std::uint64_t mark_lost(Epoch epoch, Ordinal ordinal);
  /// Notes a corrupt record; true when it was not known before, of any epoch.
  bool mark_corrupt(Ordinal ordinal) { return corrupt_.insert(ordinal).second; }
  void forget(Epoch epoch) { entries_.erase(epoch); }
  /// Forgets every epoch that is not in `needed`.
  void keep(const std::set<Epoch>& needed);
  /// The last that is there; empty: there is none.
  std::optional<Epoch> last() const;
  std::set<Epoch> numbers() const;
  /// All that are there, in order.
  std::vector<PlannedEpoch> all() const;

 private:
  struct Entry {
    PlannedEpoch planned;
    std::vector<bool> assembled;
    std::set<Ordinal> lost;  ///< No more of them than a feed bears, and a batch.
  };
  std::map<Epoch, Entry> entries_;
  std::set<Ordinal> corrupt_;
};

/// How many sequences of an epoch may be corrupt before its feed fails, by the share that is
/// allowed: one always, so that a small dataset is served on with a bad record, unless it is 0.
std::uint64_t losses_allowed(double share, std::uint64_t sequences);

}  // namespace batchwright
