#include <doctest/doctest.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/storage/child.h"
#include "tests/storage/ingest/samples.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// Runs a traced child until LMDB has written the meta page of a commit, which is its last act
/// but one: readers of this moment are told of the commit before.
void kill_behind_meta_page(pid_t child) {
  constexpr std::uint64_t kMetaPages = 2 * 4096;
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD) == 0);
  bool writes = false;
  while (WIFSTOPPED(status)) {
    __ptrace_syscall_info call{};
    if (WSTOPSIG(status) == (SIGTRAP | 0x80) &&
        ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof call, &call) > 0) {
      if (writes && call.op == PTRACE_SYSCALL_INFO_EXIT) break;
      writes = call.op == PTRACE_SYSCALL_INFO_ENTRY && call.entry.nr == SYS_pwrite64 &&
               call.entry.args[3] < kMetaPages;
    }
    REQUIRE(ptrace(PTRACE_SYSCALL, child, 0, 0) == 0);
    REQUIRE(waitpid(child, &status, 0) == child);
  }
  CHECK(writes);
  kill(child, SIGKILL);
  CHECK(wait_for(child) == 128 + SIGKILL);
}

}  // namespace

TEST_CASE("storage: a writer goes on after one that was killed at the end of its commit") {
  const TemporaryFolder folder;
  {
    auto first = DatasetWriter::open(folder / "d", mixed_schema());
    REQUIRE(first);
    REQUIRE(first->append(Sample(0).sequence()));
    REQUIRE(first->commit());
  }
  // While a reader has the dataset open, nothing of LMDB's lock file is made again.
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t reader = fork_child([&] {
    const auto snapshot = snapshot_of({folder / "d"});
    if (!snapshot || write(ready[1], "r", 1) != 1) _exit(1);
    pause();
  });
  REQUIRE(wait_for_byte(ready[0]));
  const pid_t killed = fork_child([&] {
    auto writer = DatasetWriter::open(folder / "d", mixed_schema());
    if (!writer || !writer->append(Sample(1).sequence())) _exit(1);
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    static_cast<void>(writer->commit());
  });
  kill_behind_meta_page(killed);
  auto next = DatasetWriter::open(folder / "d", mixed_schema());
  REQUIRE(next);
  CHECK(next->sequences() == 2);
  REQUIRE(next->append(Sample(2).sequence()));
  CHECK(next->commit());
  CHECK(next->committed() == 3);
  kill(reader, SIGKILL);
  wait_for(reader);
  close(ready[0]);
  close(ready[1]);
}
