#include "daemon/stats/metrics/metrics_page.h"

#include "formats/formats.h"

// Prometheus' text format by hand: prometheus-cpp's serializer wants every figure copied into its
// own tree first, which would be longer than the format itself.

namespace batchwright {
namespace {

/// What would end a label's value, or its line.
std::string escaped(std::string_view value) {
  std::string out;
  // The format is UTF-8, and one bad byte would make Prometheus drop the whole page.
  for (const char c : utf8(value)) {
    switch (c) {
      case '\\': out += "\\\\"; break;
      case '"': out += "\\\""; break;
      case '\n': out += "\\n"; break;
      default: out += c;
    }
  }
  return out;
}

}  // namespace

std::string MetricsPage::prepare(Labels labels) {
  std::string out;
  for (const Label& label : labels) {
    out += fmt::format("{}{}=\"{}\"", out.empty() ? "" : ",", label.name, escaped(label.value));
  }
  return out;
}

void MetricsPage::begin(std::string_view name, std::string_view help, std::string_view type) {
  name_ = name;
  fmt::format_to(std::back_inserter(text_), "# HELP {0} {1}\n# TYPE {0} {2}\n", name_, help, type);
}

}  // namespace batchwright
