#include "client/command/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cmath>

namespace batchwright {
namespace {

using std::chrono::milliseconds;

// On a terminal as often as the eye follows; in a log, where every line stays, seldom.
constexpr milliseconds kTerminalPause{100};
constexpr milliseconds kLinePause{5'000};
constexpr milliseconds kSignOfLife{60'000};

}  // namespace

ProgressLine::ProgressLine(std::FILE* out, Time start)
    : ProgressLine(out, start, isatty(fileno(out)) == 1) {}

ProgressLine::ProgressLine(std::FILE* out, Time start, bool terminal)
    : out_(out), start_(start), terminal_(terminal), last_(start) {}

ProgressLine::~ProgressLine() {
  // The line gives way to what the command prints next.
  if (terminal_ && printed_) fmt::print(out_, "\r\x1b[K");
}

double ProgressLine::seconds(Time now) const {
  return std::chrono::duration<double>(now - start_).count();
}

bool ProgressLine::due(Time now, std::uint64_t done, std::uint64_t total) const {
  if (terminal_) return now - last_ >= kTerminalPause;
  if (now - last_ < kLinePause) return false;
  return now - last_ >= kSignOfLife || done - last_done_ >= total / 10;
}

void ProgressLine::print(Time now, std::uint64_t done, std::uint64_t total, std::string_view text) {
  // Nothing to do is done.
  const double share = total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total);
  const std::string left =
      done == 0 ? "" : fmt::format("  {} left", duration_text(seconds(now) * (1 - share) / share));
  // Rounded down: 100 % is shown when all is done, and not before.
  fmt::print(out_, "{}{:3.0f} %  {}{}{}", terminal_ ? "\r\x1b[K" : "", std::floor(100 * share),
             text, left, terminal_ ? "" : "\n");
  std::fflush(out_);
  printed_ = true;
  last_ = now;
  last_done_ = done;
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace batchwright
