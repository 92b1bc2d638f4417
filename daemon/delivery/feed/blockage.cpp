#include "daemon/delivery/feed/blockage.h"

#include <fmt/core.h>

#include <utility>

namespace batchwright {

std::string describe(const Blockage& blockage, WaitingTimes::Time now) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - blockage.since);
  return fmt::format("the file system of {} has not answered for {} s", blockage.by,
                     seconds.count());
}

BlockageWatch::News BlockageWatch::look(std::optional<Blockage> waits_for, Time now) {
  if (waits_for && now - waits_for->since < kBlocked) waits_for.reset();
  News news;
  const bool is_same = waits_for && blockage_ && waits_for->by == blockage_->by;
  if (is_same) return news;
  news.is_blocked = waits_for.has_value();
  news.is_over = std::exchange(blockage_, std::move(waits_for));
  return news;
}

}  // namespace batchwright
