#include "storage/ingest.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "storage/ordered_loader.h"

// Loading threads turn files into features, in the order of the files and a bounded way ahead;
// the caller's thread takes them in the same order and alone touches the writer. So ordinals do
// not depend on the number of threads.

namespace batchwright {
namespace {

/// A file that is to be taken, or why it cannot be.
struct Item {
  const SourceFile* file = nullptr;
  std::optional<Error> known_error;
};

std::string with_file(const SourceFile& file, const std::string& reason) {
  const std::string path = file.path.string();
  return reason.starts_with(path) ? reason : path + ": " + reason;
}

Result<void> check_settings(const IngestJob& job, const Schema& schema) {
  for (const auto& [name, wanted] : job.source->settings()) {
    for (const auto& [stored_name, stored] : schema.settings) {
      if (stored_name != name || stored == wanted) continue;
      return Error{ErrorCode::schema_mismatch,
                   fmt::format("dataset {} was made with {} = {}, this ingest has {}",
                               job.dataset.string(), name, stored, wanted)};
    }
  }
  return {};
}

Result<DatasetWriter> open_writer(const IngestJob& job) {
  Schema schema{{job.source->field()}, job.source->settings()};
  for (FieldSpec& field : job.annotations->fields()) schema.fields.push_back(std::move(field));
  schema.settings.insert(schema.settings.end(), job.origin.begin(), job.origin.end());
  auto writer = DatasetWriter::open(job.dataset, schema, job.limits);
  if (!writer) return writer;
  if (auto checked = check_settings(job, writer->schema()); !checked) return checked.error();
  return writer;
}

/// Looks every key up before anything is loaded. Two files of one key are an error of the second,
/// whether or not the first is in the dataset already.
Result<std::vector<Item>> sift(const IngestJob& job, const DatasetWriter& writer,
                               IngestFigures& figures) {
  std::unordered_map<std::string_view, const SourceFile*> seen;
  std::vector<Item> items;
  for (const SourceFile& file : job.files) {
    Item item{&file, std::nullopt};
    const auto [first, is_new] = seen.emplace(file.key, &file);
    const auto present = writer.contains(file.key);
    if (!present) return present.error();
    if (!is_new) {
      item.known_error = Error{
          ErrorCode::already_exists,
          fmt::format("key \"{}\" is also that of {}", file.key, first->second->path.string())};
    } else if (*present && job.resume) {
      ++figures.present;
      continue;
    } else if (*present) {
      item.known_error =
          Error{ErrorCode::already_exists,
                fmt::format("key \"{}\" is already in dataset {} (--resume passes over such files)",
                            file.key, job.dataset.string())};
    }
    items.push_back(std::move(item));
  }
  figures.files = items.size();
  return items;
}

/// Errors that concern one file, and leave the writer as it was.
bool is_about_one_file(ErrorCode code) {
  return code == ErrorCode::already_exists || code == ErrorCode::schema_mismatch ||
         code == ErrorCode::does_not_fit;
}

/// One run of ingest(), from the first file to the last commit.
class Run {
 public:
  Run(const IngestJob& job, DatasetWriter& writer, IngestReport& report)
      : job_(job), writer_(writer), report_(report) {}

  void take_all(const std::vector<Item>& items, const IngestWatch& watch) {
    OrderedLoader loader(items.size(), std::max(job_.threads, 1U), [this, &items](std::size_t i) {
      return items[i].known_error ? Result<Features>(*items[i].known_error)
                                  : job_.source->load(items[i].file->path);
    });
    for (const Item& item : items) {
      take(*item.file, loader.next());
      if (report_.failure) return;
      report_.interrupted = !watch(report_.figures);
      if (report_.interrupted) return;
    }
  }

 private:
  void take(const SourceFile& file, const Result<Features>& features) {
    if (!features) return refuse(file, features.error());
    values_.assign(1, FieldValue{features->bytes, features->length});
    if (auto known = job_.annotations->append_values(file.key, values_); !known) {
      return refuse(file, known.error());
    }
    const auto ordinal = writer_.append({file.key, values_});
    if (ordinal) {
      ++report_.figures.added;
      report_.figures.frames += features->length;
      report_.figures.seconds += features->seconds;
    } else if (is_about_one_file(ordinal.error().code)) {
      refuse(file, ordinal.error());
    } else {
      report_.failure = ordinal.error();
    }
  }

  void refuse(const SourceFile& file, const Error& error) {
    const std::string reason = with_file(file, error.message);
    if (job_.on_error == OnError::stop) {
      report_.failure = Error{error.code, reason};
    } else {
      ++report_.figures.skipped;
      report_.skipped.push_back(reason);
    }
  }

  const IngestJob& job_;
  DatasetWriter& writer_;
  IngestReport& report_;
  std::vector<FieldValue> values_;
};

}  // namespace

Result<IngestReport> ingest(const IngestJob& job, const IngestWatch& watch) {
  auto writer = open_writer(job);
  if (!writer) return writer.error();
  IngestReport report;
  const auto items = sift(job, *writer, report.figures);
  if (!items) return items.error();
  Run(job, *writer, report).take_all(*items, watch);
  if (auto committed = writer->commit(); !committed && !report.failure) {
    report.failure = committed.error();
  }
  return report;
}

}  // namespace batchwright
