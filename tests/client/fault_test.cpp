// What is said of a write to a batch that may only be read, and that the signal takes its course.

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>

#include "client/library/memory/fault_handler.h"
#include "client/library/memory/fault_table.h"
#include "tests/client/fake/fake_daemon.h"
#include "tests/client/one_client.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

std::string words_of(const FaultTable::Shown& shown) {
  char text[512];
  return {text, explain(shown, text)};
}

#ifndef BATCHWRIGHT_SANITIZED
/// How a forked child that runs `body` ended, and what it said.
struct Ended {
  int signal = 0;
  int code = 0;
  std::string said;
};

template <class Body>
Ended in_child(const Body& body) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    for (const int each : {SIGSEGV, SIGABRT}) std::signal(each, SIG_DFL);  // not the test's
    body();
    _exit(0);
  }
  close(ends[1]);
  Ended ended;
  char part[256];
  for (ssize_t got = 0; (got = read(ends[0], part, sizeof part)) > 0;) {
    ended.said.append(part, static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  ended.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  return ended;
}

void write_to(const void* address) { *static_cast<volatile char*>(const_cast<void*>(address)) = 1; }

extern "C" void own_handler(int) { _exit(42); }
#endif

}  // namespace

TEST_CASE("client: the table of faults knows batches by their addresses, before their arenas") {
  FaultTable table;
  const std::vector<std::byte> arena(100);
  const auto whole = table.add(arena);
  {
    const auto batch = table.add(std::span(arena).subspan(10, 20), "train", 3, 7, 15);
    CHECK(table.find(&arena[9])->feed[0] == '\0');
    CHECK(std::string(table.find(&arena[10])->feed.data()) == "train");
    CHECK(table.find(&arena[29])->index == 15);
    CHECK(table.find(&arena[30])->feed[0] == '\0');
  }
  CHECK(table.find(&arena[10])->feed[0] == '\0');
  CHECK_FALSE(table.find(arena.data() + arena.size()));
  CHECK_FALSE(FaultTable().find(arena.data()));
}

TEST_CASE("client: a full table of faults takes no more, and has room again") {
  FaultTable table;
  const std::byte bytes[2]{};
  std::vector<FaultTable::Entry> entries;
  for (std::size_t i = 0; i < FaultTable::kPlaces; ++i) {
    entries.push_back(table.add(std::span(bytes).first(1), "one"));
  }
  const auto one_more = table.add(std::span(bytes).last(1), "two");
  CHECK_FALSE(table.find(&bytes[1]));
  entries.clear();
  const auto another = table.add(std::span(bytes).last(1), "two");
  CHECK(std::string(table.find(&bytes[1])->feed.data()) == "two");
}

TEST_CASE("client: a table of faults that changes is read as it was or as it is") {
  FaultTable table;
  const std::byte bytes[8]{};
  std::atomic<bool> over = false;
  std::vector<std::jthread> writers;
  for (const std::uint64_t number : {1U, 2U}) {
    writers.emplace_back([&, number] {
      const std::string name(number == 1 ? 60 : 5, number == 1 ? 'a' : 'b');
      while (!over) const auto entry = table.add(bytes, name, number, number, number);
    });
  }
  for (int seen = 0; seen < 2000;) {
    const auto shown = table.find(bytes);
    if (!shown) continue;
    ++seen;
    REQUIRE(shown->epoch == shown->index);
    REQUIRE(std::string(shown->feed.data()) ==
            std::string(shown->epoch == 1 ? 60 : 5, shown->epoch == 1 ? 'a' : 'b'));
  }
  over = true;
}

TEST_CASE(
    "client: an explanation names batch, epoch, feed and remedy, whatever the name's length") {
  FaultTable table;
  const std::byte bytes[1]{};
  const auto entry = table.add(bytes, std::string(200, 'x'), UINT64_MAX, 0, UINT64_MAX);
  const std::string words = words_of(*table.find(bytes));
  CHECK(words.find("batch 18446744073709551615 of epoch 18446744073709551615 of feed \"" +
                   std::string(FaultTable::kNameBytes, 'x') + "\"") != std::string::npos);
  CHECK(words.find("writable=True") != std::string::npos);
  CHECK(words.find("clone()") != std::string::npos);
  CHECK(words.back() == '\n');
  char few[10];
  CHECK(explain(*table.find(bytes), few) == sizeof few);
}

#ifndef BATCHWRIGHT_SANITIZED
TEST_CASE("client: a write to a batch that may only be read is explained, and ends the process") {
  FakeDaemon daemon;
  const ConnectionHandle connection = connect(daemon.endpoint());
  const SubscriptionHandle subscription = subscribe(connection);
  daemon.deliver(1, 0, 0, 0);
  const BatchHandle batch = next_batch(subscription);
  const void* place = bw_batch_tensor_named(batch.get(), "features")->data;
  const Ended told = in_child([&] {
    bw_explain_faults();
    write_to(place);
  });
  CHECK(told.signal == SIGSEGV);
  CHECK(told.said.find("a write to batch 0 of epoch 0 of feed \"train\"") != std::string::npos);
  CHECK(std::count(told.said.begin(), told.said.end(), '\n') == 1);
  const Ended handled = in_child([&] {
    std::signal(SIGSEGV, own_handler);
    bw_explain_faults();
    write_to(place);
  });
  CHECK(handled.code == 42);
  CHECK(handled.said == told.said);
  const Ended silent = in_child([&] { write_to(place); });
  CHECK(silent.signal == SIGSEGV);
  CHECK(silent.said.empty());
}

TEST_CASE("client: faults elsewhere, and signals that were sent, take their course unexplained") {
  const Ended elsewhere = in_child([] {
    bw_explain_faults();
    write_to(nullptr);
  });
  CHECK(elsewhere.signal == SIGSEGV);
  CHECK(elsewhere.said.empty());
  const Ended sent = in_child([] {
    bw_explain_faults();
    std::raise(SIGSEGV);
  });
  CHECK(sent.signal == SIGSEGV);
}

TEST_CASE("client: the earlier handler is called after the explanation") {
  const Ended earlier = in_child([] {
    std::signal(SIGSEGV, own_handler);
    bw_explain_faults();
    write_to(nullptr);
  });
  CHECK(earlier.code == 42);
  const Ended later = in_child([] {
    bw_explain_faults();
    std::signal(SIGSEGV, own_handler);
    bw_explain_faults();  // asked for again: it stands first once more
    std::raise(SIGSEGV);  // has no address, and so goes to the very first handler
  });
  CHECK(later.signal == SIGSEGV);
}
#endif
