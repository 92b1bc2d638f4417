#include <doctest/doctest.h>

#include <cstring>

#include "tests/assembly/snapshot.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;

namespace {

/// Writes what `made_up` holds to a dataset in LMDB, and opens that.
std::shared_ptr<const Snapshot> stored(const MadeUpSnapshot& made_up,
                                       const std::filesystem::path& path) {
  auto writer = DatasetWriter::open(path, made_up.schema());
  REQUIRE(writer);
  for (std::uint64_t o = 0; o < made_up.sequences(); ++o) {
    const auto record = made_up.record(Ordinal{o});
    REQUIRE(record);
    std::vector<FieldValue> values;
    for (std::size_t f = 0; f < record->fields(); ++f) values.push_back(record->field(f));
    REQUIRE(writer->append({record->key(), values}));
  }
  REQUIRE(writer->commit());
  auto dataset = Catalog().open({path});
  REQUIRE(dataset);
  auto snapshot = (*dataset)->snapshot();
  REQUIRE(snapshot);
  return *snapshot;
}

}  // namespace

TEST_CASE("assembly: batches of a dataset in LMDB hold what was written to it") {
  // Some records share a page of LMDB with others, some have pages of their own.
  const MadeUpSnapshot made_up(all_kinds(), {1, 40, 700, 3, 2000, 9, 350, 80});
  const test::TemporaryFolder folder;
  const auto source = plan_of(stored(made_up, folder / "dataset"), in_order(3));
  const TestSlot slot(std::size_t{1} << 18);
  const BatchStyle style{"train", Layout::batch_major, {}, OnCorrupt::stop};
  std::uint64_t rows = 0;
  for (std::uint64_t i = 0; i < source->plan.batches(); ++i) {
    const auto assembled = assemble_batch(*source, style, BatchIndex{i}, slot.bytes());
    REQUIRE(assembled);
    const wire::Batch& batch = batch_in(slot, *assembled);
    for (unsigned r = 0; r < assembled->rows; ++r, ++rows) {
      const std::uint64_t ordinal = batch.ordinals()->Get(r);
      CHECK(batch.keys()->Get(r)->str() == MadeUpSnapshot::key(ordinal));
      for (unsigned f = 0; f < 4; ++f) {
        const auto wanted = made_up.content(ordinal, f);
        const auto found = payload(batch, f);
        const std::size_t row_bytes = found.size() / assembled->rows;
        CHECK(std::memcmp(found.data() + r * row_bytes, wanted.data(), wanted.size()) == 0);
      }
    }
  }
  CHECK(rows == made_up.sequences());
}
