#include "daemon/config/complaints.h"

#include <utility>

namespace batchwright {

void Complaints::add(const ConfigNode& at, std::string_view path, std::string_view what,
                     std::string_view allowed) {
  add(at, path, fmt::format("{}; allowed: {}", what, allowed));
}

void Complaints::add(const ConfigNode& at, std::string_view path, std::string_view message) {
  complaints_.push_back(
      {at.line, at.column, fmt::format("{}: {}: {}", place_of(at), path, message)});
}

void Complaints::add_unknown(const ConfigNode& node, std::string_view path,
                             const std::vector<std::string_view>& known) {
  const std::string_view near = nearest(node.key, known);
  add(node, path, near.empty() ? "unknown key" : fmt::format("unknown key, did you mean {}?", near),
      fmt::format("{}", fmt::join(known, " ")));
}

std::string Complaints::text() {
  // toml++ has the entries of a table in the order of their keys, not of the file.
  std::stable_sort(complaints_.begin(), complaints_.end(), [](const auto& a, const auto& b) {
    return std::pair(a.line, a.column) < std::pair(b.line, b.column);
  });
  std::string text;
  for (const Complaint& complaint : complaints_) {
    text += (text.empty() ? "" : "\n") + complaint.text;
  }
  return text;
}

}  // namespace batchwright
