#include <doctest/doctest.h>

#include "formats/formats.h"

using namespace batchwright;

TEST_CASE("formats: a share counts its batches step by step, and back") {
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    const Share share = *rank_share(8, rank, 4);
    CHECK(share.at(0) == BatchIndex{2 * rank});
    CHECK(share.at(1) == BatchIndex{2 * rank + 1});
    CHECK(share.at(2) == BatchIndex{8 + 2 * rank});
    for (std::uint64_t taken = 0; taken < 20; ++taken)
      CHECK(share.before(share.at(taken)) == taken);
  }
  CHECK(whole_share(3).at(7) == BatchIndex{7});
}

TEST_CASE("formats: a batch of another rank is not of a share") {
  const Share share = *rank_share(4, 1, 2);
  CHECK(share.before(BatchIndex{1}) == std::nullopt);
  CHECK(share.before(BatchIndex{2}) == 0);
  CHECK(share.before(BatchIndex{3}) == 1);
  CHECK(share.before(BatchIndex{4}) == std::nullopt);
}
