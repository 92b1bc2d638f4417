#include <doctest/doctest.h>

#include <algorithm>

#include "tests/integration/daemon_process.h"
#include "tests/integration/seen.h"
#include "tests/support/full_dataset.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// A feed over 50 sequences of up to 50 frames with all kinds of fields.
struct ChunkedFeed {
  explicit ChunkedFeed(const std::string& plan, const std::string& layout = "batch-major")
      : daemon("layout = \"" + layout + "\"\n[feed.plan]\nsize = 6\nseed = 4\n" + plan, 0) {
    make_full_dataset(daemon.dataset(), lengths);
  }
  std::vector<std::uint32_t> lengths = mixed_lengths(50, 50);
  DaemonProcess daemon;
};

/// The chunks of n frames, one each h frames, up to the first that reaches the sequence's end.
std::vector<SeenRow> expected_chunks(const std::vector<std::uint32_t>& lengths, std::uint32_t n,
                                     std::uint32_t h) {
  std::vector<SeenRow> rows;
  for (std::uint64_t ordinal = 0; ordinal < lengths.size(); ++ordinal) {
    for (std::uint32_t start = 0; start == 0 || start + n < lengths[ordinal] + h; start += h) {
      const std::uint32_t frames = std::min(n, lengths[ordinal] - start);
      rows.push_back({ordinal, start, frames, start == 0, start + frames == lengths[ordinal]});
    }
  }
  return rows;
}

std::vector<SeenRow> sorted_rows(const std::vector<SeenBatch>& batches, std::uint64_t epoch) {
  std::vector<SeenRow> rows;
  for (const SeenBatch& batch : batches) {
    if (batch.epoch != epoch) continue;
    rows.insert(rows.end(), batch.rows.begin(), batch.rows.end());
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

/// How often each frame of one sequence is in a row.
std::vector<std::uint32_t> coverage(const std::vector<SeenRow>& rows, std::uint64_t ordinal,
                                    std::uint32_t length) {
  std::vector<std::uint32_t> times(length);
  for (const SeenRow& row : rows) {
    if (row.ordinal != ordinal) continue;
    for (std::uint32_t t = 0; t < row.length; ++t) ++times.at(row.start + t);
  }
  return times;
}

}  // namespace

TEST_CASE("integration: chunks bring the frames they name, and whole what has no frames") {
  for (const std::string layout : {"batch-major", "time-major"}) {
    ChunkedFeed feed("chunk = 20\nhop = 8\n", layout);
    REQUIRE(feed.daemon.start());
    std::size_t cut_short = 0;
    const auto batches = take(feed.daemon.endpoint(), {}, [&](const bw_batch* batch) {
      check_full_batch(batch);
      cut_short += bw_batch_get_header(batch)->starts != nullptr;
    });
    CHECK(cut_short > batches.size() / 2);
  }
}

TEST_CASE("integration: an epoch of chunks is every chunk once, with reset and last") {
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> sizes = {{20, 8}, {16, 16}, {7, 1}};
  for (const auto& [chunk, hop] : sizes) {
    ChunkedFeed feed("chunk = " + std::to_string(chunk) + "\nhop = " + std::to_string(hop) + "\n");
    REQUIRE(feed.daemon.start());
    const auto expected = expected_chunks(feed.lengths, chunk, hop);
    const auto batches = take(feed.daemon.endpoint(), {.epochs = 2});
    CHECK(sorted_rows(batches, 0) == expected);
    CHECK(sorted_rows(batches, 1) == expected);
    CHECK(batches[0].rows != batches[batches.size() / 2].rows);
  }
}

TEST_CASE("integration: each frame is in as many chunks as the hop says") {
  ChunkedFeed feed("chunk = 20\nhop = 8\n");
  REQUIRE(feed.daemon.start());
  const auto rows = sorted_rows(take(feed.daemon.endpoint(), {}), 0);
  for (std::uint64_t ordinal = 0; ordinal < feed.lengths.size(); ++ordinal) {
    const std::uint32_t length = feed.lengths[ordinal];
    const std::uint32_t final_chunk = length <= 20 ? 0 : (length - 20 + 7) / 8;
    const auto times = coverage(rows, ordinal, length);
    for (std::uint32_t t = 0; t < length; ++t) {
      // Chunk j has frames 8 j to 8 j + 19.
      const std::uint32_t first = t < 20 ? 0 : (t - 20) / 8 + 1;
      REQUIRE(times[t] == std::min(t / 8, final_chunk) - first + 1);
    }
  }
}

TEST_CASE("integration: chunks that no sequence passes are whole sequences, and say nothing more") {
  ChunkedFeed feed("chunk = 50\n");
  REQUIRE(feed.daemon.start());
  const auto batches = take(feed.daemon.endpoint(), {}, [](const bw_batch* batch) {
    check_full_batch(batch);
    CHECK(bw_batch_get_header(batch)->starts == nullptr);
    CHECK(bw_batch_get_header(batch)->flags == nullptr);
  });
  CHECK(sorted_rows(batches, 0) == expected_chunks(feed.lengths, 50, 50));
}

TEST_CASE("integration: a chunked feed resumed within an epoch goes on with the same chunks") {
  ChunkedFeed feed("chunk = 20\nhop = 8\norder = \"semi-sorted\"\nshuffle = \"batches\"\n");
  REQUIRE(feed.daemon.start());
  const auto all = take(feed.daemon.endpoint(), {.epochs = 2});
  const auto rest =
      take(feed.daemon.endpoint(), {.epochs = 1, .epoch = 1, .step = 5}, check_full_batch);
  REQUIRE(rest.size() > 5);
  CHECK(std::equal(rest.rbegin(), rest.rend(), all.rbegin()));
  CHECK(rest.front().step == 5);
}

TEST_CASE("integration: of a corrupt sequence every chunk stays, empty, in its place") {
  ChunkedFeed feed("chunk = 20\nhop = 8\n");
  feed.daemon.config().insert(feed.daemon.config().find("[feed.plan]"), "on_corrupt = \"skip\"\n");
  const float value = small_value(31, 3, 1);
  REQUIRE(flip_byte(feed.daemon.dataset() / "data.mdb", &value, sizeof value));
  REQUIRE(feed.daemon.start());
  auto expected = expected_chunks(feed.lengths, 20, 8);
  for (SeenRow& row : expected) row.length *= row.ordinal != 31;
  CHECK(sorted_rows(take(feed.daemon.endpoint(), {}), 0) == expected);
}
