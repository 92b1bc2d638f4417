// LMDB trusts its pages, which have no checksums. Here each part of each kind of page is damaged,
// one bit at a time; whatever reads then has to end with an answer, and with no wrong one.

#include <doctest/doctest.h>

#include "tests/storage/ingest/samples.h"
#include "tests/support/known_leaks.h"
#include "tests/support/lmdb_pages.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// A dataset of which one bit after the other is flipped, and put back.
class Damaged {
 public:
  explicit Damaged(std::uint32_t samples) : samples_(samples) {
    REQUIRE(make_samples(path(), 0, samples / 2));
    REQUIRE(make_samples(path(), samples / 2, samples));  // so that pages are free
    whole_ = read_bytes(path() / "data.mdb");
  }

  std::filesystem::path path() const { return folder_ / "d"; }
  LmdbPages pages() const { return LmdbPages(whole_); }
  std::uint32_t samples() const { return samples_; }

  /// Calls `look` with each bit of `parts` flipped; says how often that was.
  std::size_t each_bit(const std::vector<Part>& parts, const std::function<void()>& look) {
    const LeaksAreKnown caught;
    std::size_t bits = 0;
    for (const Part& part : parts) {
      for (std::size_t bit = 0; bit < 8 * part.bytes; ++bit, ++bits) {
        const std::size_t offset = part.offset + bit / 8;
        CAPTURE(offset);
        CAPTURE(bit);
        put(offset, static_cast<char>(whole_[offset] ^ (1 << bit % 8)));
        look();
        put(offset, whole_[offset]);
      }
    }
    return bits;
  }
  void put(std::size_t offset, char byte) const {
    std::fstream file(path() / "data.mdb", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset)).put(byte);
  }

 private:
  TemporaryFolder folder_;
  std::uint32_t samples_;
  std::string whole_;
};

/// Reads all by both ways; what is handed out must be what was written.
/// Returns whether the damage was noticed.
bool readers_answer(const Damaged& damaged) {
  const auto report = verify_dataset({damaged.path()});
  const auto snapshot = snapshot_of({damaged.path()});
  bool noticed = !report || !report->sound() || !snapshot;
  if (!snapshot) return noticed;
  // The root of an earlier commit, where its pages are still there, shows what was then.
  const std::uint64_t sequences = (*snapshot)->sequences();
  CHECK(sequences <= damaged.samples());
  for (std::uint64_t i = 0; i < sequences; ++i) {
    const auto record = (*snapshot)->record(Ordinal{i});
    if (!record) {
      noticed = true;
    } else if (!Sample(static_cast<std::uint32_t>(i)).equals(*record)) {
      FAIL_CHECK("sequence ", i, " has another's content");
    }
  }
  return noticed;
}

/// Opens a writer and looks every key up, as an ingest does that goes on.
bool writer_answers(const Damaged& damaged) {
  const auto writer = DatasetWriter::open(damaged.path(), mixed_schema());
  if (!writer) return true;
  bool noticed = false;
  for (std::uint32_t i = 0; i < damaged.samples(); ++i) {
    const auto found = writer->contains(Sample(i).key());
    noticed = noticed || !found || !*found;
  }
  return noticed;
}

std::vector<Part> operator+(std::vector<Part> all, const std::vector<Part>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Root, and the middle one of the leaves.
std::vector<Part> parts_of_tree(const LmdbPages& pages, std::uint64_t root) {
  const auto leaves = pages.leaves(root);
  if (leaves.size() == 1) return pages.parts_of(root);
  return pages.parts_of(root) + pages.parts_of(leaves[leaves.size() / 2]);
}

/// Header and content of both meta pages.
std::vector<Part> meta_parts() { return {{0, kMetaBytes}, {kPageBytes, kMetaBytes}}; }

}  // namespace

TEST_CASE("storage: no flipped bit of a meta page or a table's entry kills a reader") {
  Damaged damaged(20);
  std::size_t noticed = 0;
  const auto parts = meta_parts() + damaged.pages().parts_of(damaged.pages().main_root());
  const std::size_t bits =
      damaged.each_bit(parts, [&] { noticed += readers_answer(damaged) ? 1 : 0; });
  CHECK(bits > 4000);
  CHECK(noticed > 200);
}

