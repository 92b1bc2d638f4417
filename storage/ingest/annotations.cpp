#include "storage/ingest/annotations.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "formats/formats.h"

namespace batchwright {
namespace {

Error wrong(std::string what) { return {ErrorCode::invalid_argument, std::move(what)}; }

/// The first folder of a key; nothing when it has none.
std::optional<std::string_view> top_folder(std::string_view key) {
  const std::size_t slash = key.find('/');
  if (slash == key.npos) return std::nullopt;
  return key.substr(0, slash);
}

std::vector<LabelTable> columns_of(const AnnotationOptions& options) {
  std::vector<LabelTable> columns;
  if (options.label_from_folder) columns.push_back({"label", {}, {}});
  columns.insert(columns.end(), options.label_tables.begin(), options.label_tables.end());
  return columns;
}

/// Every set must go with a field, and one without a name with the only one there is.
Result<void> check_sets(const std::vector<LabelSet>& sets, const std::vector<LabelTable>& columns) {
  std::vector<std::string> fields;
  for (const LabelTable& column : columns) fields.push_back(column.field);
  for (const LabelSet& set : sets) {
    const bool known = set.field.empty()
                           ? fields.size() == 1
                           : std::find(fields.begin(), fields.end(), set.field) != fields.end();
    if (known) continue;
    return wrong(fmt::format("{}: {}; fields of labels: {}", set.origin,
                             set.field.empty() ? "it is for one field (NAME=FILE says which)"
                                               : fmt::format("there is no field \"{}\"", set.field),
                             fields.empty() ? "none" : fmt::format("{}", fmt::join(fields, ", "))));
  }
  return {};
}

/// The hint that goes behind a message of a key that a table lacks.
std::string other_form(const FileTexts& texts, const SourceFile& file) {
  const auto other = texts.other_form(file);
  if (!other) return {};
  return fmt::format(
      "; \"{}\" is there, which may be the same name in another Unicode normal form "
      "(NFC, NFD)",
      printable(std::string(*other)));
}

Labels labels_for(const AnnotationOptions& options, const std::string& field) {
  for (const LabelSet& set : options.label_sets) {
    // A given list goes before the dataset's own, and takes no name that is not in it.
    if (set.field.empty() || set.field == field) return Labels::fixed(set);
  }
  for (const FieldSpec& present : options.present) {
    // The dataset's numbers stay, and new names are appended behind them.
    if (present.name == field) return Labels::open(present.categories);
  }
  return Labels::open({});
}

}  // namespace

std::optional<std::string_view> Annotations::name_in(const Column& column,
                                                     std::string_view key) const {
  if (column.table.empty()) return top_folder(key);
  const std::string* const found = column.names.find(key);
  return found == nullptr ? std::nullopt : std::optional<std::string_view>(*found);
}

Result<void> Annotations::add_column(const AnnotationOptions& options, const LabelTable& wanted,
                                     std::span<const SourceFile> files) {
  Column column{wanted.field, wanted.table.string(), {}, labels_for(options, wanted.field)};
  if (wanted.labels) {
    column.names = FileTexts(*wanted.labels, files);
  } else if (!column.table.empty()) {
    auto names = read_transcripts(wanted.table, TranscriptFormat::kaldi);
    if (!names) return names.error();
    column.names = FileTexts(std::move(names->texts), files);
    tell_unmatched(column.table, column.names);
  }
  // All names are looked at before the first number is given, so that they can be put in order.
  std::vector<std::string> found;
  for (const SourceFile& file : files) {
    if (const auto name = name_in(column, file.key)) found.emplace_back(*name);
  }
  column.labels.add(found);
  columns_.push_back(std::move(column));
  return {};
}

/// In the report alone: tables often cover more than the files of one ingest.
void Annotations::tell_unmatched(const std::string& table, const FileTexts& texts) {
  if (texts.unmatched() == 0) return;
  unmatched_.push_back(fmt::format("{} of {} keys of {} are of no file, such as \"{}\"",
                                   texts.unmatched(), texts.entries(), table,
                                   printable(std::string(texts.first_unmatched()))));
}

Result<Annotations> Annotations::create(const AnnotationOptions& options,
                                        std::span<const SourceFile> files) {
  const auto columns = columns_of(options);
  if (auto checked = check_sets(options.label_sets, columns); !checked) return checked.error();
  Annotations made;
  for (const LabelTable& column : columns) {
    if (auto added = made.add_column(options, column, files); !added) return added.error();
  }
  made.has_text_ = options.texts || !options.transcripts.empty();
  if (options.texts) {
    made.texts_ = FileTexts(*options.texts, files);
  } else if (made.has_text_) {
    auto table = read_transcripts(options.transcripts, options.transcript_format,
                                  options.transcript_columns);
    if (!table) return table.error();
    made.note_ = std::move(table->note);
    made.texts_ = FileTexts(std::move(table->texts), files);
    made.tell_unmatched(options.transcripts.string(), made.texts_);
  }
  return made;
}

std::vector<FieldSpec> Annotations::fields() const {
  std::vector<FieldSpec> fields;
  for (const Column& column : columns_) {
    fields.push_back({column.field, FieldKind::scalar, DType::int32, {}, column.labels.names()});
  }
  if (has_text_) fields.push_back({"text", FieldKind::independent, DType::uint8, {}, {}});
  return fields;
}

Result<void> Annotations::append_values(const SourceFile& file,
                                        std::vector<FieldValue>& values) const {
  const std::string& key = file.key;
  const std::string shown = printable(key);
  for (const Column& column : columns_) {
    const auto name = name_in(column, key);
    if (!name && column.table.empty()) {
      return wrong(fmt::format("key \"{}\": it lies in no folder to take the label from", shown));
    }
    if (!name) {
      return wrong(fmt::format("key \"{}\": not in {}{}", shown, column.table,
                               other_form(column.names, file)));
    }
    const auto label = column.labels.find(*name);
    if (!label) return wrong(fmt::format("key \"{}\": {}", shown, label.error().message));
    // Points into the labels, which live as long as this.
    values.push_back({std::as_bytes(std::span(*label, 1)), 1});
  }
  if (has_text_) {
    const std::string* const text = texts_.find(key);
    if (text == nullptr) {
      return wrong(fmt::format("key \"{}\": no transcript{}", shown, other_form(texts_, file)));
    }
    values.push_back({std::as_bytes(std::span(*text)), static_cast<std::uint32_t>(text->size())});
  }
  return {};
}

}  // namespace batchwright
