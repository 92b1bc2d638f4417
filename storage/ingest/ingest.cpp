#include "storage/ingest/ingest.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <string_view>
#include <unordered_map>

#include "storage/dataset/dataset.h"
#include "storage/ingest/commit_pace.h"
#include "storage/ingest/ordered_loader.h"

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
  // Parsers that know the path have put it in front already.
  const std::string path = file.path.string();
  return reason.starts_with(path) ? reason : fmt::format("{}: {}", path, reason);
}

using Settings = std::vector<std::pair<std::string, std::string>>;

const std::string* find_setting(const Settings& settings, std::string_view name) {
  const auto found = std::find_if(settings.begin(), settings.end(),
                                  [name](const auto& each) { return each.first == name; });
  return found == settings.end() ? nullptr : &found->second;
}

/// A setting that one side alone has is a difference, too: the other was made in another way.
Result<void> check_settings(const IngestJob& job, const Schema& schema) {
  constexpr std::array<std::string_view, 3> kOrigin = {"source", "source_folder", "made_by"};
  const auto differs = [&job](std::string_view name, std::string_view stored,
                              std::string_view wanted) {
    return Error{ErrorCode::schema_mismatch,
                 fmt::format("dataset {} was made with {}{}, this ingest has {}",
                             job.dataset.string(), name, stored, wanted)};
  };
  const Settings own = job.source->settings();
  for (const auto& [name, wanted] : own) {
    const std::string* const stored = find_setting(schema.settings, name);
    if (stored == nullptr) return differs(fmt::format("no {}", name), "", wanted);
    if (*stored != wanted) return differs(name, fmt::format(" = {}", *stored), wanted);
  }
  for (const auto& [name, stored] : schema.settings) {
    // Where files came from may differ from one ingest to the next; how they were made may not.
    const bool is_origin = std::find(kOrigin.begin(), kOrigin.end(), name) != kOrigin.end() ||
                           find_setting(job.origin, name) != nullptr;
    if (!is_origin && find_setting(own, name) == nullptr) {
      return differs(name, fmt::format(" = {}", stored), "no such setting");
    }
  }
  return {};
}

Result<DatasetWriter> open_writer(const IngestJob& job) {
  Schema schema{job.source->fields(), job.source->settings()};
  for (FieldSpec& field : job.annotations->fields()) schema.fields.push_back(std::move(field));
  schema.settings.insert(schema.settings.end(), job.origin.begin(), job.origin.end());
  auto writer = DatasetWriter::open(job.dataset, schema, job.limits);
  if (!writer) return writer;
  // open() compares fields alone, and an existing dataset keeps its own settings.
  if (auto checked = check_settings(job, writer->schema()); !checked) return checked.error();
  return writer;
}

