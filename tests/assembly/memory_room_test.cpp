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
  std::size_t room() const { return memory_room(path_).available; }
  std::size_t most() const { return memory_room(path_).most; }
  double pressure() const { return memory_pressure(path_); }
  HugePageRoom huge() const { return huge_page_room(path_); }

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

TEST_CASE("assembly: a control group of version 1 limits as one of version 2 does") {
  const FakeRoot root;
  root.put("proc/meminfo", "MemTotal: 2000 kB\nMemAvailable:  1000 kB\n");
  root.put("proc/self/cgroup", "12:cpuset,cpu:/x\n5:memory:/jobs/job_7\n0::/jobs\n");
  root.put("sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "9000\n");
  root.put("sys/fs/cgroup/memory/jobs/memory.usage_in_bytes", "5000\n");
  root.put("sys/fs/cgroup/memory/jobs/memory.stat",
           "inactive_file 4\ntotal_inactive_file 1500\ntotal_active_file 500\n");
  SUBCASE("of a parent") {
    CHECK(root.room() == 9000 - 3000);
    CHECK(root.most() == 9000);
  }
  SUBCASE("of its own, when that is tighter") {
    root.put("sys/fs/cgroup/memory/jobs/job_7/memory.limit_in_bytes", "4000\n");
    root.put("sys/fs/cgroup/memory/jobs/job_7/memory.usage_in_bytes", "3900\n");
    CHECK(root.room() == 100);
    CHECK(root.most() == 4000);
  }
  SUBCASE("where a container sees its own group as the mount") {
    root.put("sys/fs/cgroup/memory/memory.limit_in_bytes", "3000\n");
    root.put("sys/fs/cgroup/memory/memory.usage_in_bytes", "1000\n");
    CHECK(root.room() == 2000);
  }
  SUBCASE("listed with another controller, and without a limit") {
    root.put("proc/self/cgroup", "3:cpu,memory:/free\n");
    root.put("sys/fs/cgroup/memory/free/memory.limit_in_bytes", "9223372036854771712\n");
    root.put("sys/fs/cgroup/memory/free/memory.usage_in_bytes", "5000\n");
    CHECK(root.room() == 1000 * 1024);
    CHECK(root.most() == 2000 * 1024);
  }
}

TEST_CASE("assembly: what a process can have at most is not what it can have now") {
  const FakeRoot root;
  root.put("proc/meminfo", "MemTotal: 2000 kB\nMemAvailable:  1000 kB\n");
  CHECK(root.room() == 1000 * 1024);
  CHECK(root.most() == 2000 * 1024);
}

TEST_CASE("assembly: memory that others have just now is told from memory that is not there") {
  const MemoryRoom room{1000, 5000};
  CHECK(check_room(1, 1000, room));
  const auto later = check_room(2, 2000, room);
  REQUIRE_FALSE(later);
  CHECK(later.error().code == ErrorCode::busy);
  CHECK(later.error().message.find("0.001 MiB of 0.005 MiB are available") != std::string::npos);
  const auto never = check_room(2, 2501, room);
  REQUIRE_FALSE(never);
  CHECK(never.error().code == ErrorCode::does_not_fit);
  CHECK(never.error().message.find("at most 0.005 MiB") != std::string::npos);
}

TEST_CASE("assembly: the reserved pool counts less what is promised to others") {
  const FakeRoot root;
  root.put("proc/meminfo",
           "HugePages_Total: 100\nHugePages_Free: 70\nHugePages_Rsvd: 20\nHugepagesize: 2048 kB\n");
  CHECK(root.huge().page_bytes == std::size_t{2} << 20);
  CHECK(root.huge().reserved_free == std::size_t{100} << 20);
  SUBCASE("promised in full") {
    root.put("proc/meminfo", "HugePages_Free: 5\nHugePages_Rsvd: 9\nHugepagesize: 2048 kB\n");
    CHECK(root.huge().reserved_free == 0);
  }
  SUBCASE("a kernel without huge pages") {
    root.put("proc/meminfo", "MemTotal: 9 kB\n");
    CHECK(root.huge().page_bytes == 0);
    CHECK(root.huge().reserved_free == 0);
  }
}

TEST_CASE("assembly: shared memory has transparent huge pages by the rule in brackets") {
  const FakeRoot root;
  const std::string file = "sys/kernel/mm/transparent_hugepage/shmem_enabled";
  const auto gives = [&](const std::string& text) {
    root.put(file, text);
    return root.huge().gives_on_request();
  };
  CHECK_FALSE(root.huge().gives_on_request());
  CHECK(gives("[always] within_size advise never deny force"));
  CHECK(gives("always [within_size] advise never deny force"));
  CHECK(gives("always within_size [advise] never deny force"));
  CHECK_FALSE(gives("always within_size advise [never] deny force"));
  CHECK_FALSE(gives("always within_size advise never [deny] force"));
  CHECK(gives("always within_size advise never deny [force]"));
  CHECK_FALSE(gives(""));
  CHECK_FALSE(gives("]["));
}

TEST_CASE("assembly: the pressure on memory is that of the own group, otherwise of the machine") {
  const FakeRoot root;
  CHECK(root.pressure() == 0.0);  // a kernel without PSI
  root.put("proc/pressure/memory",
           "some avg10=7.50 avg60=1.00 avg300=0.00 total=9\n"
           "full avg10=3.00 avg60=1.00 avg300=0.00 total=9\n");
  CHECK(root.pressure() == doctest::Approx(0.075));
  root.put("proc/self/cgroup", "0::/a.slice/b\n");
  root.put("sys/fs/cgroup/a.slice/b/memory.pressure",
           "some avg10=25.00 avg60=0 avg300=0 total=1\n");
  CHECK(root.pressure() == doctest::Approx(0.25));
  for (const char* text :
       {"", "some", "some avg10=", "some avg10=x", "some avg10=-1", "full avg10=9"}) {
    root.put("sys/fs/cgroup/a.slice/b/memory.pressure", text);
    CHECK(root.pressure() == doctest::Approx(0.075));
  }
}

TEST_CASE("assembly: readahead takes less the longer programs wait for memory") {
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  CHECK(room_under_pressure(kAll, 0.0) == kAll);
  CHECK(room_under_pressure(1000, kPressureFelt) == 1000);
  CHECK(room_under_pressure(1000, (kPressureFelt + kPressureHighest) / 2) == 500);
  CHECK(room_under_pressure(1000, kPressureHighest) == 0);
  CHECK(room_under_pressure(kAll, 1.0) == 0);
}
