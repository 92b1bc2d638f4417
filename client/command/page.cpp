#include "client/command/page.h"

#include <fmt/core.h>

#include <fstream>
#include <string>
#include <utility>

#include "client/command/output.h"

namespace batchwright {

// The file's bytes, embedded at build time.
extern const std::string_view kChartScript;

namespace {

/// A page's HTML ends a script at "</", whatever quotes it stands in.
std::string without_ends(std::string text) {
  for (std::size_t at = 0; (at = text.find('<', at)) != text.npos;) {
    text.replace(at, 1, "\\u003c");
  }
  return text;
}

void fill(std::string& page, std::string_view mark, std::string_view text) {
  const std::size_t at = page.find(mark);
  if (at != page.npos) page.replace(at, mark.size(), text);
}

}  // namespace

Result<void> write_page(const std::filesystem::path& file, std::string_view page,
                        const boost::json::value& data) {
  std::string filled(page);
  // The data last: they may have any text, marks too.
  fill(filled, "/*CHART*/", kChartScript);
  fill(filled, "/*DATA*/", without_ends(json_text(data)));
  std::ofstream out(file, std::ios::binary);
  out << filled;
  // Errors of a full disk may come as late as here.
  out.close();
  if (out) return {};
  return Error{ErrorCode::io_error, fmt::format("{}: cannot be written", file.string())};
}

}  // namespace batchwright
