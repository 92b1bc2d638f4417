#include "storage/ingest/commit_pace.h"

#include <doctest/doctest.h>

#include "storage/dataset/writer.h"

using namespace batchwright;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kEnough = CommitPace::kLeastBytes;
constexpr CommitPace::Time kStart{1000s};

}  // namespace

TEST_CASE("storage: an ingest commits once there is enough, long before the writer has to") {
  const CommitPace pace;
  CHECK_FALSE(pace.is_due(kEnough - 1, kStart));
  CHECK(pace.is_due(kEnough, kStart));
  CHECK(WriterLimits{}.commit_bytes >= 8 * kEnough);
}

TEST_CASE("storage: commits of an ingest take a tenth of its time at most") {
  CommitPace pace;
  pace.committed(kStart, kStart + 20ms);
  CHECK_FALSE(pace.is_due(kEnough, kStart + 20ms));
  CHECK_FALSE(pace.is_due(8 * kEnough, kStart + 199ms));
  CHECK(pace.is_due(kEnough, kStart + 200ms));
  CHECK_FALSE(pace.is_due(kEnough - 1, kStart + 10s));
  SUBCASE("and the next follows sooner where the disk has become faster") {
    pace.committed(kStart + 200ms, kStart + 201ms);
    CHECK_FALSE(pace.is_due(kEnough, kStart + 209ms));
    CHECK(pace.is_due(kEnough, kStart + 210ms));
  }
}
