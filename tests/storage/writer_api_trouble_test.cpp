#include <sys/resource.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "tests/storage/c_writer.h"

using namespace batchwright;
using namespace batchwright::test;
using namespace batchwright::test::c_abi;

TEST_CASE("storage: in C, fields that are none are refused and named") {
  const TemporaryFolder folder;
  auto options = mixed_options();
  bw_field wrong = kFeatures;
  const bw_field* const one[] = {&wrong};
  options.fields = one;
  options.field_count = 1;
  const auto refused = [&] { return refusal(folder / "d", options); };
  wrong.dtype = 8;
  CHECK(refused() == BW_INVALID_ARGUMENT);
  CHECK(says("field \"features\": dtype 8; 1 (float32) to 7 (uint8) is allowed"));
  wrong.dtype = BW_FLOAT32;
  wrong.kind = 4;
  CHECK(refused() == BW_INVALID_ARGUMENT);
  wrong.kind = BW_SCALAR;
  CHECK(refused() == BW_INVALID_ARGUMENT);
  wrong = kFeatures;
  wrong.ndim = 9;
  CHECK(refused() == BW_INVALID_ARGUMENT);
  wrong.ndim = 1;
  wrong.shape[0] = std::uint64_t{1} << 32;
  CHECK(refused() == BW_INVALID_ARGUMENT);
  CHECK(says("16 MiB"));
  wrong = kFeatures;
  wrong.name = nullptr;
  CHECK(refused() == BW_INVALID_ARGUMENT);
  CHECK_FALSE(std::filesystem::exists(folder / "d"));
}

TEST_CASE("storage: in C, a dataset with other fields is not appended to") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "d", 0, 3));
  auto options = mixed_options();
  bw_field wider = kFeatures;
  wider.shape[0] = 4;
  const bw_field* const others[] = {&wider, &kTargets, &kTokens, &kSpeaker};
  options.fields = others;
  CHECK(refusal(folder / "d", options) == BW_SCHEMA_MISMATCH);
  CHECK(says("features"));
}

TEST_CASE("storage: in C, options of an older or a newer header are understood") {
  const TemporaryFolder folder;
  struct Newer {
    bw_writer_options known = mixed_options();
    std::uint64_t unknown = 0;
  } newer;
  newer.known.struct_size = sizeof newer;
  CHECK(bw_writer_close(open_writer(folder / "d", newer.known)) == BW_OK);
  newer.unknown = 1;
  CHECK(refusal(folder / "d", newer.known) == BW_UNSUPPORTED);
  auto older = mixed_options();
  older.struct_size = offsetof(bw_writer_options, settings);
  older.opening = BW_CREATE;  // beyond what its header knows
  CHECK(bw_writer_close(open_writer(folder / "d", older)) == BW_OK);
  older.struct_size = 0;
  CHECK(refusal(folder / "d", older) == BW_INVALID_ARGUMENT);
  CHECK(bw_writer_open(nullptr, &older, nullptr) == BW_INVALID_ARGUMENT);
}

TEST_CASE("storage: in C, the map grows by itself under the C ABI too") {
  const TemporaryFolder folder;
  auto options = mixed_options();
  options.map_bytes = 128 << 10;
  options.commit_sequences = 100;
  bw_writer* writer = open_writer(folder / "d", options);
  for (std::uint32_t n = 0; n < 3000; ++n) REQUIRE(add(writer, Sample(n)) == BW_OK);
  CHECK(bw_writer_close(writer) == BW_OK);
  CHECK(sequences_of(folder / "d") == 3000);
}

TEST_CASE("storage: in C, close on a full disk keeps the writer, and may be repeated") {
  const TemporaryFolder folder;
  CHECK(in_child([&] {
          std::signal(SIGXFSZ, SIG_IGN);
          bw_writer* writer = open_writer(folder / "d");
          rlimit limit{};
          getrlimit(RLIMIT_FSIZE, &limit);
          const rlim_t before = limit.rlim_cur;
          limit.rlim_cur = 256 << 10;
          setrlimit(RLIMIT_FSIZE, &limit);
          for (std::uint32_t n = 0; n < 2000; ++n) {
            if (add(writer, Sample(n)) != BW_OK) return 1;
          }
          if (bw_writer_close(writer) != BW_IO_ERROR || !says("commit")) return 2;
          limit.rlim_cur = before;
          setrlimit(RLIMIT_FSIZE, &limit);
          return bw_writer_close(writer) == BW_OK ? 0 : 3;
        }) == 0);
  CHECK(sequences_of(folder / "d") == 2000);
}

TEST_CASE("storage: in C, a forked child cannot use it, and does not keep the dataset locked") {
  const TemporaryFolder folder;
  bw_writer* writer = open_writer(folder / "d");
  REQUIRE(add(writer, Sample(0)) == BW_OK);
  int to_child[2];
  REQUIRE(pipe(to_child) == 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    const bool told = read(to_child[0], &byte, 1) == 1;
    const bool refused = add(writer, Sample(1)) == BW_FORKED && says("before fork()") &&
                         bw_writer_close(writer) == BW_FORKED &&
                         bw_writer_abort(writer) == BW_FORKED;
    _exit(told && refused ? 0 : 1);
  }
  CHECK(bw_writer_close(writer) == BW_OK);
  // The child lives on with its copy of the lock's descriptor.
  auto options = mixed_options();
  options.timeout_ms = 0;
  const int opened = in_child([&] {
    bw_writer* other = nullptr;
    return bw_writer_open((folder / "d").c_str(), &options, &other) == BW_OK ? 0 : 1;
  });
  CHECK(opened == 0);
  CHECK(write(to_child[1], "g", 1) == 1);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  for (const int end : to_child) close(end);
  CHECK(sequences_of(folder / "d") == 1);
}

TEST_CASE("storage: in C, a second one is told which process has the dataset: this, or another") {
  const TemporaryFolder folder;
  bw_writer* writer = open_writer(folder / "d");
  auto options = mixed_options();
  CHECK(refusal(folder / "d", options) == BW_BUSY);
  options.timeout_ms = 50;
  CHECK(in_child([&] {
          bw_writer* other = nullptr;
          const bw_status status = bw_writer_open((folder / "d").c_str(), &options, &other);
          return status == BW_TIMED_OUT && says("another process writes it") ? 0 : 1;
        }) == 0);
  CHECK(bw_writer_close(writer) == BW_OK);
}

TEST_CASE("storage: in C, a second thread in a call is told so, and harms nothing") {
  const TemporaryFolder folder;
  auto options = mixed_options();
  options.commit_sequences = 1;  // each add is a commit, which takes its time
  bw_writer* writer = open_writer(folder / "d", options);
  std::atomic<int> failed = 0;
  std::atomic<int> busy = 0;
  const auto keep_asking = [&] {
    std::uint64_t sequences = 0;
    while (busy == 0 && failed == 0) {
      const bw_status status = bw_writer_sequences(writer, &sequences);
      if (status == BW_BUSY) ++busy;
      if (status != BW_OK && status != BW_BUSY) ++failed;
    }
  };
  std::uint32_t added = 0;
  {
    const std::jthread other(keep_asking);
    for (std::uint32_t n = 0; busy == 0 && n < 100'000; ++n) {
      while (add(writer, Sample(n)) == BW_BUSY) ++busy;
      added = n + 1;
    }
  }
  CHECK(busy > 0);
  CHECK(failed == 0);
  CHECK(bw_writer_close(writer) == BW_OK);
  CHECK(sequences_of(folder / "d") == added);
}
