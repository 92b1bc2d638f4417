#include <doctest/doctest.h>
#include <sys/resource.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <thread>

#include "formats/formats.h"
#include "tests/support/no_threads.h"

using namespace batchwright;

namespace {

/// A soft limit for as long as it lives.
class Limited {
 public:
  Limited(decltype(RLIMIT_AS) resource, rlim_t value) : resource_(resource) {
    REQUIRE(::getrlimit(resource_, &before_) == 0);
    rlimit lower = before_;
    lower.rlim_cur = value;
    REQUIRE(::setrlimit(resource_, &lower) == 0);
  }
  ~Limited() { ::setrlimit(resource_, &before_); }
  Limited(const Limited&) = delete;
  Limited& operator=(const Limited&) = delete;

 private:
  decltype(RLIMIT_AS) resource_;
  rlimit before_{};
};

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("formats: a reason names the limit behind it, where there is one") {
  const std::string plain = reason_with_limit(ENOENT);
  CHECK(plain == "No such file or directory");
  {
    const Limited limited(RLIMIT_FSIZE, 4096);
    CHECK(says(reason_with_limit(EFBIG), "a file may have 4096 bytes: ulimit -f"));
    CHECK(reason_with_limit(ENOENT) == plain);
  }
  const Limited limited(RLIMIT_NOFILE, 100);
  CHECK(says(reason_with_limit(EMFILE), "100 file descriptors: ulimit -n"));
}

TEST_CASE("formats: threads that can be started are no error, and none stays") {
  const auto threads = [] {
    const std::string status = file_text("/proc/self/status").value_or("");
    return status.substr(status.find("Threads:"), 12);
  };
  const std::string before = threads();
  CHECK(room_for_threads(0, "nothing"));
  CHECK(room_for_threads(8, "a test"));
  // The kernel may count a thread for a moment longer than it takes to join it.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (threads() != before && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  CHECK(threads() == before);
}

TEST_CASE("formats: where threads lack the error says how many are needed, and by what") {
  const test::NoThreads none;
  const auto room = room_for_threads(3, "a test");
  REQUIRE_FALSE(room);
  CHECK(room.error().code == ErrorCode::io_error);
  CHECK(says(room.error().message, "a test needs 3 threads, and none could be started"));
}
