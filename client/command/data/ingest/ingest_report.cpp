#include "client/command/data/ingest/ingest_report.h"

#include <fmt/core.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdio>

#include "client/command/exit_code.h"
#include "client/command/output.h"

namespace batchwright {
namespace {

namespace json = boost::json;

/// 0 where `b` is none: a short ingest may have taken no time that could be measured.
double ratio(double a, double b) { return b > 0 ? a / b : 0; }

json::array texts(const std::vector<std::string>& all) {
  return json::array(all.begin(), all.end());
}

void print_json(const IngestOptions& options, const IngestOutcome& outcome) {
  const IngestReport& report = outcome.report;
  const IngestFigures& figures = report.figures;
  print_json_line(
      json::object{{"dataset", options.dataset().string()},
                   {"files", figures.files},
                   {"present", figures.present},
                   {"added", figures.added},
                   {"skipped", figures.skipped},
                   {"frames", figures.frames},
                   {"audio_seconds", figures.seconds},
                   {"clipped_samples", figures.clipped_samples},
                   {"clipped_files", figures.clipped_files},
                   {"cancelled_files", figures.cancelled_files},
                   {"seconds", outcome.seconds},
                   {"cpu_seconds", outcome.cpu_seconds},
                   {"realtime_factor", ratio(figures.seconds, outcome.seconds)},
                   {"realtime_factor_per_core", ratio(figures.seconds, outcome.cpu_seconds)},
                   {"interrupted", report.interrupted},
                   {"skipped_files", texts(report.skipped)},
                   {"passed_over", outcome.passed_over},
                   {"left_out", outcome.left_out},
                   {"transcript_columns", outcome.columns},
                   {"unmatched", texts(outcome.unmatched)},
                   {"remarks", texts(report.remarks)},
                   {"error", report.failure ? json::value(report.failure->message) : nullptr}});
}

void print_text(const IngestOutcome& outcome) {
  const IngestFigures& figures = outcome.report.figures;
  fmt::print("added {} sequences of {} frames in {:.2f} s", figures.added, figures.frames,
             outcome.seconds);
  // Only sound has a duration; arrays have frames and nothing else.
  if (figures.seconds > 0) {
    fmt::print(": {:.3f} h of sound, {:.0f} x real time, {:.0f} x for each core used",
               figures.seconds / 3600, ratio(figures.seconds, outcome.seconds),
               ratio(figures.seconds, outcome.cpu_seconds));
  }
  fmt::print("\n");
  if (figures.present > 0) fmt::print("skipped {} that were there\n", figures.present);
  if (!outcome.passed_over.empty()) {
    fmt::print("skipped files of other kinds: {}\n", outcome.passed_over);
  }
  if (!outcome.left_out.empty()) fmt::print("left out: {}\n", outcome.left_out);
  if (!outcome.columns.empty()) fmt::print("{}\n", outcome.columns);
  for (const std::string& text : outcome.unmatched) fmt::print("{}\n", text);
  for (const std::string& text : outcome.report.remarks) fmt::print("{}\n", text);
  if (figures.clipped_files > 0) {
    fmt::print(
        "clipped {} samples of {} files, which int16 does not hold, such as of {}: divide them by "
        "their peak, or store them with --samples float32\n",
        figures.clipped_samples, figures.clipped_files, outcome.report.first_clipped);
  }
  if (figures.cancelled_files > 0) {
    fmt::print(
        "{} files have channels of opposite phase, of which the mean is next to silence, such as "
        "{}: take one with --channel first, or all with --channel each\n",
        figures.cancelled_files, outcome.report.first_cancelled);
  }
  if (figures.skipped > 0) fmt::print("skipped {} files:\n", figures.skipped);
  for (const std::string& reason : outcome.report.skipped) fmt::print("  {}\n", reason);
}

/// What was given to the writer and is not in the dataset, which --resume adds.
std::string lost_text(const IngestFigures& figures) {
  if (figures.taken == figures.added) return {};
  return fmt::format(" ({} sequences more were read and could not be committed)",
                     figures.taken - figures.added);
}

}  // namespace

int report_ingest(const IngestOptions& options, const IngestOutcome& outcome) {
  options.json ? print_json(options, outcome) : print_text(outcome);
  const IngestReport& report = outcome.report;
  std::fflush(stdout);  // so that it stands before what follows; main() sees whether it failed
  if (report.failure) {
    fmt::print(stderr, "batchwright: stopped: {}{}\n", report.failure->message,
               lost_text(report.figures));
  } else if (report.interrupted) {
    fmt::print(stderr,
               "batchwright: interrupted: the {} sequences added are committed; --resume "
               "goes on after them\n",
               report.figures.added);
  }
  // Skipped files leave it at kDone: --on-error skip asked for that.
  return report.failure || report.interrupted ? kFailed : kDone;
}

std::string ingest_rate(const IngestFigures& figures, double seconds) {
  // Rate and progress count what was read, also where it could not be taken.
  const auto done = figures.taken + figures.skipped;
  std::string text = fmt::format("{} of {} files  {:.0f} files/s", done, figures.files,
                                 ratio(static_cast<double>(done), seconds));
  if (figures.seconds > 0) {
    text += fmt::format("  {:.0f} x real time", ratio(figures.seconds, seconds));
  }
  return text;
}

}  // namespace batchwright
