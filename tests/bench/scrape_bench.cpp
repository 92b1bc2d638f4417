// What a scrape of /metrics takes of the event loop while 64 clients are connected: processor time
// of the daemon's first thread, which runs the loop, by the kernel's account in nanoseconds. The
// clients hold what they may, so that nothing else happens.
//
//   scrape_bench [CLIENTS [SCRAPES]]

#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/daemon_process.h"
#include "tests/integration/trainer.h"

using namespace batchwright::test;

namespace {

/// Of the thread whose number is the process's.
double loop_seconds(pid_t pid) {
  const std::string task = std::to_string(pid);
  std::ifstream file("/proc/" + task + "/task/" + task + "/schedstat");
  double nanoseconds = 0.0;
  file >> nanoseconds;
  return 1e-9 * nanoseconds;
}

/// Milliseconds of the loop for each of so many requests, which come slowly enough that the daemon
/// makes the page again for each.
double milliseconds_each(DaemonProcess& daemon, const std::string& path, int requests) {
  const double before = loop_seconds(daemon.process().pid());
  for (int i = 0; i < requests; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(110));
    if (daemon.page(path).empty()) throw std::runtime_error(path + ": no answer");
  }
  return 1e3 * (loop_seconds(daemon.process().pid()) - before) / requests;
}

}  // namespace

int main(int count, char** words) {
  const int clients = count > 1 ? std::stoi(words[1]) : 64;
  const int scrapes = count > 2 ? std::stoi(words[2]) : 200;
  DaemonProcess daemon("slots = 160\n[feed.plan]\ncut = \"fixed\"\nsize = 4\n", 2000);
  if (!daemon.start()) return 1;
  std::vector<std::unique_ptr<Trainer>> trainers;
  for (int i = 0; i < clients; ++i) {
    trainers.push_back(std::make_unique<Trainer>(daemon.endpoint()));
    trainers.back()->subscribe([](bw_subscribe_options& options) { options.window = 2; });
    static_cast<void>(trainers.back()->next());
  }
  std::printf("%d clients, %d requests each; a page of %zu bytes\n", clients, scrapes,
              daemon.page("/metrics").size());
  for (const char* path : {"/healthz", "/metrics", "/stats"}) {
    std::printf("%-9s %.3f ms of the event loop a request\n", path,
                milliseconds_each(daemon, path, scrapes));
  }
  return 0;
}
