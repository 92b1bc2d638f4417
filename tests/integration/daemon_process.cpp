#include "tests/integration/daemon_process.h"

#include <boost/json.hpp>
#include <csignal>
#include <fstream>
#include <regex>

namespace batchwright::test {

DaemonProcess::DaemonProcess(const std::string& feed, std::size_t sequences)
    : lengths_(mixed_lengths(sequences, 50)) {
  if (sequences != 0) make_small_dataset(dataset(), lengths_);
  config_ = "[daemon]\nendpoints = [\"" + endpoint() +
            "\"]\nstats = \"127.0.0.1:0\"\nmemory = \"256MiB\"\n[[feed]]\nname = \"train\"\n" +
            "dataset = \"" + dataset().string() + "\"\n" + feed + "\n";
}

std::vector<std::string> DaemonProcess::words() {
  std::ofstream(folder_ / "config.toml") << config_;
  return {program("batchwrightd"), "--config", folder_ / "config.toml"};
}

void DaemonProcess::launch() { process_ = std::make_unique<Process>(words()); }

void DaemonProcess::launch_behind(const std::string& script) {
  std::vector<std::string> all = {"/bin/sh", "-c", script + "; exec \"$@\"", "sh"};
  for (const std::string& word : words()) all.push_back(word);
  process_ = std::make_unique<Process>(all);
}

bool DaemonProcess::start() {
  launch();
  eventually([this] {
    return !process_->running() || process_->err().find("ready: ") != std::string::npos;
  });
  return process_->running();
}

bool DaemonProcess::reload() {
  std::ofstream(folder_ / "config.toml") << config_;
  return reload_as_it_is();
}

bool DaemonProcess::reload_as_it_is() {
  const auto count = [this](const char* what) {
    const auto page = boost::json::parse(stats());
    return page.at("reload").at(what).to_number<std::uint64_t>();
  };
  const std::uint64_t applied = count("applied");
  const std::uint64_t refused = count("refused");
  process_->signal(SIGHUP);
  eventually([&] { return count("applied") > applied || count("refused") > refused; });
  return count("applied") > applied;
}

Finished DaemonProcess::start_and_fail() { return run(words()); }

unsigned short DaemonProcess::stats_port() {
  std::smatch found;
  const std::string log = process_->err();
  if (!std::regex_search(log, found, std::regex("dashboard at http://[^ ]*:([0-9]+)/"))) return 0;
  return static_cast<unsigned short>(std::stoi(found[1]));
}

std::string DaemonProcess::stats_address() {
  return "http://127.0.0.1:" + std::to_string(stats_port());
}

std::string DaemonProcess::page(const std::string& path) { return http_get(stats_port(), path); }

std::string DaemonProcess::stats_now() {
  const std::string kept = stats();
  std::string page;
  // Each page that is made counts the requests before it, so no two are the same.
  eventually([&] { return (page = stats()) != kept; });
  return page;
}

std::uint64_t DaemonProcess::counter(const std::string& name) {
  const auto page = boost::json::parse(stats_now());
  return page.at("feeds").at(0).at("counters").at(name).to_number<std::uint64_t>();
}

}  // namespace batchwright::test
