#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/small_dataset.h"
#include "tests/support/temporary_folder.h"

namespace batchwright::test {

/// A folder with a dataset "data", and a daemon of its own that serves it.
class DaemonProcess {
 public:
  /// `feed` is the rest of the table [[feed]], whose name is "train"; see `config()`.
  explicit DaemonProcess(const std::string& feed, std::size_t sequences = 60);

  /// Starts the daemon, and waits until it listens. False when it ended instead.
  bool start();
  /// Starts it, and waits for nothing.
  void launch();
  /// The same by a shell that has run this, such as "ulimit -f 1".
  void launch_behind(const std::string& script);
  /// Starts it and waits for its end.
  Finished start_and_fail();

  /// Writes the configuration, asks the daemon to read it again, and waits for what comes of it.
  /// False when the daemon refuses it.
  bool reload();
  /// The same with the file as it is.
  bool reload_as_it_is();

  Process& process() { return *process_; }
  std::string endpoint() const { return "ipc://" + (folder_ / "s").string(); }
  std::filesystem::path folder() const { return folder_.path(); }
  std::filesystem::path dataset() const { return folder_ / "data"; }
  const std::vector<std::uint32_t>& lengths() const { return lengths_; }
  /// The configuration, to be changed before start().
  std::string& config() { return config_; }
  /// Where the page /stats is, such as "http://127.0.0.1:40123".
  std::string stats_address();
  /// The page /stats, and one of its counters for the first feed.
  std::string stats() { return page("/stats"); }
  /// The page as of now: the daemon keeps a page for a moment, and stats() may be from before.
  std::string stats_now();
  /// Another page; empty when no daemon answers with 200.
  std::string page(const std::string& path);
  std::uint64_t counter(const std::string& name);

 private:
  std::vector<std::string> words();
  unsigned short stats_port();  ///< 0 when there is none.

  TemporaryFolder folder_;
  std::vector<std::uint32_t> lengths_;
  std::string config_;
  std::unique_ptr<Process> process_;
};

}  // namespace batchwright::test