/// Looks every key up before anything is loaded. Two files of one key are an error of the second,
/// whether or not the first is in the dataset already.
Result<std::vector<Item>> sift(const IngestJob& job, const DatasetWriter& writer,
                               IngestFigures& figures) {
  std::unordered_map<std::string_view, const SourceFile*> seen;
  // Items keep the files' order, also those known to be wrong: a report names them in it.
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
                fmt::format("key \"{}\" is already in dataset {} (--resume skips such files)",
                            file.key, job.dataset.string())};
    }
    if (!item.known_error && !file.unusable.empty()) {
      item.known_error = Error{ErrorCode::not_found, file.unusable};
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

/// Sums of what commits have written. The writer commits by itself, between or before appends.
class CommittedFigures {
 public:
  CommittedFigures(const DatasetWriter& writer, IngestFigures& figures)
      : writer_(writer), figures_(figures), committed_(writer.committed()) {}

  void appended(std::uint32_t frames, double seconds) {
    pending_.push_back({frames, seconds});
    look();
  }

  /// Looks at how far the writer is.
  void look() {
    for (; committed_ < writer_.committed() && !pending_.empty(); ++committed_) {
      ++figures_.added;
      figures_.frames += pending_.front().frames;
      figures_.seconds += pending_.front().seconds;
      pending_.pop_front();
    }
  }

 private:
  struct Appended {
    std::uint32_t frames;
    double seconds;
  };
  const DatasetWriter& writer_;
  IngestFigures& figures_;
  std::uint64_t committed_;
  std::deque<Appended> pending_;
};

/// What is said of many sequences in the same words, and the place of the first.
class RemarkCounts {
 public:
  void add(const Remark& remark) {
    ++counts_.try_emplace(remark.what, 0, remark.where).first->second.first;
  }

  std::vector<std::string> texts() const {
    std::vector<std::string> texts;
    for (const auto& [what, count] : counts_) {
      texts.push_back(fmt::format("{} sequences: {}, such as {}", count.first, what, count.second));
    }
    return texts;
  }

 private:
  std::map<std::string, std::pair<std::uint64_t, std::string>> counts_;
};

/// One run of ingest(), from the first file to the last commit.
class Run {
 public:
  Run(const IngestJob& job, DatasetWriter& writer, IngestReport& report)
      : job_(job),
        writer_(writer),
        report_(report),
        is_new_(writer.committed() == 0),
        committed_(writer, report.figures) {}

  void take_all(const std::vector<Item>& items, const IngestWatch& watch) {
    // Known errors go through the loader too, for the order, but read nothing and take no memory.
    OrderedLoader loader(
        items.size(), std::max(job_.threads, 1U),
        [this, &items](std::size_t i) {
          return items[i].known_error ? Result<Loaded>(*items[i].known_error)
                                      : job_.source->load(*items[i].file);
        },
        [this, &items](std::size_t i) {
          return items[i].known_error ? 0 : job_.source->load_bytes(*items[i].file);
        });
    for (const Item& item : items) {
      take(*item.file, loader.next());
      // The loader's destructor stops what is being read ahead.
      if (report_.failure) return;
      report_.interrupted = !watch(report_.figures);
      if (report_.interrupted) return;
    }
  }

  void commit() {
    auto done = writer_.commit();
    committed_.look();
    // The first failure is the reason; that the commit then fails as well mostly follows from it.
    if (!done && !report_.failure) report_.failure = done.error();
    report_.remarks = remarks_.texts();
  }

  /// An ingest that could take no file has failed, even where files may be skipped.
  void check_something_taken() {
    const IngestFigures& figures = report_.figures;
    if (job_.is_part || report_.failure || report_.interrupted || figures.present > 0) return;
    if (figures.skipped == 0 || figures.skipped < figures.files) return;
    report_.failure = Error{ErrorCode::invalid_argument,
                            fmt::format("none of the {} files could be taken; the first: {}",
                                        figures.files, report_.skipped.front())};
  }

 private:
  void take(const SourceFile& file, const Result<Loaded>& loaded) {
    if (!loaded) return refuse_unread(file, loaded.error());
    // Kept over all files for its memory; it points into `loaded`, which outlives the append.
    values_.clear();
    for (const LoadedField& field : loaded->fields) values_.push_back({field.bytes, field.length});
    if (auto known = job_.annotations->append_values(file, values_); !known) {
      return refuse(file, known.error());
    }
    const auto began = Clock::now();
    const std::uint64_t before = writer_.committed();
    const auto ordinal = writer_.append({file.key, values_});
    if (ordinal) {
      ++report_.figures.taken;
      for (const Remark& remark : loaded->remarks) remarks_.add(remark);
      note_losses(file, *loaded);
      committed_.appended(loaded->fields.front().length, loaded->seconds);
      if (is_new_ && pace_.is_due(writer_.pending_bytes(), Clock::now())) commit();
    } else if (is_about_one_file(ordinal.error().code)) {
      refuse(file, ordinal.error());
    } else {
      report_.failure = ordinal.error();
    }
    if (writer_.committed() != before) pace_.committed(began, Clock::now());
  }

  /// What the values lack of the file, without being wrong.
  void note_losses(const SourceFile& file, const Loaded& loaded) {
    IngestFigures& figures = report_.figures;
    figures.clipped_samples += loaded.clipped;
    if (loaded.clipped > 0 && figures.clipped_files++ == 0) {
      report_.first_clipped = file.path.string();
    }
    if (loaded.cancelled && figures.cancelled_files++ == 0) {
      report_.first_cancelled = file.path.string();
    }
    if (loaded.lacks_begin) {
      remarks_.add(
          {"MP3 that was cut out of a longer one: the first frames need bytes that stood "
           "before them, and are silence or noise",
           file.path.string()});
    }
  }

  /// A source names the place itself, which need not be the file alone.
  void refuse_unread(const SourceFile& file, const Error& error) {
    const bool by_source =
        error.code == ErrorCode::invalid_argument || error.code == ErrorCode::schema_mismatch;
    refuse(error.code, by_source ? error.message : with_file(file, error.message));
  }

  void refuse(const SourceFile& file, const Error& error) {
    refuse(error.code, with_file(file, error.message));
  }

  void refuse(ErrorCode code, const std::string& reason) {
    if (job_.on_error == OnError::stop) {
      report_.failure = Error{code, reason};
    } else {
      ++report_.figures.skipped;
      report_.skipped.push_back(reason);
    }
  }

  using Clock = CommitPace::Time::clock;

  const IngestJob& job_;
  DatasetWriter& writer_;
  IngestReport& report_;
  /// Trainers may go on from commits of a dataset that was there, and it remembers only so many.
  const bool is_new_;
  CommittedFigures committed_;
  CommitPace pace_;
  RemarkCounts remarks_;
  std::vector<FieldValue> values_;
};

}  // namespace

std::optional<Schema> present_schema(const std::filesystem::path& dataset) {
  std::error_code ignored;  // nothing is there, or nothing that can be read
  if (!std::filesystem::exists(dataset / "data.mdb", ignored)) return std::nullopt;
  Catalog catalog;
  const auto opened = catalog.open({dataset});
  // ingest() opens it again and reports why it cannot be read.
  if (!opened) return std::nullopt;
  return (*opened)->schema();
}

Result<IngestReport> ingest(const IngestJob& job, const IngestWatch& watch) {
  auto writer = open_writer(job);
  if (!writer) return writer.error();
  IngestReport report;
  const auto items = sift(job, *writer, report.figures);
  if (!items) return items.error();
  Run run(job, *writer, report);
  run.take_all(*items, watch);
  // After a failure and an interruption, too: what was taken before is whole, and stays.
  run.commit();
  run.check_something_taken();
  return report;
}

}  // namespace batchwright
