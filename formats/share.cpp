#include "formats/share.h"

#include <fmt/core.h>

namespace batchwright {

Result<Share> rank_share(std::uint32_t world, std::uint32_t rank, std::uint32_t ranks) {
  if (ranks == 0 || rank >= ranks) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("rank {} of {} ranks: a rank is below the number of ranks", rank, ranks)};
  }
  if (world % ranks != 0) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{} ranks do not divide the feed's world of {}", ranks, world)};
  }
  const std::uint32_t count = world / ranks;
  return Share{world, rank * count, count};
}

}  // namespace batchwright
