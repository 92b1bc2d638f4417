#include "client/command/live/plan_place.h"

#include <fmt/core.h>

#include <chrono>

namespace batchwright {
namespace {

constexpr std::chrono::seconds kAnswer{60};

/// Moves `at` over the steps of its epoch that lie before `rows`, as far as the plan is told at
/// once. False when the place is found.
bool walk(client::Connection& connection, const CountedEpochs& counted, PlanPlace& at,
          std::uint64_t& rows) {
  client::SubscribeOptions wanted;
  wanted.feed = counted.feed;
  wanted.window = 1;
  wanted.epoch = at.epoch;
  wanted.step = at.step;
  client::Subscription subscription = connection.subscribe(wanted);
  const bw_grant grant = subscription.grant();
  const auto upcoming = subscription.upcoming(BW_MAX_UPCOMING, kAnswer);
  const std::uint64_t begin = at.step;
  for (std::size_t i = 0; i + grant.batches_per_step <= upcoming.size();
       i += grant.batches_per_step) {
    if (upcoming[i].epoch != at.epoch) break;
    std::uint64_t of_step = 0;
    for (std::size_t k = i; k < i + grant.batches_per_step; ++k) of_step += upcoming[k].rows;
    if (of_step > rows) return false;
    rows -= of_step;
    ++at.step;
  }
  if (at.step >= grant.steps) {
    ++at.epoch;
    at.step = 0;
  } else if (at.step == begin) {
    throw client::Error(BW_UNSUPPORTED,
                        fmt::format("feed \"{}\" has steps of {} batches, and the plan is told {} "
                                    "batches at a time",
                                    counted.feed, grant.batches_per_step, BW_MAX_UPCOMING));
  }
  return true;
}

}  // namespace

PlanPlace place_behind(client::Connection& connection, const CountedEpochs& counted,
                       std::uint64_t rows) {
  PlanPlace at{counted.first, 0, 0, false};
  const auto is_over = [&] {
    return counted.epochs != 0 && at.epoch >= counted.first + counted.epochs;
  };
  while (rows > 0 && !is_over() && walk(connection, counted, at, rows)) {
  }
  at.rows = rows;
  at.is_over = is_over();
  return at;
}

}  // namespace batchwright
