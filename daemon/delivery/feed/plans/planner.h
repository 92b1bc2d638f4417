#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/assembly/assembly.h"
#include "daemon/planning/planning.h"

namespace batchwright {

struct FeedSettings;

/// Sums over a plan, computed where it is planned: the event loop has no time for them.
struct PlanTotals {
  std::uint64_t selected = 0;   ///< Sequences that the epoch uses.
  std::uint64_t sequences = 0;  ///< Rows of all batches.
  std::uint64_t frames = 0;
  std::uint64_t padded_frames = 0;  ///< Sum of rows * L.
  double zero_padding_rate = 0.0;   ///< ZPR of Ge et al., a fraction of one.
};

/// One planned epoch of a feed.
struct PlannedEpoch {
  std::shared_ptr<const EpochSource> source;   ///< For readahead, and for pages that show a plan.
  std::shared_ptr<const BatchSource> batches;  ///< The source, or what a recipe makes of it.
  PlanTotals totals;
  std::vector<BatchIndex> worst;  ///< Batches with most padded frames, largest first.
  double seconds = 0.0;           ///< Time that planning it took.
  std::shared_ptr<const StoredRows> rows = nullptr;  ///< Of these data; null for a live feed.

  EpochOutline outline() const { return batches->outline(); }
};

/// Most batches that PlannedEpoch::worst names.
inline constexpr std::uint32_t kMostRehearsals = 16;

/// The planning threads. A feed has one plan under way at a time, so that feeds take turns; and the
/// second thread works while the first one is busy, so that a feed whose plans take a moment does
/// not wait for another's that takes seconds. Where threads are few an assembly thread plans,
/// between two batches. Threads: plan() and run() on the event loop; destruction waits for the
/// plans at hand.
class Planner {
 public:
  using Planned = std::function<void(Result<PlannedEpoch>)>;

  static constexpr std::size_t kThreads = 2;  ///< Of its own.

  explicit Planner(boost::asio::io_context& loop);
  /// Plans `elsewhere`.
  Planner(boost::asio::io_context& loop, HelperThread::Elsewhere elsewhere);
  ~Planner();
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

  /// Plans one epoch of a snapshot and calls `planned` on the event loop.
  void plan(std::shared_ptr<const Snapshot> snapshot, const FeedSettings& settings, Epoch epoch,
            Planned planned);

  /// Plans that have not begun are not made.
  void drop();

  /// Does `work` on a planning thread; the caller posts any result to the loop.
  void run(std::function<void()> work);

 private:
  struct Worker;

  boost::asio::io_context& loop_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

/// The plan's settings where rows are made: sequences that are too short for any frame are left
/// out, like those below min_length; where an order file names one, it cannot be planned.
PlanSettings plan_of_made(const FeedSettings& settings);

/// One planned epoch with its figures. Errors: infeasible, also when a plan has no step: the
/// message then names batches and world.
Result<PlannedEpoch> plan_snapshot(std::shared_ptr<const Snapshot> snapshot,
                                   const FeedSettings& settings, Epoch epoch);

/// How many of a dataset's sequences an epoch has, and what became of the others: "60 sequences",
/// or "56 of 60 sequences (2 left out by min_length and max_length, 2 dropped by remainder)".
std::string describe_sequences(const PlannedEpoch& epoch, const PlanSettings& settings);

}  // namespace batchwright
