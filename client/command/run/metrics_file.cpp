#include "client/command/run/metrics_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "client/command/http_get.h"

namespace batchwright {
namespace {

namespace fs = std::filesystem;

/// As often as Prometheus looks, by default and in most places.
constexpr std::chrono::seconds kBetweenLooks(15);
constexpr std::chrono::milliseconds kAnswerLimit(500);

}  // namespace

std::string with_label(std::string_view metrics, std::string_view name, std::string_view value) {
  std::string text;
  const std::string label = fmt::format("{}=\"{}\"", name, value);
  while (!metrics.empty()) {
    const std::size_t end = std::min(metrics.find('\n'), metrics.size());
    const std::string_view line = metrics.substr(0, end);
    metrics.remove_prefix(std::min(end + 1, metrics.size()));
    // A comment has no labels; a sample's name ends with its labels, or with the space before its
    // value.
    const std::size_t at = line.starts_with('#') ? line.npos : line.find_first_of("{ ");
    if (at == line.npos) {
      text += line;
    } else if (line[at] == ' ') {
      text += fmt::format("{}{{{}}}{}", line.substr(0, at), label, line.substr(at));
    } else {
      const std::string_view others = line.substr(at + 1);
      const bool is_alone = others.starts_with('}');
      text += fmt::format("{}{{{}{}{}", line.substr(0, at), label, is_alone ? "" : ",", others);
    }
    text += '\n';
  }
  return text;
}

MetricsFile::MetricsFile(const fs::path& folder, std::string run)
    : file_(folder / fmt::format("batchwright-{}.prom", run)), run_(std::move(run)) {}

MetricsFile::~MetricsFile() {
  std::error_code ignored;  // nothing is left to do
  if (is_written_) fs::remove(file_, ignored);
}

Result<void> MetricsFile::renew(const std::string& address) {
  due_ = Clock::now() + kBetweenLooks;
  const auto page = http_get(address, "/metrics", kAnswerLimit);
  if (!page) return {};
  // Whole, and of another name until then: the collector reads *.prom.
  auto put = put_file(file_, with_label(*page, "run", run_), 0666);
  is_written_ = is_written_ || put.has_value();
  return put;
}

}  // namespace batchwright
