#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "tests/storage/child.h"
#include "tests/storage/ingest/samples.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

std::uint64_t sequences_of(const std::filesystem::path& path) {
  const auto snapshot = snapshot_of({path});
  return snapshot ? (*snapshot)->sequences() : 0;
}

}  // namespace

TEST_CASE("storage: a key that is there, pending or committed, is refused and named") {
  const TemporaryFolder folder;
  auto writer = DatasetWriter::open(folder / "d", mixed_schema());
  REQUIRE(writer);
  REQUIRE(writer->append(Sample(0).sequence()));
  const auto pending = writer->append(Sample(0).sequence());
  REQUIRE_FALSE(pending);
  CHECK(pending.error().code == ErrorCode::already_exists);
  CHECK(pending.error().message.find("\"" + Sample(0).key() + "\"") != std::string::npos);
  REQUIRE(writer->commit());
  CHECK(writer->append(Sample(0).sequence()).error().code == ErrorCode::already_exists);
  CHECK(*writer->contains(Sample(0).key()));
  CHECK_FALSE(*writer->contains(Sample(1).key()));
  CHECK(writer->append(Sample(1).sequence())->value == 1);
}

TEST_CASE("storage: a sequence that does not fit the schema leaves the writer as it was") {
  const TemporaryFolder folder;
  auto writer = DatasetWriter::open(folder / "d", mixed_schema());
  REQUIRE(writer);
  const Sample sample(0);
  Sequence wrong = sample.sequence();
  wrong.fields = {};
  CHECK(writer->append(wrong).error().code == ErrorCode::schema_mismatch);
  CHECK(writer->sequences() == 0);
  CHECK(writer->append(Sample(0).sequence())->value == 0);
}

TEST_CASE("storage: the content fingerprint does not depend on where commits fall") {
  const TemporaryFolder folder;
  WriterLimits often;
  often.commit_sequences = 7;
  REQUIRE(make_samples(folder / "often", 0, 9000, often));
  REQUIRE(make_samples(folder / "once", 0, 9000));
  for (std::uint32_t from = 0; from < 9000; from += 3000) {
    REQUIRE(make_samples(folder / "reopened", from, from + 3000));
  }
  const auto often_read = snapshot_of({folder / "often"});
  const auto once_read = snapshot_of({folder / "once"});
  const auto reopened_read = snapshot_of({folder / "reopened"});
  REQUIRE(often_read);
  REQUIRE(once_read);
  REQUIRE(reopened_read);
  CHECK((*often_read)->content() == (*once_read)->content());
  CHECK((*reopened_read)->content() == (*once_read)->content());
  CHECK((*often_read)->generation() == 9000 / 7 + 1);
  CHECK((*reopened_read)->generation() == 3);
  CHECK(holds_samples(**often_read, 0));
  CHECK(holds_samples(**reopened_read, 0));
}

TEST_CASE("storage: the map grows beyond its first size and nothing pending is lost") {
  const TemporaryFolder folder;
  WriterLimits small;
  small.map_bytes = 128 << 10;
  small.commit_sequences = 500;
  REQUIRE(make_samples(folder / "d", 0, 6000, small));
  CHECK(std::filesystem::file_size(folder / "d" / "data.mdb") > 1 << 20);
  const auto snapshot = snapshot_of({folder / "d"});
  REQUIRE(snapshot);
  CHECK((*snapshot)->sequences() == 6000);
  CHECK(holds_samples(**snapshot, 0));
}

TEST_CASE("storage: a map that cannot grow under a snapshot is an error that keeps what pends") {
  const TemporaryFolder folder;
  WriterLimits small;
  small.map_bytes = 128 << 10;
  auto writer = DatasetWriter::open(folder / "d", mixed_schema(), small);
  REQUIRE(writer);
  REQUIRE(write_samples(*writer, 0, 10));
  auto snapshot = snapshot_of({folder / "d"});
  REQUIRE(snapshot);
  const auto refused = write_samples(*writer, 10, 3000);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::busy);
  CHECK(holds_samples(**snapshot, 0));
  snapshot->reset();
  REQUIRE(writer->commit());
  CHECK(sequences_of(folder / "d") == 3000);
}

