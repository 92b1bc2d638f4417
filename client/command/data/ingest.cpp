#include "storage/ingest/ingest.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "client/command/commands.h"
#include "client/command/data/ingest_annotations.h"
#include "client/command/data/ingest_report.h"
#include "client/command/exit_code.h"
#include "client/command/interrupt.h"
#include "client/command/progress.h"

namespace batchwright {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// What one kind of ingest is made of.
struct Input {
  std::string kind;    ///< The command's word.
  fs::path named_for;  ///< The folder whose name the dataset keeps as `source_folder`.
  std::unique_ptr<IngestSource> source;
  std::vector<SourceFile> files;
  AnnotationOptions annotations;
  std::string passed_over;
  std::string left_out;
  std::vector<std::string> unmatched;
};

/// Time that all threads of this process have computed, in seconds.
double cpu_seconds() {
  rusage usage = {};
  // All threads, those that have ended too.
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// The folder's own name, also when it is given as "." or with a slash behind it.
std::string folder_name(const fs::path& folder) {
  // Behind "." or a slash the last element is empty, and the one before it is the name.
  const auto path = fs::absolute(folder).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

unsigned threads_of(const IngestOptions& options) {
  return options.threads > 0 ? options.threads : std::thread::hardware_concurrency();
}

void tell_who_writes(const IngestJob& job, const WriterWait& wait) {
  warn(fmt::format("waiting for another writer of {}{}", job.dataset.string(),
                   wait.process ? fmt::format(" (pid {})", *wait.process) : ""));
}

Result<IngestReport> take_all(IngestJob& job, Clock::time_point start) {
  // From here on Ctrl-C ends the ingest in order, with what was added committed.
  const Interrupt interrupt;
  job.limits.waiting = [&job, &interrupt](const WriterWait& wait) {
    // Called again and again while it waits; said once.
    if (wait.waited == std::chrono::milliseconds(0)) tell_who_writes(job, wait);
    return !interrupt.came();
  };
  // Gone at the end of this function: the report stands on a line of its own.
  ProgressLine progress(stderr, start);
  return ingest(job, [&progress, &interrupt](const IngestFigures& figures) {
    const auto now = Clock::now();
    const auto done = figures.taken + figures.skipped;
    if (progress.due(now, done, figures.files)) {
      progress.print(now, done, figures.files, ingest_rate(figures, progress.seconds(now)));
    }
    return !interrupt.came();
  });
}

/// What is in the part already; nothing where it is not finished.
/// Errors: invalid_argument: it is finished, and may not be or is of other files.
Result<std::optional<IngestReport>> finished_part(const IngestOptions& options,
                                                  std::span<const SourceFile> all) {
  const fs::path place = options.dataset();
  const auto mark = read_mark(place);
  if (!mark) return mark.error();
  if (!*mark) return std::optional<IngestReport>();
  const auto refused = [&place](std::string what) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{} is finished, {}", place.string(), what)};
  };
  const PartMark now = mark_of(all, (*mark)->sequences);
  if (now.list != (*mark)->list) {
    return refused(
        fmt::format("of a list of {} files; this one has {}, of other names: files came "
                    "or went. Remove the parts, and make all from one list",
                    (*mark)->files, now.files));
  }
  if (!options.resume) return refused("--resume skips such parts");
  IngestReport report;
  report.figures.present = (*mark)->sequences;
  return std::optional(std::move(report));
}

/// One part of the files. It is marked as finished once all of it is committed.
Result<IngestReport> take_part(const IngestOptions& options, std::span<const SourceFile> all,
                               IngestJob& job, Clock::time_point start) {
  auto finished = finished_part(options, all);
  if (!finished) return finished.error();
  if (*finished) return std::move(**finished);
  std::error_code error;  // other tasks make the same folder
  fs::create_directories(options.into, error);
  if (error) {
    return Error{ErrorCode::io_error,
                 fmt::format("{}: {}", options.into.string(), error.message())};
  }
  auto report = take_all(job, start);
  if (!report || report->failure || report->interrupted) return report;
  const IngestFigures& figures = report->figures;
  const auto marked = write_mark(job.dataset, mark_of(all, figures.present + figures.added));
  if (!marked) report->failure = marked.error();
  return report;
}

int run(const IngestOptions& options, Input input) {
  const auto annotations = annotate(options, input.annotations, input.files);
  if (!annotations) return fail(annotations.error());
  IngestJob job;
  // Pointers: `input` and `annotations` outlive ingest().
  job.source = input.source.get();
  job.annotations = &*annotations;
  job.files = options.part ? files_of(input.files, *options.part) : input.files;
  job.is_part = options.part.has_value();
  job.dataset = options.dataset();
  job.origin = {{"source", input.kind},
                {"source_folder", folder_name(input.named_for)},
                {"made_by", "batchwright " BATCHWRIGHT_VERSION}};
  job.on_error = options.on_error;
  job.resume = options.resume;
  job.threads = threads_of(options);

  const auto start = Clock::now();
  auto report = options.part ? take_part(options, input.files, job, start) : take_all(job, start);
  if (!report) return fail(report.error());
  IngestOutcome outcome{std::move(*report),
                        std::chrono::duration<double>(Clock::now() - start).count(),
                        cpu_seconds(),
                        std::move(input.passed_over),
                        std::move(input.left_out),
                        annotations->note(),
                        std::move(input.unmatched)};
  for (const std::string& text : annotations->unmatched()) outcome.unmatched.push_back(text);
  return report_ingest(options, outcome);
}

/// Appends a folder's files, and what is to be told of the others.
void add_files(Input& input, FileList list) {
  const auto append = [](std::string& text, const std::string& more) {
    if (!text.empty() && !more.empty()) text += ", ";
    text += more;
  };
  append(input.passed_over, passed_over(list));
  append(input.left_out, left_out(list));
  std::move(list.files.begin(), list.files.end(), std::back_inserter(input.files));
}

/// What all kinds that read a folder begin with.
Result<Input> input_of_folder(const IngestOptions& options, const char* kind,
                              std::span<const std::string_view> extensions) {
  auto list = find_files(options.folder, extensions, options.excluded);
  if (!list) return list.error();
  if (options.key_by_basename) key_by_basename(*list);
  Input input;
  input.kind = kind;
  input.named_for = options.folder;
  add_files(input, std::move(*list));
  input.annotations = options.annotations;
  return input;
}

/// Puts the segments of a table in the place of the files, where one is given.
Result<void> cut_into_segments(const IngestOptions& options, Input& input) {
  const fs::path& table = options.segments;
  if (table.empty()) return {};
  const bool by_channel = options.audio.channels == ChannelChoice::each;
  auto segments = read_segments(table, input.files, by_channel);
  if (!segments) return segments.error();
  input.files = std::move(segments->files);
  if (!segments->unmatched.empty()) input.unmatched.push_back(std::move(segments->unmatched));
  if (segments->files_without > 0) {
    input.unmatched.push_back(
        fmt::format("{} files have no segment in {}", segments->files_without, table.string()));
  }
  return {};
}

/// The rate that a dataset was made with goes before that of most files.
AudioSourceOptions with_rate_of(const fs::path& dataset, AudioSourceOptions options) {
  const auto schema = present_schema(dataset);
  // A rate on the command line goes first.
  if (!schema || options.sample_rate != 0) return options;
  for (const auto& [name, value] : schema->settings) {
    if (name != "sample_rate_hz") continue;
    std::string_view text(value);
    options.sample_rate = take_whole<std::uint32_t>(text).value_or(0);
    options.rate_origin = fmt::format("dataset {}", dataset.string());
  }
  return options;
}

/// A dataset of samples keeps their type; a file with more bits is an error of that file.
SoundSourceOptions with_samples_of(const fs::path& dataset, SoundSourceOptions options) {
  const auto schema = present_schema(dataset);
  if (schema && options.samples == DType::none) {
    options.present = schema->fields.front().dtype;
  }
  return options;
}

/// Runs the ingest with its source; `input` is one that has been checked.
int finish(const IngestOptions& options, Result<Input> input,
           Result<std::unique_ptr<IngestSource>> source) {
  if (!source) return fail(source.error());
  input->source = std::move(*source);
  return run(options, std::move(*input));
}

/// Files as they are, and those below folders. A file's key is its name without extension.
Result<Input> input_of_npz(const IngestOptions& options) {
  Input input;
  input.kind = "npz";
  input.named_for = options.files.front();
  input.annotations = options.annotations;
  for (const fs::path& path : options.files) {
    std::error_code ignored;  // a file that is not there is named when it is read
    // A file that is named is taken, whatever its extension: that is what was asked for.
    if (!fs::is_directory(path, ignored)) {
      input.files.push_back({path.stem().string(), path});
      continue;
    }
    auto list = find_files(path, npz_extensions(), options.excluded);
    if (!list) return list.error();
    add_files(input, std::move(*list));
  }
  return input;
}

/// What a Kaldi data folder has beside its features.
void add_data_folder(const fs::path& folder, std::span<const std::string> excluded,
                     AnnotationOptions& annotations) {
  constexpr std::array<std::pair<const char*, const char*>, 3> kLabels = {
      {{"utt2spk", "speaker"}, {"utt2lang", "language"}, {"utt2gender", "gender"}}};
  const auto has = [&folder, excluded](const char* name) {
    std::error_code ignored;  // what is not there is not used
    return std::find(excluded.begin(), excluded.end(), name) == excluded.end() &&
           fs::is_regular_file(folder / name, ignored);
  };
  for (const auto& [file, field] : kLabels) {
    if (has(file)) annotations.label_tables.push_back({field, folder / file});
  }
  // --transcripts goes before what lies in the folder.
  if (annotations.transcripts.empty() && has("text")) {
    annotations.transcripts = folder / "text";
    annotations.transcript_format = TranscriptFormat::kaldi;
  }
}

/// The tables of all fields. Errors: invalid_argument: a folder without features.
Result<KaldiSourceOptions> kaldi_tables(const IngestOptions& options) {
  KaldiSourceOptions kaldi;
  kaldi.arrays = options.arrays;
  std::error_code ignored;  // a table that is not there is named when it is read
  const fs::path folder(options.table);
  const bool is_folder = fs::is_directory(folder, ignored);
  // Kaldi's folders of raw sound look the same except for this.
  if (is_folder && !fs::exists(folder / "feats.scp", ignored)) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{}: no feats.scp in it{}", options.table,
                             fs::exists(folder / "wav.scp", ignored)
                                 ? "; it lists sound (wav.scp): compute features first, or give "
                                   "the folder of its files to ingest audio"
                                 : "")};
  }
  kaldi.tables.emplace_back("features",
                            is_folder ? (folder / "feats.scp").string() : options.table);
  for (const std::string& text : options.fields) {
    auto [name, table] = split_name(text);
    if (name.empty()) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("--field {}; allowed: NAME=TABLE, such as ali=ali.scp", text)};
    }
    kaldi.tables.emplace_back(std::move(name), std::move(table));
  }
  return kaldi;
}

}  // namespace

