#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// The data of each epoch of a feed, by their content fingerprint, once decided: by the epoch's
/// first plan, by a queue's journal, or by a client that goes on within it. The first decision
/// holds.
/// Threads: the event loop only.
class EpochContents {
 public:
  /// Epochs remembered that are not in use: 64 KiB at most.
  static constexpr std::size_t kMostIdle = 1024;

  std::optional<std::uint64_t> find(Epoch epoch) const;
  /// False when other data were decided before.
  bool decide(Epoch epoch, std::uint64_t data);
  /// It is planned from what was decided.
  void planned(Epoch epoch);
  /// Decides anew. The caller knows that no client has anything of the epoch.
  void replace(Epoch epoch, std::uint64_t data);
  void forget(Epoch epoch) { entries_.erase(epoch); }
  /// Forgets what was decided for epochs that were then not planned, and of others all but the
  /// latest; none that is in use. Returns those that are forgotten.
  std::vector<Epoch> tidy(const std::function<bool(Epoch)>& in_use);

 private:
  struct Entry {
    std::uint64_t data = 0;
    bool planned = false;
    std::uint64_t used = 0;  ///< The larger, the later.
  };
  std::map<Epoch, Entry> entries_;
  std::uint64_t clock_ = 0;
};

}  // namespace batchwright
