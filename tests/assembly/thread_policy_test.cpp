#include <doctest/doctest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "daemon/assembly/assembly.h"

using namespace batchwright;

namespace {

/// What the kernel has of a thread after it has adopted policy.
struct Seen {
  int nice = 0;
  int io = 0;
  std::vector<std::uint32_t> processors;
};

Seen seen() {
  Seen now;
  now.nice = ::getpriority(PRIO_PROCESS, 0);
  now.io = static_cast<int>(::syscall(SYS_ioprio_get, 1, 0));
  cpu_set_t set;
  CPU_ZERO(&set);
  REQUIRE(::sched_getaffinity(0, sizeof set, &set) == 0);
  for (std::uint32_t i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) now.processors.push_back(i);
  }
  return now;
}

Seen seen_with(const ThreadPolicy& policy) {
  Seen now;
  std::thread([&] {
    adopt(policy);
    // Of a thread that a mannered one has started, too: twice is once.
    std::thread([&] {
      adopt(policy);
      now = seen();
    }).join();
  }).join();
  return now;
}

std::vector<std::uint32_t> parsed(const std::string& text) {
  const auto processors = parse_processors(text);
  REQUIRE_MESSAGE(bool(processors), text);
  return *processors;
}

}  // namespace

TEST_CASE("assembly: processors are read by number and range") {
  using List = std::vector<std::uint32_t>;
  CHECK(parsed("").empty());
  CHECK(parsed("0") == List{0});
  CHECK(parsed("3,0-1,1") == List{0, 1, 3});
  CHECK(parsed("4095") == List{4095});
  for (const char* text :
       {"x", "1-", "-1", "2-1", "1,", ",1", "1 2", "4096", "0-4096", "0x1", "1;2"}) {
    CAPTURE(text);
    const auto refused = parse_processors(text);
    REQUIRE(!refused);
    CHECK(refused.error().message.find(std::string("found \"") + text + "\"") == 0);
  }
}

TEST_CASE("assembly: a thread takes on its policy, and passes them on") {
  const Seen before = seen_with({});
  CHECK(before.nice == seen().nice);
  const std::uint32_t last = before.processors.back();
  const Seen after = seen_with({3, {last}, IoPriority::idle, 1.0});
  CHECK(after.nice == std::min(before.nice + 3, 19));
  CHECK(after.io == 3 << 13);
  CHECK(after.processors == std::vector<std::uint32_t>{last});
  CHECK(seen_with({0, {}, IoPriority::low, 1.0}).io == (2 << 13 | 7));
  CHECK(seen().nice == before.nice);  // of those threads alone
}

TEST_CASE("assembly: processors that a process may not use are refused, with those that it may") {
  CHECK(bool(check_manners({})));
  CHECK(bool(check_manners({0, seen().processors, IoPriority::normal, 1.0})));
  const auto refused = check_manners({0, {4095}, IoPriority::normal, 1.0});
  REQUIRE(!refused);
  CHECK(refused.error().message.starts_with("found processors 4095; this process may use "));
}

TEST_CASE("assembly: a thread with a share of a processor rests for the rest") {
  using std::chrono::milliseconds;
  CHECK(rest_after(milliseconds(10), 1.0) == milliseconds(0));
  CHECK(rest_after(milliseconds(10), 0.5) == milliseconds(10));
  CHECK(rest_after(milliseconds(10), 0.1) == milliseconds(90));
}

TEST_CASE("assembly: a thread that rests ends at once with its assembler") {
  // A hundredth of a processor: the rest after a job of 20 ms would take two seconds.
  std::vector<std::byte> slot(std::size_t{64} << 20);
  std::atomic<bool> done = false;
  const auto begun = std::chrono::steady_clock::now();
  std::chrono::nanoseconds worked{0};
  {
    Assembler assembler(1, plain_copy().name, {0, {}, IoPriority::normal, 0.01});
    assembler.poison(slot, [&] {
      worked = thread_time();
      done = true;
    });
  }
  CHECK(done);
  CHECK(std::chrono::steady_clock::now() - begun < rest_after(worked, 0.01));
}