TEST_CASE("storage: a snapshot stays what it was while a writer appends, the next one sees more") {
  const TemporaryFolder folder;
  auto writer = DatasetWriter::open(folder / "d", mixed_schema());
  REQUIRE(writer);
  REQUIRE(write_samples(*writer, 0, 100));
  const auto dataset = Catalog().open({folder / "d"});
  REQUIRE(dataset);
  const auto before = (*dataset)->snapshot();
  REQUIRE(before);
  REQUIRE(write_samples(*writer, 100, 20000));
  CHECK((*before)->sequences() == 100);
  CHECK(holds_samples(**before, 0));
  const auto after = (*dataset)->snapshot();
  REQUIRE(after);
  CHECK((*after)->sequences() == 20000);
  CHECK((*after)->generation() > (*before)->generation());
  CHECK((*after)->content() != (*before)->content());
}

TEST_CASE("storage: a snapshot taken while another process appends is of whole commits") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "d", 0, 100));
  const pid_t child = fork_child([&] {
    WriterLimits limits;
    limits.commit_sequences = 100;
    _exit(make_samples(folder / "d", 100, 5000, limits) ? 0 : 1);
  });
  const auto dataset = Catalog().open({folder / "d"});
  REQUIRE(dataset);
  bool whole = true;
  std::uint64_t seen = 0;
  while (seen < 5000 && whole) {
    const auto snapshot = (*dataset)->snapshot();
    REQUIRE_MESSAGE(snapshot, (snapshot ? "" : snapshot.error().message));
    const std::uint64_t now = (*snapshot)->sequences();
    whole = now >= seen && now % 100 == 0 && (now == 0 || (*snapshot)->record(Ordinal{now - 1}));
    seen = now;
    if (waitpid(child, nullptr, WNOHANG) == child && seen < 5000) {
      seen = (*(*dataset)->snapshot())->sequences();
      break;
    }
  }
  CHECK(whole);
  CHECK(seen == 5000);
}

TEST_CASE("storage: a writer killed at any moment leaves the dataset as of its last commit") {
  const TemporaryFolder folder;
  for (int round = 0; round < 8; ++round) {
    int pipe_ends[2];
    REQUIRE(pipe(pipe_ends) == 0);
    const std::uint64_t before = round == 0 ? 0 : sequences_of(folder / "d");
    const pid_t child = fork_child([&] {
      WriterLimits limits;
      limits.commit_sequences = 20;
      auto writer = DatasetWriter::open(folder / "d", mixed_schema(), limits);
      for (std::uint32_t n = static_cast<std::uint32_t>(before); writer; ++n) {
        if (!writer->append(Sample(n).sequence())) _exit(1);
        if (n % 20 == 19 && write(pipe_ends[1], "c", 1) != 1) _exit(2);
      }
      _exit(3);
    });
    // A different moment each time: after so many commits, somewhere in what follows.
    for (int commits = 0; commits <= round; ++commits) REQUIRE(wait_for_byte(pipe_ends[0]));
    kill(child, SIGKILL);
    CHECK(wait_for(child) == 128 + SIGKILL);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    const auto snapshot = snapshot_of({folder / "d"});
    REQUIRE(snapshot);
    CHECK((*snapshot)->sequences() >= before + 20 * (static_cast<unsigned>(round) + 1));
    CHECK((*snapshot)->sequences() % 20 == 0);
    CHECK(holds_samples(**snapshot, 0));
  }
  const auto report = verify_dataset({folder / "d"});
  REQUIRE(report);
  CHECK(report->sound());
}

