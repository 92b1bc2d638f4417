#include "daemon/delivery/feed/plans/planner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <chrono>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "daemon/delivery/feed/feed_resources.h"

namespace batchwright {
namespace {

/// The figures of a plan. They are gathered in one pass, for each batch's lengths lie all over
/// memory.
class Survey {
 public:
  void add(BatchIndex index, const BatchFigures& batch) {
    const std::uint64_t padded = std::uint64_t{batch.rows} * batch.batch_length;
    totals_.sequences += batch.rows;
    totals_.frames += batch.frames;
    totals_.padded_frames += padded;
    if (padded == 0) return;
    const double real = static_cast<double>(batch.frames) / static_cast<double>(padded);
    weighted_rates_ += batch.rows * (1.0 - real);
    keep_if_large({padded, batch.rows, ~index.value});
  }

  /// ZPR is the mean of the batches' padding rates, weighted by their rows (Ge et al., sec. 4).
  PlanTotals totals() const {
    PlanTotals totals = totals_;
    if (totals.sequences != 0) {
      totals.zero_padding_rate = weighted_rates_ / static_cast<double>(totals.sequences);
    }
    return totals;
  }

  /// Largest first.
  std::vector<BatchIndex> worst() const {
    std::vector<BatchIndex> indices;
    for (auto size = worst_.rbegin(); size != worst_.rend(); ++size) {
      indices.push_back(BatchIndex{~std::get<2>(*size)});
    }
    return indices;
  }

 private:
  /// Padded frames, rows, and the index with its bits turned: of equal ones those with more rows,
  /// and then the first, are larger.
  using Size = std::tuple<std::uint64_t, std::uint32_t, std::uint64_t>;

  void keep_if_large(const Size& size) {
    if (worst_.size() == kMostRehearsals && size < *worst_.begin()) return;
    worst_.insert(size);
    if (worst_.size() > kMostRehearsals) worst_.erase(worst_.begin());
  }

