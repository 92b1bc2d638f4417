#include <fmt/core.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <chrono>
#include <thread>

#include "client/command/commands.h"
#include "client/command/exit_code.h"
#include "client/command/output.h"
#include "client/command/progress.h"
#include "storage/dataset/dataset.h"
#include "storage/features/recipe/recipe.h"

namespace batchwright {
namespace {

namespace json = boost::json;
using Clock = std::chrono::steady_clock;

void print_json(const VerifyOptions& options, const VerifyReport& report, double seconds) {
  json::array broken;
  for (const BrokenRecord& record : report.broken) {
    broken.push_back(json::object{
        {"ordinal", record.ordinal.value}, {"key", record.key}, {"reason", record.reason}});
  }
  print_json_line(
      json::object{{"dataset", options.dataset.string()},
                   {"sequences", report.sequences},
                   {"bytes", report.bytes},
                   {"seconds", seconds},
                   {"lock", name_of(report.lock)},
                   {"sound", report.sound()},
                   {"broken", std::move(broken)},
                   {"problems", json::array(report.problems.begin(), report.problems.end())}});
}

void print_text(const VerifyReport& report, double seconds) {
  for (const std::string& problem : report.problems) fmt::print("problem: {}\n", problem);
  for (const BrokenRecord& record : report.broken) {
    fmt::print("broken: ordinal {}, key \"{}\": {}\n", record.ordinal.value, record.key,
               record.reason);
  }
  fmt::print("{} sequences, {} bytes of records in {:.2f} s: {}\n", report.sequences, report.bytes,
             seconds,
             report.sound() ? "intact"
                            : fmt::format("{} broken records, {} other problems",
                                          report.broken.size(), report.problems.size()));
}

/// Decodes sound that is stored encoded. A dataset that cannot even be opened so has problems that
/// the report has already.
Result<void> check_sound(const VerifyOptions& options, Clock::time_point start,
                         VerifyReport& report) {
  ProgressLine progress(stderr, start);
  const auto show = [&progress](std::uint64_t done, std::uint64_t total) {
    const auto now = Clock::now();
    if (!progress.due(now, done, total)) return;
    progress.print(now, done, total, fmt::format("{} of {} sequences decoded", done, total));
  };
  auto broken = verify_sound(options.dataset, std::thread::hardware_concurrency(), show);
  if (!broken) return report.sound() ? Result<void>(broken.error()) : Result<void>();
  report.broken.insert(report.broken.end(), broken->begin(), broken->end());
  return {};
}

}  // namespace

int run_verify(const VerifyOptions& options) {
  const auto start = Clock::now();
  // The line of progress goes with this scope, before the report is printed.
  auto report = [&options, start] {
    ProgressLine progress(stderr, start);
    const auto show = [&progress](std::uint64_t done, std::uint64_t total) {
      const auto now = Clock::now();
      if (!progress.due(now, done, total)) return;
      const double rate = static_cast<double>(done) / progress.seconds(now);
      progress.print(now, done, total,
                     fmt::format("{} of {} sequences  {:.0f}/s", done, total, rate));
    };
    return verify_dataset({options.dataset}, show, Locking::permitted);
  }();
  if (!report) return fail(report.error());
  if (auto checked = check_sound(options, start, *report); !checked) return fail(checked.error());
  if (report->lock == MapLock::none) {
    warn(fmt::format("{} was read without a lock, since lock.mdb may not be written",
                     options.dataset.string()));
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  options.json ? print_json(options, *report, seconds) : print_text(*report, seconds);
  // 1, not 2: the call was right, and scripts learn of damage by the code.
  return report->sound() ? kDone : kFailed;
}

}  // namespace batchwright
