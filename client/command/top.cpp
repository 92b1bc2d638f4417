#include <fmt/core.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "client/command/commands.h"
#include "client/command/exit_code.h"
#include "client/command/http_get.h"
#include "client/command/interrupt.h"
#include "client/command/output.h"
#include "client/command/top_screen.h"
#include "client/command/top_terminal.h"

namespace batchwright {
namespace {

using Clock = std::chrono::steady_clock;

/// A page that takes longer is no answer.
constexpr std::chrono::milliseconds kPatience{2'000};
/// Lines that are read by programs, or later, are cut nowhere.
constexpr TopSize kPaper{120, 0};

/// The daemon's page, as it came and as a value.
struct Page {
  std::string text;
  boost::json::value stats;
};

Result<Page> fetch(const std::string& address) {
  auto text = http_get(address, "/stats", kPatience);
  if (!text) return text.error();
  boost::system::error_code error;
  boost::json::value stats = boost::json::parse(*text, error);
  if (error || !stats.is_object()) {
    return Error{ErrorCode::malformed_message, address + "/stats is no JSON object"};
  }
  return Page{std::move(*text), std::move(stats)};
}

void print(const Page& page, const TopOptions& options) {
  if (options.json) {
    fmt::print("{}\n", page.text);
  } else {
    for (const TopLine& line : draw_top({options.stats, page.stats, {}}, kPaper)) {
      fmt::print("{}\n", line.text());
    }
    if (!options.once) fmt::print("\n");
  }
  flush_output();  // a program that reads along waits for this
}

void sleep_until(Clock::time_point until, const Interrupt& interrupt) {
  constexpr Clock::duration kSlice =
      std::chrono::milliseconds(100);  // how late an interrupt may be
  for (auto now = Clock::now(); now < until && !interrupt.came(); now = Clock::now()) {
    std::this_thread::sleep_for(std::min(until - now, kSlice));
  }
}

/// Ends with an interrupt, or after the first page when that is all that is wanted.
int run_plain(const TopOptions& options, const Interrupt& interrupt) {
  const auto interval = std::chrono::duration_cast<Clock::duration>(options.interval);
  while (!interrupt.came()) {
    const auto due = Clock::now() + interval;
    const auto page = fetch(options.stats);
    if (page) {
      print(*page, options);
    } else if (options.once || page.error().code == ErrorCode::invalid_argument) {
      return fail(page.error());
    } else {
      fmt::print(stderr, "batchwright: no answer, trying again: {}\n", page.error().message);
    }
    if (options.once) return kDone;
    sleep_until(due, interrupt);
  }
  return kDone;
}

int run_on_terminal(const TopOptions& options, const Interrupt& interrupt) {
  const auto interval = std::chrono::duration_cast<Clock::duration>(options.interval);
  auto page = fetch(options.stats);
  // Found out before the screen is taken: it would hide why.
  if (!page && page.error().code == ErrorCode::invalid_argument) return fail(page.error());
  TopTerminal terminal(wants_colours());
  TopView view{options.stats, nullptr, {}};
  while (!interrupt.came()) {
    if (page) view.stats = std::move(page->stats);
    view.trouble = page ? std::string() : page.error().message;
    const auto due = Clock::now() + interval;
    auto wake = TopTerminal::Wake::early;
    while (wake == TopTerminal::Wake::early && !interrupt.came()) {
      terminal.show(draw_top(view, TopTerminal::size()));
      wake = terminal.wait_until(due);
    }
    if (wake == TopTerminal::Wake::quit || interrupt.came()) break;
    page = fetch(options.stats);
  }
  return kDone;
}

}  // namespace

int run_top(const TopOptions& options) {
  const Interrupt interrupt;
  const bool plain = options.once || options.json || !writes_to_terminal();
  return plain ? run_plain(options, interrupt) : run_on_terminal(options, interrupt);
}

}  // namespace batchwright
