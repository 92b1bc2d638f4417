#include "storage/annotations.h"

#include <fmt/core.h>

#include <fstream>
#include <optional>

namespace batchwright {
namespace {

Error wrong(std::string what) { return {ErrorCode::invalid_argument, std::move(what)}; }

/// The first folder of a key; nothing when it has none.
std::optional<std::string_view> top_folder(std::string_view key) {
  const std::size_t slash = key.find('/');
  if (slash == key.npos) return std::nullopt;
  return key.substr(0, slash);
}

using Texts = std::map<std::string, std::string, std::less<>>;

Result<Texts> read_table(const std::filesystem::path& path) {
  std::ifstream table(path);
  if (!table) return wrong(fmt::format("transcripts {}: cannot be opened", path.string()));
  Texts texts;
  std::string line;
  for (std::size_t number = 1; std::getline(table, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    const std::size_t tab = line.find('\t');
    if (tab == line.npos || tab == 0) {
      return wrong(
          fmt::format("transcripts {}: line {} is not key TAB text", path.string(), number));
    }
    if (!texts.emplace(line.substr(0, tab), line.substr(tab + 1)).second) {
      return wrong(fmt::format("transcripts {}: line {}: key \"{}\" was there before",
                               path.string(), number, line.substr(0, tab)));
    }
  }
  if (table.bad()) return wrong(fmt::format("transcripts {}: cannot be read", path.string()));
  return texts;
}

}  // namespace

Result<Annotations> Annotations::create(const AnnotationOptions& options,
                                        std::span<const SourceFile> files) {
  Annotations made;
  made.has_labels_ = options.label_from_folder;
  made.has_text_ = !options.transcripts.empty();
  if (made.has_text_) {
    auto texts = read_table(options.transcripts);
    if (!texts) return texts.error();
    made.texts_ = std::move(*texts);
  }
  if (!made.has_labels_) return made;
  for (const SourceFile& file : files) {
    if (const auto folder = top_folder(file.key)) made.labels_.emplace(*folder, 0);
  }
  std::int32_t next = 0;
  for (auto& [name, value] : made.labels_) value = next++;
  return made;
}

std::vector<FieldSpec> Annotations::fields() const {
  std::vector<FieldSpec> fields;
  if (has_labels_) {
    FieldSpec label{"label", FieldKind::scalar, DType::int32, {}, {}};
    for (const auto& [name, value] : labels_) label.categories.push_back(name);
    fields.push_back(std::move(label));
  }
  if (has_text_) fields.push_back({"text", FieldKind::independent, DType::uint8, {}, {}});
  return fields;
}

Result<void> Annotations::append_values(std::string_view key,
                                        std::vector<FieldValue>& values) const {
  if (has_labels_) {
    const auto folder = top_folder(key);
    const auto label = folder ? labels_.find(*folder) : labels_.end();
    if (label == labels_.end()) {
      return wrong(fmt::format("key \"{}\": it lies in no folder to take the label from", key));
    }
    values.push_back({std::as_bytes(std::span(&label->second, 1)), 1});
  }
  if (has_text_) {
    const auto text = texts_.find(key);
    if (text == texts_.end()) return wrong(fmt::format("key \"{}\": no transcript", key));
    values.push_back(
        {std::as_bytes(std::span(text->second)), static_cast<std::uint32_t>(text->second.size())});
  }
  return {};
}

}  // namespace batchwright
