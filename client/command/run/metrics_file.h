#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "formats/formats.h"

namespace batchwright {

/// Prometheus's text with one more label, the first one, on each sample.
std::string with_label(std::string_view metrics, std::string_view name, std::string_view value);

/// A daemon's metrics as a file of node_exporter's textfile collector, whose every sample has the
/// label `run`, since a host may have several such daemons. The file is renamed into its place, and
/// removed with this object.
/// Threads: one.
class MetricsFile {
 public:
  MetricsFile(const std::filesystem::path& folder, std::string run);
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  bool is_due() const { return !due_ || Clock::now() >= *due_; }
  /// Asks the page at `address` and writes the file. Waits for the daemon, for a moment at most.
  /// Errors: io_error: the file cannot be written. A daemon that does not answer is none: it is
  /// starting, or has ended.
  Result<void> renew(const std::string& address);

 private:
  using Clock = std::chrono::steady_clock;

  std::filesystem::path file_;
  std::string run_;
  std::optional<Clock::time_point> due_;  // none: at once
  bool is_written_ = false;
};

}  // namespace batchwright
