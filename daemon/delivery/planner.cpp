#include "daemon/delivery/planner.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <exception>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

namespace batchwright {
namespace {

/// ZPR is the mean of the batches' padding rates, weighted by their rows (Ge et al., sec. 4).
PlanTotals totals_of(const EpochPlan& plan) {
  PlanTotals totals;
  double weighted_rates = 0.0;
  for (std::uint64_t i = 0; i < plan.batches(); ++i) {
    const BatchFigures batch = plan.figures(BatchIndex{i});
    const std::uint64_t padded = std::uint64_t{batch.rows} * batch.batch_length;
    totals.sequences += batch.rows;
    totals.frames += batch.frames;
    totals.padded_frames += padded;
    if (padded == 0) continue;
    const double real = static_cast<double>(batch.frames) / static_cast<double>(padded);
    weighted_rates += batch.rows * (1.0 - real);
  }
  if (totals.sequences != 0) {
    totals.zero_padding_rate = weighted_rates / static_cast<double>(totals.sequences);
  }
  return totals;
}

/// Of equal ones those with more rows, and then the first, come first.
std::vector<BatchIndex> worst_of(const EpochPlan& plan) {
  const auto size = [&plan](std::uint64_t index) {
    const BatchFigures batch = plan.figures(BatchIndex{index});
    return std::tuple(std::uint64_t{batch.rows} * batch.batch_length, batch.rows, ~index);
  };
  std::vector<std::uint64_t> worst(plan.batches());
  std::iota(worst.begin(), worst.end(), 0);
  const std::size_t count = std::min<std::size_t>(worst.size(), kMostRehearsals);
  std::partial_sort(worst.begin(), worst.begin() + static_cast<std::ptrdiff_t>(count), worst.end(),
                    [&size](auto a, auto b) { return size(a) > size(b); });
  std::vector<BatchIndex> indices;
  for (std::size_t i = 0; i < count; ++i) indices.push_back(BatchIndex{worst[i]});
  return indices;
}

}  // namespace

Fingerprint fingerprint_of(const Snapshot& snapshot, const PlanSettings& settings) {
  return {snapshot.content(), settings_hash(settings), settings.seed};
}

Result<PlannedEpoch> plan_snapshot(std::shared_ptr<const Snapshot> snapshot,
                                   const PlanSettings& settings, Epoch epoch) {
  auto plan = plan_epoch(snapshot->lengths(), settings, epoch, snapshot->shard_sequences());
  if (!plan) return plan.error();
  if (plan->steps() == 0) {
    return Error{ErrorCode::infeasible,
                 "epoch " + std::to_string(epoch.value) + " of " +
                     std::to_string(snapshot->sequences()) +
                     " sequences has no step: fewer batches than its world of " +
                     std::to_string(settings.world)};
  }
  const Fingerprint fingerprint = fingerprint_of(*snapshot, settings);
  const PlanTotals totals = totals_of(*plan);
  std::vector<BatchIndex> worst = worst_of(*plan);
  return PlannedEpoch{std::make_shared<const EpochSource>(
                          EpochSource{epoch, fingerprint, std::move(snapshot), std::move(*plan),
                                      settings.chunk != 0 || settings.lanes != 0}),
                      totals, std::move(worst)};
}

namespace {

/// Lack of memory ends this plan, and not the daemon.
Result<PlannedEpoch> plan_or_fail(std::shared_ptr<const Snapshot> snapshot,
                                  const PlanSettings& settings, Epoch epoch) {
  try {
    return plan_snapshot(std::move(snapshot), settings, epoch);
  } catch (const std::exception& failure) {
    return Error{ErrorCode::internal, std::string("planning: ") + failure.what()};
  }
}

}  // namespace

Planner::~Planner() {
  thread_.stop();
  thread_.join();
}

void Planner::plan(std::shared_ptr<const Snapshot> snapshot, const PlanSettings& settings,
                   Epoch epoch, Planned planned) {
  run([this, snapshot = std::move(snapshot), settings, epoch,
       planned = std::move(planned)]() mutable {
    auto result = plan_or_fail(std::move(snapshot), settings, epoch);
    boost::asio::post(loop_, [result = std::move(result), planned = std::move(planned)]() mutable {
      planned(std::move(result));
    });
  });
}

void Planner::run(std::function<void()> work) { boost::asio::post(thread_, std::move(work)); }

}  // namespace batchwright
