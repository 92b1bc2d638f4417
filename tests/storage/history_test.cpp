#include "storage/dataset/history.h"

#include <doctest/doctest.h>

#include "tests/storage/ingest/samples.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// What a snapshot of the moment said, to be compared with the same commit later.
struct Then {
  std::uint64_t sequences = 0;
  std::uint64_t generation = 0;
  std::uint64_t content = 0;
  std::vector<std::uint32_t> lengths;
  std::vector<std::uint16_t> key_bytes;
  std::vector<std::uint32_t> token_lengths;
  std::vector<std::uint64_t> shard_sequences;
  friend bool operator==(const Then&, const Then&) = default;
};

template <class Span>
auto copied(const Span& values) {
  return std::vector(values.begin(), values.end());
}

Then then(const Snapshot& now) {
  return {now.sequences(),
          now.generation(),
          now.content(),
          copied(now.lengths()),
          copied(now.key_bytes()),
          copied(now.field_lengths(2)),
          copied(now.shard_sequences())};
}

/// Overwrites `old` by as many bytes, wherever it is in the data file.
void replace_everywhere(const std::filesystem::path& dataset, const std::string& old,
                        const std::string& by) {
  std::string bytes = read_bytes(dataset / "data.mdb");
  std::size_t places = 0;
  for (auto at = bytes.find(old); at != std::string::npos; at = bytes.find(old, at + 1)) {
    bytes.replace(at, by.size(), by);
    ++places;
  }
  REQUIRE(places > 0);
  write_bytes(dataset / "data.mdb", bytes);
}

std::string number_bytes(std::uint64_t number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

Commit first_commit(const std::filesystem::path& dataset) {
  const auto transaction = Transaction::begin(*Environment::open(dataset), Access::read);
  return **find_commit(*transaction, 0);
}

/// Has history/0 say these commits, with the right checksum.
void set_history(const std::filesystem::path& dataset, const std::vector<Commit>& commits) {
  std::string chunk(sizeof(std::uint32_t), '\0');
  const auto count = static_cast<std::uint32_t>(commits.size());
  chunk.append(reinterpret_cast<const char*>(&count), sizeof count);
  chunk.append(reinterpret_cast<const char*>(commits.data()), commits.size() * sizeof(Commit));
  const std::uint32_t crc = crc32c(std::as_bytes(std::span(chunk)).subspan(sizeof count));
  std::memcpy(chunk.data(), &crc, sizeof crc);
  auto transaction = Transaction::begin(*Environment::open_to_write(dataset), Access::write);
  REQUIRE(transaction);
  REQUIRE(transaction->put(Table::meta, as_key("history/0"), std::as_bytes(std::span(chunk)),
                           Put::replace));
  REQUIRE(transaction->commit());
}

}  // namespace

TEST_CASE("storage: each commit can be had again as it was, while a writer goes on") {
  const TemporaryFolder folder;
  auto writer = DatasetWriter::open(folder / "d", mixed_schema());
  REQUIRE(writer);
  const auto dataset = Catalog().open({folder / "d"});
  REQUIRE(dataset);
  std::vector<Then> commits = {then(**(*dataset)->snapshot())};  // without sequences
  // On both sides of where chunks of the length index end, and in the middle of one.
  const std::vector<std::uint32_t> ends = {1, 4084, 4085, 5000, 9000, 9001};
  for (std::uint32_t from = 0; const std::uint32_t to : ends) {
    REQUIRE(write_samples(*writer, from, to));
    from = to;
    const auto snapshot = (*dataset)->snapshot();
    REQUIRE(snapshot);
    commits.push_back(then(**snapshot));
    CHECK(*(*dataset)->snapshot_at((*snapshot)->content()) == *snapshot);
  }
  for (const Then& commit : commits) {
    const auto snapshot = (*dataset)->snapshot_at(commit.content);
    REQUIRE(snapshot);
    CHECK(then(**snapshot) == commit);
    CHECK(holds_samples(**snapshot, 0));
    const auto beyond = (*snapshot)->record(Ordinal{commit.sequences});
    REQUIRE_FALSE(beyond);
    CHECK(beyond.error().code == ErrorCode::not_found);
  }
}