int run_ingest_audio(const IngestOptions& options) {
  auto input = input_of_folder(options, "audio", audio_extensions());
  if (!input) return fail(input.error());
  if (auto cut = cut_into_segments(options, *input); !cut) return fail(cut.error());
  if (options.audio.channels == ChannelChoice::each) {
    input->files = by_channels(std::move(input->files), threads_of(options));
  }
  if (options.store == StoreAs::features) {
    auto source = audio_source(with_rate_of(options.dataset(), options.audio), input->files);
    return finish(options, std::move(input), std::move(source));
  }
  SoundSourceOptions sound = options.sound;
  sound.channels = options.audio.channels;
  sound.encoded = options.store == StoreAs::encoded;
  auto source = sound_source(with_samples_of(options.dataset(), sound), input->files);
  return finish(options, std::move(input), std::move(source));
}

int run_ingest_npy(const IngestOptions& options) {
  auto input = input_of_folder(options, "npy", npy_extensions());
  if (!input) return fail(input.error());
  auto source = npy_source(options.arrays, input->files);
  return finish(options, std::move(input), std::move(source));
}

int run_ingest_npz(const IngestOptions& options) {
  auto input = input_of_npz(options);
  if (!input) return fail(input.error());
  auto source = npz_source({options.arrays, options.fields, options.primary}, input->files);
  return finish(options, std::move(input), std::move(source));
}

int run_ingest_kaldi(const IngestOptions& options) {
  const auto tables = kaldi_tables(options);
  if (!tables) return fail(tables.error());
  auto kaldi = kaldi_source(*tables);
  if (!kaldi) return fail(kaldi.error());
  Input input;
  input.kind = "kaldi";
  input.named_for = options.table;
  input.source = std::move(kaldi->source);
  input.files = std::move(kaldi->files);
  // Features decide which sequences there are; what a table has beyond them is told, not taken.
  for (const auto& [field, count] : kaldi->unmatched) {
    input.unmatched.push_back(
        fmt::format("{} keys of field \"{}\" have no features", count, field));
  }
  input.annotations = options.annotations;
  std::error_code ignored;  // seen above
  if (fs::is_directory(options.table, ignored)) {
    add_data_folder(options.table, options.excluded, input.annotations);
  }
  return run(options, std::move(input));
}

}  // namespace batchwright
