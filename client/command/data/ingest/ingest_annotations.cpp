#include "client/command/data/ingest/ingest_annotations.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <vector>

namespace batchwright {
namespace {

namespace fs = std::filesystem;

/// --labels and --labels-like, as sets.
Result<std::vector<LabelSet>> label_sets(const IngestOptions& options) {
  std::vector<LabelSet> sets;
  for (const std::string& text : options.labels) {
    std::error_code ignored;  // a file whose name has a = in it is taken as it stands
    auto [field, path] = split_name(text);
    if (fs::exists(text, ignored)) {
      field.clear();
      path = text;
    }
    auto set = read_label_set(path);
    if (!set) return set.error();
    set->field = field;
    sets.push_back(std::move(*set));
  }
  return sets;
}

/// The label sets of another dataset that belong to a field of this ingest.
Result<void> add_sets_like(const IngestOptions& options, AnnotationOptions& annotations) {
  if (options.labels_like.empty()) return {};
  auto others = label_sets_of(options.labels_like);
  if (!others) return others.error();
  std::size_t used = 0;
  // The other dataset may have fields that this ingest does not fill: those are passed over.
  for (LabelSet& set : *others) {
    const auto& tables = annotations.label_tables;
    const bool wanted = (annotations.label_from_folder && set.field == "label") ||
                        std::any_of(tables.begin(), tables.end(), [&set](const LabelTable& table) {
                          return table.field == set.field;
                        });
    if (!wanted) continue;
    annotations.label_sets.push_back(std::move(set));
    ++used;
  }
  // None at all is a mistake of the call: labels would be numbered again, unlike the other's.
  if (used > 0) return {};
  return Error{ErrorCode::invalid_argument,
               fmt::format("--labels-like {}: no field of labels there has the name of one here",
                           options.labels_like.string())};
}

}  // namespace

std::pair<std::string, std::string> split_name(const std::string& text) {
  const std::size_t at = text.find('=');
  if (at == text.npos) return {"", text};
  return {text.substr(0, at), text.substr(at + 1)};
}

Result<Annotations> annotate(const IngestOptions& options, AnnotationOptions wanted,
                             std::span<const SourceFile> files) {
  // Labels that the dataset has keep their numbers.
  if (const auto schema = present_schema(options.dataset())) wanted.present = schema->fields;
  auto sets = label_sets(options);
  if (!sets) return sets.error();
  wanted.label_sets = std::move(*sets);
  if (auto added = add_sets_like(options, wanted); !added) return added.error();
  return Annotations::create(wanted, files);
}

}  // namespace batchwright