TEST_CASE("storage: a reader of an earlier commit keeps it while a writer appends") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "d", 0, 100));
  const std::uint64_t content = (*snapshot_of({folder / "d"}))->content();
  auto writer = DatasetWriter::open(folder / "d", mixed_schema());
  REQUIRE(writer);
  REQUIRE(write_samples(*writer, 100, 200));
  const auto dataset = Catalog().open({folder / "d"});
  const auto held = (*dataset)->snapshot_at(content);
  REQUIRE(held);
  REQUIRE(write_samples(*writer, 200, 9000));
  CHECK((*held)->sequences() == 100);
  CHECK(holds_samples(**held, 0));
  CHECK(*(*held)->find(Sample(99).key()));
  CHECK_FALSE(*(*held)->find(Sample(100).key()));
  CHECK(*(*dataset)->snapshot_at(content) == *held);
  CHECK((*(*dataset)->snapshot())->sequences() == 9000);
}

TEST_CASE("storage: shards go back together to what they were at the same time") {
  const TemporaryFolder folder;
  const std::vector<std::filesystem::path> paths = {folder / "a", folder / "b", folder / "c"};
  for (const auto& path : paths) REQUIRE(make_samples(path, 0, 0));
  const auto dataset = Catalog().open(paths);
  REQUIRE(dataset);
  std::vector<Then> commits;
  for (std::uint32_t round = 0; round < 12; ++round) {
    REQUIRE(make_samples(paths[round * round % 3], round * 10, round * 10 + 7));
    commits.push_back(then(**(*dataset)->snapshot()));
  }
  for (const Then& commit : commits) {
    const auto snapshot = (*dataset)->snapshot_at(commit.content);
    REQUIRE(snapshot);
    CHECK(then(**snapshot) == commit);
    for (std::uint64_t i = 0; i < commit.sequences; ++i) CHECK((*snapshot)->record(Ordinal{i}));
  }
}

TEST_CASE("storage: content that no commit had is an error that says what there is") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "d", 0, 10));
  REQUIRE(make_samples(folder / "d", 10, 30));
  const auto dataset = Catalog().open({folder / "d"});
  REQUIRE(dataset);
  const auto unknown = (*dataset)->snapshot_at(0xABC);
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().code == ErrorCode::not_found);
  CHECK(contains(unknown.error().message, "(30 sequences, generation 2)"));
  CHECK(contains(unknown.error().message,
                 "nothing in its history of 2 earlier commits has content 0000000000000abc"));
}

TEST_CASE("storage: a dataset without history has its last commit, and remembers from then on") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "d", 0, 10));
  const std::uint64_t first = (*snapshot_of({folder / "d"}))->content();
  REQUIRE(make_samples(folder / "d", 10, 20));
  const std::uint64_t second = (*snapshot_of({folder / "d"}))->content();
  // Under another name it is not found, as if it had never been written.
  replace_everywhere(folder / "d", "history/", "mystery/");
  {
    const auto dataset = Catalog().open({folder / "d"});
    REQUIRE(dataset);
    CHECK((*(*dataset)->snapshot_at(second))->sequences() == 20);
    CHECK((*dataset)->snapshot_at(first).error().code == ErrorCode::not_found);
  }
  REQUIRE(make_samples(folder / "d", 20, 30));
  const auto dataset = Catalog().open({folder / "d"});
  REQUIRE(dataset);
  CHECK((*(*dataset)->snapshot())->sequences() == 30);
  CHECK((*(*dataset)->snapshot_at(second))->sequences() == 20);
  CHECK((*dataset)->snapshot_at(first).error().code == ErrorCode::not_found);
  CHECK(verify_dataset({folder / "d"})->sound());
}

TEST_CASE("storage: a damaged history is told, and costs nothing but going back") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "d", 0, 10));
  const std::uint64_t first = (*snapshot_of({folder / "d"}))->content();
  REQUIRE(make_samples(folder / "d", 10, 20));
  replace_everywhere(folder / "d", number_bytes(10) + number_bytes(first), number_bytes(11));
  const auto dataset = Catalog().open({folder / "d"});
  REQUIRE(dataset);
  const auto snapshot = (*dataset)->snapshot();
  REQUIRE(snapshot);
  CHECK(holds_samples(**snapshot, 0));
  const auto back = (*dataset)->snapshot_at(first);
  REQUIRE_FALSE(back);
  CHECK(back.error().code == ErrorCode::corrupt_record);
  CHECK(contains(back.error().message, "its history/0 is damaged"));
  const auto report = verify_dataset({folder / "d"});
  REQUIRE(report);
  REQUIRE(report->problems.size() == 1);
  CHECK(contains(report->problems.front(), "its history/0 is damaged"));
}

