#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/command/commands.h"
#include "client/command/exit_code.h"
#include "client/command/interrupt.h"
#include "client/command/progress.h"
#include "storage/storage.h"

namespace batchwright {
namespace {

namespace json = boost::json;
using Clock = std::chrono::steady_clock;
using Origin = std::vector<std::pair<std::string, std::string>>;

/// Time that all threads of this process have computed, in seconds.
double cpu_seconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double ratio(double a, double b) { return b > 0 ? a / b : 0; }

/// The folder's own name, also when it is given as "." or with a slash behind it.
std::string folder_name(const std::filesystem::path& folder) {
  const auto path = std::filesystem::absolute(folder).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

Origin origin_of(const IngestOptions& options, const char* kind) {
  return {{"source", kind},
          {"source_folder", folder_name(options.folder)},
          {"made_by", "batchwright " BATCHWRIGHT_VERSION}};
}

std::string rate_text(const IngestFigures& figures, double seconds) {
  const auto done = figures.added + figures.skipped;
  std::string text = fmt::format("{} of {} files  {:.0f} files/s", done, figures.files,
                                 ratio(static_cast<double>(done), seconds));
  if (figures.seconds > 0) {
    text += fmt::format("  {:.0f} x real time", ratio(figures.seconds, seconds));
  }
  return text;
}

struct Outcome {
  const IngestOptions& options;
  const IngestReport& report;
  double seconds = 0;
  double cpu_seconds = 0;
};

void print_json(const Outcome& outcome) {
  const IngestFigures& figures = outcome.report.figures;
  json::object all{
      {"dataset", outcome.options.dataset.string()},
      {"files", figures.files},
      {"present", figures.present},
      {"added", figures.added},
      {"skipped", figures.skipped},
      {"frames", figures.frames},
      {"audio_seconds", figures.seconds},
      {"seconds", outcome.seconds},
      {"cpu_seconds", outcome.cpu_seconds},
      {"realtime_factor", ratio(figures.seconds, outcome.seconds)},
      {"realtime_factor_per_core", ratio(figures.seconds, outcome.cpu_seconds)},
      {"interrupted", outcome.report.interrupted},
      {"skipped_files", json::array(outcome.report.skipped.begin(), outcome.report.skipped.end())},
      {"error", outcome.report.failure ? json::value(outcome.report.failure->message) : nullptr}};
  fmt::print("{}\n", json::serialize(all));
}

void print_text(const Outcome& outcome) {
  const IngestFigures& figures = outcome.report.figures;
  fmt::print("added {} sequences of {} frames in {:.2f} s", figures.added, figures.frames,
             outcome.seconds);
  if (figures.seconds > 0) {
    fmt::print(": {:.3f} h of sound, {:.0f} x real time, {:.0f} x for each core used",
               figures.seconds / 3600, ratio(figures.seconds, outcome.seconds),
               ratio(figures.seconds, outcome.cpu_seconds));
  }
  fmt::print("\n");
  if (figures.present > 0) fmt::print("passed over {} that were there\n", figures.present);
  if (figures.skipped > 0) fmt::print("skipped {} files:\n", figures.skipped);
  for (const std::string& reason : outcome.report.skipped) fmt::print("  {}\n", reason);
}

int finish(const Outcome& outcome) {
  outcome.options.json ? print_json(outcome) : print_text(outcome);
  const IngestReport& report = outcome.report;
  std::fflush(stdout);
  if (report.failure) {
    fmt::print(stderr, "batchwright: stopped: {}\n", report.failure->message);
  } else if (report.interrupted) {
    fmt::print(stderr,
               "batchwright: interrupted: the {} sequences added are committed; --resume "
               "goes on behind them\n",
               report.figures.added);
  }
  return report.failure || report.interrupted ? kFailed : kDone;
}

int run(const IngestOptions& options, IngestJob job) {
  const auto annotations = Annotations::create(options.annotations, job.files);
  if (!annotations) return fail(annotations.error());
  job.annotations = &*annotations;
  job.dataset = options.dataset;
  job.on_error = options.on_error;
  job.resume = options.resume;
  job.threads = options.threads > 0 ? options.threads : std::thread::hardware_concurrency();

  const Interrupt interrupt;
  const auto start = Clock::now();
  const auto report = [&job, &interrupt, start] {
    Progress progress(stderr, start);
    return ingest(job, [&progress, &interrupt](const IngestFigures& figures) {
      const auto now = Clock::now();
      const auto done = figures.added + figures.skipped;
      if (progress.due(now, done, figures.files)) {
        progress.print(now, done, figures.files, rate_text(figures, progress.seconds(now)));
      }
      return !interrupt.came();
    });
  }();
  if (!report) return fail(report.error());
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return finish({options, *report, seconds, cpu_seconds()});
}

}  // namespace

int run_ingest_audio(const IngestOptions& options) {
  const auto files = find_files(options.folder, audio_extensions(), options.excluded);
  if (!files) return fail(files.error());
  const auto source = audio_source(options.audio, *files);
  if (!source) return fail(source.error());
  IngestJob job;
  job.files = *files;
  job.source = source->get();
  job.origin = origin_of(options, "audio");
  return run(options, std::move(job));
}

int run_ingest_npy(const IngestOptions& options) {
  const auto files = find_files(options.folder, npy_extensions(), options.excluded);
  if (!files) return fail(files.error());
  const auto source = npy_source(*files);
  if (!source) return fail(source.error());
  IngestJob job;
  job.files = *files;
  job.source = source->get();
  job.origin = origin_of(options, "npy");
  return run(options, std::move(job));
}

}  // namespace batchwright
