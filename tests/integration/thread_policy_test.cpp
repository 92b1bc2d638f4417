// How the daemon's threads share the machine with other programs.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "tests/integration/daemon_process.h"
#include "tests/support/text.h"

using namespace batchwright;
using namespace batchwright::test;
namespace fs = std::filesystem;

namespace {

/// A thread as the kernel shows it.
struct Thread {
  int nice = 0;
  std::string processors;
};

/// By name; of several with one name the last.
std::map<std::string, Thread> threads_of(pid_t process) {
  std::map<std::string, Thread> threads;
  for (const auto& task : fs::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
    std::string name, line;
    std::getline(std::ifstream(task.path() / "comm"), name);
    std::ifstream stat(task.path() / "stat");
    std::getline(stat, line);
    // After the name in brackets: state is field 3, nice is field 19.
    std::istringstream fields(line.substr(line.rfind(')') + 1));
    std::string word;
    Thread thread;
    for (int field = 3; field < 19; ++field) fields >> word;
    fields >> thread.nice;
    std::ifstream status(task.path() / "status");
    while (std::getline(status, line)) {
      constexpr std::string_view kList = "Cpus_allowed_list:\t";
      if (line.starts_with(kList)) thread.processors = line.substr(kList.size());
    }
    threads[name] = thread;
  }
  return threads;
}

void set(DaemonProcess& daemon, const std::string& keys) {
  const std::string table = "[daemon]\n";
  const std::size_t at = daemon.config().find(table);
  REQUIRE(at != std::string::npos);
  daemon.config().insert(at + table.size(), keys);
}

}  // namespace

TEST_CASE("integration: assembly and readahead have their manners, and the event loop has not") {
  DaemonProcess daemon("slots = 4");
  set(daemon,
      "nice = 7\ncpu_affinity = \"0-4095\"\nio_priority = \"idle\"\nassembly_share = 0.5\n");
  REQUIRE(daemon.start());
  auto threads = threads_of(daemon.process().pid());
  const int own = threads["batchwrightd"].nice;
  // A thread takes its manners when it begins, which may be after the daemon is ready.
  CHECK(eventually([&] {
    threads = threads_of(daemon.process().pid());
    return threads["bw-assembly"].nice == std::min(own + 7, 19) &&
           threads["bw-readahead"].nice == std::min(own + 7, 19);
  }));
  CHECK(threads["bw-assembly"].processors == threads["batchwrightd"].processors);
  CHECK(contains(daemon.stats(), "\"pressure_share\":"));
}

TEST_CASE("integration: processors that are not there keep the daemon from starting") {
  DaemonProcess daemon("slots = 4");
  set(daemon, "cpu_affinity = \"4000-4095\"\n");
  const Finished refused = daemon.start_and_fail();
  CHECK(refused.code == 2);
  CHECK_MESSAGE(contains(refused.err, "daemon.cpu_affinity: found processors 4000,4001,"),
                refused.err);
  CHECK(contains(refused.err, "; this process may use 0"));
}
