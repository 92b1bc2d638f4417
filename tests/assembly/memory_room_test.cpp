#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "daemon/assembly/assembly.h"

using namespace batchwright;

namespace {

/// A copy of the files that say how much memory there is.
class FakeRoot {
 public:
  FakeRoot()
      : path_(std::filesystem::temp_directory_path() /
              ("batchwright-room-" + std::to_string(::getpid()))) {}
  FakeRoot(const FakeRoot&) = delete;
  ~FakeRoot() { std::filesystem::remove_all(path_); }

  void put(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file) << text;
  }
  std::size_t room() const { return available_memory(path_); }

 private:
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("assembly: the memory available is the kernel's estimate where no group limits it") {
  const FakeRoot root;
  root.put("proc/meminfo", "MemTotal:  2000 kB\nMemFree:  10 kB\nMemAvailable:  1000 kB\n");
  root.put("proc/self/cgroup", "0::/a.slice/b\n");
  root.put("sys/fs/cgroup/a.slice/b/memory.max", "max\n");
  root.put("sys/fs/cgroup/a.slice/b/memory.current", "500\n");
  CHECK(root.room() == 1000 * 1024);
}

TEST_CASE("assembly: a control group's limit counts, less what its page cache gives back") {
  const FakeRoot root;
  root.put("proc/meminfo", "MemAvailable:  1000 kB\n");
  root.put("proc/self/cgroup", "0::/a.slice/b\n");
  root.put("sys/fs/cgroup/a.slice/memory.max", "9000\n");
  root.put("sys/fs/cgroup/a.slice/memory.current", "5000\n");
  root.put("sys/fs/cgroup/a.slice/memory.stat", "anon 1\ninactive_file 1500\nactive_file 500\n");
  SUBCASE("of a parent") { CHECK(root.room() == 9000 - 3000); }
  SUBCASE("of its own, when that is tighter") {
    root.put("sys/fs/cgroup/a.slice/b/memory.max", "4000\n");
    root.put("sys/fs/cgroup/a.slice/b/memory.current", "3900\n");
    CHECK(root.room() == 100);
  }
  SUBCASE("passed already") {
    root.put("sys/fs/cgroup/a.slice/b/memory.max", "4000\n");
    root.put("sys/fs/cgroup/a.slice/b/memory.current", "4100\n");
    CHECK(root.room() == 0);
  }
}

TEST_CASE("assembly: where nothing can be read, nothing limits") {
  const FakeRoot root;
  CHECK(root.room() == std::numeric_limits<std::size_t>::max());
}