  PlanTotals totals_;
  double weighted_rates_ = 0.0;
  std::set<Size> worst_;
};

Survey survey(const EpochPlan& plan) {
  Survey seen;
  plan.each_figures(
      [&seen](BatchIndex index, const BatchFigures& batch) { seen.add(index, batch); });
  return seen;
}

/// What planning takes a sequence at its peak, lengths of a recipe's rows included.
constexpr std::size_t kBytesPlanned = 20;

}  // namespace

PlanSettings plan_of_made(const FeedSettings& settings) {
  PlanSettings plan = settings.plan;
  if (plan.order == Order::file) return plan;
  plan.min_length = std::max(plan.min_length, 1U);
  return plan;
}

Result<PlannedEpoch> plan_snapshot(std::shared_ptr<const Snapshot> snapshot,
                                   const FeedSettings& settings, Epoch epoch) {
  const auto began = std::chrono::steady_clock::now();
  auto there = probe_memory(snapshot->sequences(), kBytesPlanned, "a plan");
  if (!there) return there.error();
  SharedLengths lengths;
  DrawKeys draws;
  if (settings.recipe) {
    auto made = settings.recipe->lengths(*snapshot, epoch);
    if (!made) return made.error();
    lengths = *std::move(made);
    auto keys = settings.recipe->draw_keys(*snapshot, epoch);
    if (!keys) return keys.error();
    draws = *std::move(keys);
  }
  const PlanSettings wanted = lengths ? plan_of_made(settings) : settings.plan;
  auto plan = plan_epoch(lengths ? std::span<const std::uint32_t>(*lengths) : snapshot->lengths(),
                         wanted, epoch, snapshot->shard_sequences());
  if (!plan) return plan.error();
  if (plan->steps() == 0) {
    return Error{ErrorCode::infeasible,
                 fmt::format("epoch {} of {} sequences has no step: fewer "
                             "batches than its world of {}",
                             epoch.value, snapshot->sequences(), wanted.world)};
  }
  const Fingerprint fingerprint = fingerprint_of(*snapshot, settings);
  const Survey seen = survey(*plan);
  PlanTotals totals = seen.totals();
  totals.selected = plan->counts().selected;
  const auto keep_rows = [&settings] {
    return settings.row_budget ? std::make_shared<RowCache>(settings.row_budget)
                               : std::make_shared<RowCache>();
  };
  auto rows = std::make_shared<const StoredRows>(fingerprint, snapshot, settings.recipe, draws,
                                                 keep_rows());
  const auto source = std::make_shared<const EpochSource>(
      epoch, fingerprint, std::move(snapshot), std::move(*plan), makes_parts(wanted), lengths);
  std::shared_ptr<const BatchSource> batches = source;
  if (settings.recipe) {
    batches = std::make_shared<const RecipeSource>(source, settings.recipe, std::move(lengths),
                                                   std::move(draws), keep_rows());
  }
  return PlannedEpoch{
      source,
      std::move(batches),
      totals,
      seen.worst(),
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(),
      std::move(rows)};
}

std::string describe_sequences(const PlannedEpoch& epoch, const PlanSettings& settings) {
  const PlanCounts counts = epoch.source->plan.counts();
  const std::uint64_t all = epoch.source->snapshot->sequences();
  std::vector<std::string> others;
  std::uint64_t used = counts.selected;
  if (counts.left_out != 0) {
    others.push_back(fmt::format("{} left out by min_length and max_length", counts.left_out));
  }
  if (settings.order == Order::file) {
    const std::uint64_t rows = epoch.totals.sequences;
    return fmt::format("{} rows of {} of {} sequences, as order_file has them", rows, used, all);
  }
  if (counts.selected < counts.kept) {
    others.push_back(fmt::format("{} not drawn by select", counts.kept - counts.selected));
  }
  // A row is a sequence, but in chunks and lanes, of which a sequence has many.
  const bool rows_are_sequences = settings.chunk == 0 && settings.lanes == 0;
  if (rows_are_sequences && epoch.totals.sequences < used) {
    const char* why = settings.last == LastBatch::drop ? "last and remainder" : "remainder";
    others.push_back(fmt::format("{} dropped by {}", used - epoch.totals.sequences, why));
    used = epoch.totals.sequences;
  }
  if (others.empty()) return fmt::format("{} sequences", all);
  return fmt::format("{} of {} sequences ({})", used, all, fmt::join(others, ", "));
}

/// A thread, and how much work it has.
struct Planner::Worker {
  explicit Worker(const char* name) : thread(name) {}
  explicit Worker(HelperThread::Elsewhere elsewhere) : thread(std::move(elsewhere)) {}

  std::atomic<std::size_t> works = 0;
  HelperThread thread;  ///< Ends before what it counts in goes.
};

Planner::Planner(boost::asio::io_context& loop) : loop_(loop) {
  for (std::size_t i = 0; i < kThreads; ++i)
    workers_.push_back(std::make_unique<Worker>("bw-plan"));
}

Planner::Planner(boost::asio::io_context& loop, HelperThread::Elsewhere elsewhere) : loop_(loop) {
  workers_.push_back(std::make_unique<Worker>(std::move(elsewhere)));
}

Planner::~Planner() { drop(); }

void Planner::drop() {
  for (const auto& worker : workers_) worker->thread.drop();
}

void Planner::plan(std::shared_ptr<const Snapshot> snapshot, const FeedSettings& settings,
                   Epoch epoch, Planned planned) {
  run([this, snapshot = std::move(snapshot), settings, epoch,
       planned = std::move(planned)]() mutable {
    // A lack of memory ends this plan, not the daemon.
    auto result = as_result(ErrorCode::internal, "planning: ", [&] {
      return plan_snapshot(std::move(snapshot), settings, epoch);
    });
    boost::asio::post(loop_, [result = std::move(result), planned = std::move(planned)]() mutable {
      planned(std::move(result));
    });
  });
}

void Planner::run(std::function<void()> work) {
  Worker& least = **std::min_element(
      workers_.begin(), workers_.end(),
      [](const auto& one, const auto& other) { return one->works < other->works; });
  ++least.works;
  least.thread.put([work = std::move(work), &least]() mutable {
    std::exchange(work, nullptr)();
    --least.works;
    give_heap_back();  // planning takes several times what a plan is, once an epoch
  });
}

}  // namespace batchwright
