#include "storage/ingest/labels.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <set>

#include "formats/formats.h"
#include "storage/dataset/dataset.h"
#include "storage/ingest/files/table_lines.h"

namespace batchwright {
namespace {

Error bad_labels(std::string what) { return {ErrorCode::invalid_argument, std::move(what)}; }

/// The first few names.
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 8;
  const auto shown = std::span(names).first(std::min(names.size(), kShown));
  return printable(
      fmt::format("{}{}", fmt::join(shown, ", "), names.size() > kShown ? ", ..." : ""));
}

}  // namespace

Result<LabelSet> read_label_set(const std::filesystem::path& path) {
  const std::string where = fmt::format("labels {}", path.string());
  LabelSet set{"", {}, where};
  std::set<std::string, std::less<>> seen;
  auto read =
      each_line("labels", path, [&](std::size_t number, std::string_view name) -> Result<void> {
        // Passed over, it would shift the numbers of the lines behind it in silence.
        if (!seen.emplace(name).second) {
          return bad_labels(fmt::format("{}: line {}: \"{}\" was there before", where, number,
                                        printable(std::string(name))));
        }
        set.names.emplace_back(name);
        return {};
      });
  if (!read) return read.error();
  if (set.names.empty()) return bad_labels(fmt::format("{}: no name in it", where));
  return set;
}

Result<std::vector<LabelSet>> label_sets_of(const std::filesystem::path& path) {
  Catalog catalog;
  const auto dataset = catalog.open({path});
  if (!dataset) return dataset.error();
  std::vector<LabelSet> sets;
  for (const FieldSpec& field : (*dataset)->schema().fields) {
    if (field.categories.empty()) continue;
    sets.push_back({field.name, field.categories, fmt::format("dataset {}", path.string())});
  }
  if (sets.empty())
    return bad_labels(fmt::format("dataset {}: no field with labels", path.string()));
  return sets;
}

Labels Labels::fixed(const LabelSet& set) {
  Labels labels = open(set.names);
  labels.origin_ = set.origin;
  return labels;
}

Labels Labels::open(const std::vector<std::string>& first) {
  Labels labels;
  for (const std::string& name : first) labels.append(name);
  return labels;
}

void Labels::append(const std::string& name) {
  if (numbers_.emplace(name, static_cast<std::int32_t>(names_.size())).second) {
    names_.push_back(name);
  }
}

void Labels::add(std::span<const std::string> names) {
  // A fixed list: find() refuses what is not in it.
  if (!origin_.empty()) return;
  // In the byte order of the names, so that the order of files does not matter.
  const std::set<std::string> sorted(names.begin(), names.end());
  for (const std::string& name : sorted) append(name);
}

Result<const std::int32_t*> Labels::find(std::string_view name) const {
  const auto found = numbers_.find(name);
  // A pointer, for values point to their bytes; nodes of a map stay where they are.
  if (found != numbers_.end()) return &found->second;
  return bad_labels(fmt::format("label \"{}\" is not in {}, which has {}: {}",
                                printable(std::string(name)), origin_, names_.size(),
                                some_of(names_)));
}

}  // namespace batchwright