TEST_CASE("storage: a history that says what the records do not is found by verify") {
  const TemporaryFolder folder;
  for (const std::uint32_t n : {0U, 10U, 20U}) REQUIRE(make_samples(folder / "d", n, n + 10));
  set_history(folder / "d", {first_commit(folder / "d"), {2, 14, 77}});
  const auto report = verify_dataset({folder / "d"});
  REQUIRE(report);
  REQUIRE(report->problems.size() == 1);
  CHECK(contains(report->problems.front(), "its history: commit 2 is not of its first 14"));
}

TEST_CASE("storage: a history that the state contradicts is refused where it is read") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "d", 0, 10));
  REQUIRE(make_samples(folder / "d", 10, 20));
  const Commit first = first_commit(folder / "d");
  const std::uint64_t content = (*snapshot_of({folder / "d"}))->content();
  const std::vector<std::vector<Commit>> histories = {
      {first, {1, 21, 77}, {2, 20, content}},       // more sequences than there are
      {first, {1, 200'000, 77}, {2, 20, content}},  // many more
      {first, {1, 20, 77}, {2, 20, content}},       // a commit of none
      {first, {1, 0, 77}, {2, 20, content}},
      {first, {1, 10, content}, {2, 20, content}},  // one content of two commits
      {first, {2, 10, 77}, {2, 20, content}},       // two of one generation
      {first, {1, 10, 77}, {2, 19, content}},       // another newest one
      {first, {1, 10, 77}, {2, 20, content}, {3, 30, 88}},
  };
  for (const auto& history : histories) {
    set_history(folder / "d", history);
    const auto dataset = Catalog().open({folder / "d"});
    REQUIRE(dataset);
    CHECK(holds_samples(**(*dataset)->snapshot(), 0));
    const auto back = (*dataset)->snapshot_at(77);
    REQUIRE_FALSE(back);
    CHECK(back.error().code == ErrorCode::corrupt_record);
    CHECK(contains(back.error().message, "its history/0 is damaged"));
    CHECK(make_samples(folder / "d", 20, 30).error().code == ErrorCode::corrupt_record);
  }
}

TEST_CASE("storage: a history keeps the newest commits, and grows no further") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "d", 0, 0));
  constexpr std::uint64_t kCommits = kMostCommits + 3 * kChunkCommits + 5;
  const auto environment = Environment::open_to_write(folder / "d");
  REQUIRE(environment);
  auto transaction = Transaction::begin(*environment, Access::write);
  REQUIRE(transaction);
  const Commit first = **find_commit(*transaction, 0);
  const auto numbered = [&](std::uint64_t n) { return n == 0 ? first : Commit{n, n, 3 * n}; };
  bool entered = true;
  for (std::uint64_t n = 1; n <= kCommits && entered; ++n) {
    entered = remember(*transaction, numbered(n - 1), numbered(n)).has_value();
  }
  REQUIRE(entered);
  const auto history = read_history(*transaction, numbered(kCommits));
  REQUIRE(history);
  // The newest chunk has but begun, and took the place of a full one.
  CHECK(history->size() == kMostCommits - kChunkCommits + 6);
  bool in_order = true;
  for (std::size_t i = 0; i < history->size(); ++i) {
    in_order = in_order && (*history)[i] == numbered(kCommits - i);
  }
  CHECK(in_order);
  // Description and state beside the chunks.
  CHECK(*transaction->entries(Table::meta) == 2 + kHistoryChunks);
}

TEST_CASE("storage: the search through the histories of shards finds what is near, and ends") {
  // Histories of 1000 commits, newest first; all contents differ.
  std::vector<std::vector<Commit>> histories(3);
  for (std::uint64_t shard = 0; shard < histories.size(); ++shard) {
    for (std::uint64_t n = 1000; n > 0; --n) histories[shard].push_back({n, n, shard << 32 | n});
  }
  const auto content = [&](const std::vector<std::size_t>& at) {
    std::uint64_t joined = histories[0][at[0]].content;
    for (std::size_t i = 1; i < 3; ++i) joined = join_content(joined, histories[i][at[i]].content);
    return joined;
  };
  using At = std::vector<std::size_t>;
  for (const At& at : {At{0, 0, 0}, At{999, 0, 0}, At{0, 999, 0}, At{0, 0, 999}, At{1, 2, 3},
                       At{0, 70, 7}, At{80, 0, 0}, At{20, 20, 20}}) {
    CHECK(find_commits(histories, content(at)) == at);
  }
  CHECK_FALSE(find_commits(histories, content({500, 500, 500})));
  CHECK_FALSE(find_commits(histories, 1));
  histories.resize(1);
  CHECK(find_commits(histories, 1) == At{999});
  CHECK_FALSE(find_commits(histories, 0));
}