TEST_CASE("storage: no flipped bit of the tree of sequences kills a reader or misleads it") {
  Damaged damaged(300);
  std::size_t noticed = 0;
  const auto pages = damaged.pages();
  REQUIRE(pages.is_branch(pages.root_of("sequences")));
  damaged.each_bit(parts_of_tree(pages, pages.root_of("sequences")),
                   [&] { noticed += readers_answer(damaged) ? 1 : 0; });
  CHECK(noticed > 200);
}

TEST_CASE("storage: no flipped bit of the trees of keys and meta kills a reader") {
  Damaged damaged(200);
  std::size_t noticed = 0;
  const auto pages = damaged.pages();
  REQUIRE(pages.is_branch(pages.root_of("keys")));
  for (const char* table : {"keys", "meta"}) {
    damaged.each_bit(parts_of_tree(pages, pages.root_of(table)),
                     [&] { noticed += readers_answer(damaged) ? 1 : 0; });
  }
  CHECK(noticed > 200);
}

TEST_CASE("storage: no flipped bit of the tree of lengths kills a reader") {
  Damaged damaged(520);  // the first column's chunk takes a page of its own
  std::size_t noticed = 0;
  const auto pages = damaged.pages();
  const auto parts = pages.parts_of(pages.root_of("lengths"));
  CHECK(damaged.each_bit(parts, [&] { noticed += readers_answer(damaged) ? 1 : 0; }) > 400);
  CHECK(noticed > 100);
}

TEST_CASE("storage: no flipped bit kills a writer that opens the dataset") {
  Damaged damaged(60);
  const auto pages = damaged.pages();
  std::vector<Part> parts = meta_parts() + pages.parts_of(pages.main_root());
  for (const char* table : {"sequences", "keys", "lengths", "meta"}) {
    parts = parts + parts_of_tree(pages, pages.root_of(table));
  }
  std::size_t noticed = 0;
  damaged.each_bit(parts, [&] { noticed += writer_answers(damaged) ? 1 : 0; });
  CHECK(noticed > 200);
}

TEST_CASE("storage: each flag of each record's node is told by ordinal, and the others are read") {
  Damaged damaged(120);
  const auto pages = damaged.pages();
  std::uint64_t ordinal = 0;
  for (const std::uint64_t leaf : pages.leaves(pages.root_of("sequences"))) {
    for (const std::size_t node : pages.nodes(leaf)) {
      for (const std::uint16_t flag : {kBigData, kSubData, kDupData}) {
        CAPTURE(ordinal);
        CAPTURE(flag);
        damaged.put(node + 4, static_cast<char>(pages.node_flags(node) ^ flag));
        const auto report = verify_dataset({damaged.path()});
        REQUIRE(report);
        CHECK(report->broken.size() <= 1);
        if (flag != kSubData) {  // which nothing looks at here
          REQUIRE(report->broken.size() == 1);
          CHECK(report->broken[0].ordinal.value == ordinal);
        }
        damaged.put(node + 4, static_cast<char>(pages.node_flags(node)));
      }
      ++ordinal;
    }
  }
  CHECK(ordinal == damaged.samples());
}

TEST_CASE("storage: a record past a damaged page is named with its table, and no other is lost") {
  Damaged damaged(300);
  const auto pages = damaged.pages();
  const auto leaves = pages.leaves(pages.root_of("sequences"));
  const auto nodes = pages.nodes(leaves[1]);
  const auto first = pages.nodes(leaves[0]).size();
  damaged.put(nodes[2] + 4, kDupData);
  damaged.put(leaves[3] * kPageBytes + kWordBytes + 2, 0);  // neither branch nor leaf
  const auto snapshot = snapshot_of({damaged.path()});
  REQUIRE(snapshot);
  std::size_t lost = 0;
  for (std::uint64_t i = 0; i < 300; ++i) lost += (*snapshot)->record(Ordinal{i}) ? 0 : 1;
  CHECK(lost == 1 + pages.nodes(leaves[3]).size());
  const Error error = (*snapshot)->record(Ordinal{first + 2}).error();
  CHECK(error.code == ErrorCode::corrupt_record);
  CHECK(error.message == "dataset " + damaged.path().string() + ", sequence " +
                             std::to_string(first + 2) +
                             ": damaged index: a page of data.mdb leads astray: look-up in table "
                             "sequences");
}
