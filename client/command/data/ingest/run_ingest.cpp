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
#include "client/command/data/ingest/ingest_annotations.h"
#include "client/command/data/ingest/ingest_kind.h"
#include "client/command/data/ingest/ingest_report.h"
#include "client/command/exit_code.h"
#include "client/command/interrupt.h"
#include "client/command/progress.h"
#include "storage/ingest/ingest.h"

namespace batchwright {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

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

}  // namespace

int run_ingest(const IngestOptions& options, const char* kind, IngestInput input) {
  const auto annotations = annotate(options, input.annotations, input.files);
  if (!annotations) return fail(annotations.error());
  IngestJob job;
  // Pointers: `input` and `annotations` outlive ingest().
  job.source = input.source.get();
  job.annotations = &*annotations;
  job.files = options.part ? files_of(input.files, *options.part) : input.files;
  job.is_part = options.part.has_value();
  job.dataset = options.dataset();
  job.origin = {{"source", kind},
                {"source_folder", folder_name(input.named_for)},
                {"made_by", "batchwright " BATCHWRIGHT_VERSION}};
  job.on_error = options.on_error;
  job.resume = options.resume;
  job.threads = options.read_threads();

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

}  // namespace batchwright