TEST_CASE("storage: a second writer of this process is refused, of another process it waits") {
  const TemporaryFolder folder;
  int pipe_ends[2];
  REQUIRE(pipe(pipe_ends) == 0);
  pid_t child = -1;
  {
    auto writer = DatasetWriter::open(folder / "d", mixed_schema());
    REQUIRE(writer);
    CHECK(DatasetWriter::open(folder / "d", mixed_schema()).error().code == ErrorCode::busy);
    REQUIRE(writer->append(Sample(0).sequence()));
    REQUIRE(writer->commit());
  }
  int to_child[2];
  REQUIRE(pipe(to_child) == 0);
  // This child holds the lock until it is told to commit; the next one appends after it.
  child = fork_child([&] {
    auto writer = DatasetWriter::open(folder / "d", mixed_schema());
    if (!writer || !writer->append(Sample(1).sequence())) _exit(1);
    if (write(pipe_ends[1], "o", 1) != 1 || !wait_for_byte(to_child[0])) _exit(2);
    _exit(writer->commit() ? 0 : 3);
  });
  REQUIRE(wait_for_byte(pipe_ends[0]));
  const pid_t waiting = fork_child([&] {
    if (write(to_child[1], "g", 1) != 1) _exit(1);
    auto writer = DatasetWriter::open(folder / "d", mixed_schema());
    if (!writer) _exit(2);
    const auto ordinal = writer->append(Sample(2).sequence());
    _exit(ordinal && ordinal->value == 2 && writer->commit() ? 0 : 3);
  });
  CHECK(wait_for(child) == 0);
  CHECK(wait_for(waiting) == 0);
  CHECK(sequences_of(folder / "d") == 3);
  for (const int end : {pipe_ends[0], pipe_ends[1], to_child[0], to_child[1]}) close(end);
}

TEST_CASE("storage: waiting for another writer says for which, and ends when it is told to") {
  const TemporaryFolder folder;
  Child other([&](const Child::Parent& parent) -> std::string {
    const auto writer = DatasetWriter::open(folder / "d", mixed_schema());
    if (!writer) return writer.error().message;
    parent.ready();
    return "done";
  });
  REQUIRE(other.is_ready());
  std::vector<WriterWait> told;
  WriterLimits limits;
  limits.waiting = [&told](const WriterWait& wait) {
    told.push_back(wait);
    return told.size() < 3;
  };
  const auto writer = DatasetWriter::open(folder / "d", mixed_schema(), limits);
  REQUIRE_FALSE(writer);
  CHECK(writer.error().code == ErrorCode::timed_out);
  CHECK(writer.error().message.find("(pid " + std::to_string(other.pid()) + ")") !=
        std::string::npos);
  REQUIRE(told.size() == 3);
  CHECK(told[0].process == other.pid());
  CHECK(told[2].waited >= std::chrono::milliseconds(200));
  other.tell();
  CHECK(other.answer() == "done");
  CHECK(DatasetWriter::open(folder / "d", mixed_schema()));
}

