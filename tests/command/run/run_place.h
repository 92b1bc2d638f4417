#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/small_dataset.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text.h"

namespace batchwright::test {

/// A configuration without an endpoint, and a runtime folder of its own.
class RunPlace {
 public:
  explicit RunPlace(const std::string& daemon = "") {
    make_small_dataset(folder_ / "data", std::vector<std::uint32_t>(30, 5));
    write_config(daemon);
    std::filesystem::create_directory(runtime());
  }

  void write_config(const std::string& daemon) const {
    std::ofstream(config()) << "[daemon]\nmemory = \"64MiB\"\nassembly_threads = 1\n"
                            << daemon << "\n[[feed]]\nname = \"train\"\ndataset = \""
                            << (folder_ / "data").string()
                            << "\"\nslots = 4\n[feed.plan]\nsize = 2\n";
  }

  std::filesystem::path runtime() const { return folder_ / "runtime"; }
  std::string config() const { return (folder_ / "config.toml").string(); }
  std::filesystem::path path(const std::string& name) const { return folder_ / name; }

  std::vector<std::string> words(const std::vector<std::string>& command) const {
    std::vector<std::string> all = {"/usr/bin/env",
                                    "XDG_RUNTIME_DIR=" + runtime().string(),
                                    program("batchwright"),
                                    "run",
                                    "--config",
                                    config(),
                                    "--"};
    all.insert(all.end(), command.begin(), command.end());
    return all;
  }
  /// A shell's script as the command.
  std::vector<std::string> shell(const std::string& script) const {
    return words({"/bin/sh", "-c", script});
  }
  /// Takes all batches of so many epochs, slowly at first.
  std::vector<std::string> taker(int epochs) const {
    return shell("exec " + program("batchwright") + " tail --feed train --json --epochs " +
                 std::to_string(epochs) + " --endpoint $BATCHWRIGHT_ENDPOINT");
  }

  /// Daemons that serve the configuration.
  std::vector<pid_t> daemons() const {
    std::vector<pid_t> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string name = entry.path().filename();
      if (!std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; })) {
        continue;
      }
      std::ifstream file(entry.path() / "cmdline", std::ios::binary);
      std::ostringstream read;  // of a process that ends meanwhile: nothing, and no exception
      read << file.rdbuf();
      const std::string words = read.str();
      const std::string program = words.substr(0, words.find('\0'));
      if (program.ends_with("batchwrightd") && contains(words, config())) {
        found.push_back(std::stoi(name));
      }
    }
    return found;
  }
  bool nothing_left() const { return daemons().empty() && std::filesystem::is_empty(runtime()); }

 private:
  TemporaryFolder folder_;
};

}  // namespace batchwright::test