TEST_CASE("storage: a record that one write cannot take is refused before it is copied") {
  const TemporaryFolder folder;
  const Schema bytes{{{"bytes", FieldKind::primary, DType::uint8, {}, {}}}, {}};
  auto writer = DatasetWriter::open(folder / "d", bytes);
  REQUIRE(writer);
  // Never touched, and so it takes no memory.
  constexpr std::size_t kSize = kMaxRecordBytes;
  void* const memory =
      mmap(nullptr, kSize, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  const std::vector<FieldValue> values = {
      {{static_cast<const std::byte*>(memory), kSize}, static_cast<std::uint32_t>(kSize)}};
  const auto added = writer->append({"large", values});
  munmap(memory, kSize);
  REQUIRE_FALSE(added);
  CHECK(added.error().code == ErrorCode::does_not_fit);
  CHECK(added.error().message.find("of at most 2147418112") != std::string::npos);
  CHECK(writer->committed() == 0);
}

TEST_CASE("storage: a full disk is an error that keeps what pends, and the dataset readable") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "d", 0, 100));
  const pid_t child = fork_child([&] {
    // To the file system's caller, a file that may not grow looks like a disk that is full.
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = 1 << 20;
    setrlimit(RLIMIT_FSIZE, &limit);
    auto writer = DatasetWriter::open(folder / "d", mixed_schema());
    const auto refused = write_samples(*writer, 100, 6000);
    if (refused || refused.error().code != ErrorCode::io_error) _exit(1);
    if (sequences_of(folder / "d") != 100) _exit(2);
    limit.rlim_cur = before;
    setrlimit(RLIMIT_FSIZE, &limit);
    _exit(writer->commit() ? 0 : 3);
  });
  CHECK(wait_for(child) == 0);
  const auto snapshot = snapshot_of({folder / "d"});
  REQUIRE(snapshot);
  CHECK((*snapshot)->sequences() == 6000);
  CHECK(holds_samples(**snapshot, 0));
}

TEST_CASE("storage: where address space is short a smaller map does") {
  const TemporaryFolder folder;
  const pid_t child = fork_child([&] {
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t most = pages * static_cast<std::uint64_t>(getpagesize()) + (3ULL << 30);
    const rlimit limit{most, most};
    setrlimit(RLIMIT_AS, &limit);
    if (!make_samples(folder / "d", 0, 3000)) _exit(1);
    const auto snapshot = snapshot_of({folder / "d"});
    _exit(snapshot && holds_samples(**snapshot, 0) ? 0 : 2);
  });
  CHECK(wait_for(child) == 0);
}

TEST_CASE("storage: a writer moves between threads") {
  const TemporaryFolder folder;
  auto writer = DatasetWriter::open(folder / "d", mixed_schema());
  REQUIRE(writer);
  REQUIRE(writer->append(Sample(0).sequence()));
  bool committed = false;
  std::jthread([&] { committed = write_samples(*writer, 1, 10).has_value(); }).join();
  CHECK(committed);
  REQUIRE(write_samples(*writer, 10, 20));
  CHECK(sequences_of(folder / "d") == 20);
}

TEST_CASE("storage: a reader first and a writer second is fine until a snapshot is open") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "d", 0, 10));
  const auto dataset = Catalog().open({folder / "d"});
  REQUIRE(dataset);
  REQUIRE(make_samples(folder / "d", 10, 20));
  auto snapshot = (*dataset)->snapshot();
  REQUIRE(snapshot);
  CHECK((*snapshot)->sequences() == 20);
  REQUIRE(make_samples(folder / "d", 20, 30));
  CHECK((*(*dataset)->snapshot())->sequences() == 30);
}

TEST_CASE("storage: a writer with other fields is refused, and so is a folder of other things") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "d", 0, 3));
  Schema other = mixed_schema();
  other.fields[0].shape = {4};
  const Error refusal = DatasetWriter::open(folder / "d", other).error();
  CHECK(refusal.code == ErrorCode::schema_mismatch);
  // The dataset's own field first: it has that, not what was wanted.
  const std::size_t has = refusal.message.find("[3]");
  CHECK(has < refusal.message.find("[4]"));
  CHECK(has != std::string::npos);
  other.fields.clear();
  CHECK(DatasetWriter::open(folder / "d", other).error().code == ErrorCode::invalid_argument);
  std::filesystem::create_directory(folder / "music");
  write_bytes(folder / "music" / "song.wav", "la la la");
  const auto writer = DatasetWriter::open(folder / "music", mixed_schema());
  REQUIRE_FALSE(writer);
  CHECK(writer.error().message.find("not empty") != std::string::npos);
  CHECK(DatasetWriter::open(folder / "no" / "parent", mixed_schema()).error().code ==
        ErrorCode::io_error);
}
