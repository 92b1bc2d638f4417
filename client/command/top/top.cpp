#include <fmt/core.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <chrono>
#include <cstdio>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/command/commands.h"
#include "client/command/exit_code.h"
#include "client/command/find_pages.h"
#include "client/command/http_get.h"
#include "client/command/interrupt.h"
#include "client/command/output.h"
#include "client/command/top/hosts.h"
#include "client/command/top/memory.h"
#include "client/command/top/model.h"
#include "client/command/top/terminal.h"

namespace batchwright {
namespace {

using Clock = std::chrono::steady_clock;

/// A page that takes longer is no answer.
constexpr std::chrono::milliseconds kAnswerLimit{2'000};
/// How late an answer of the daemon may be shown.
constexpr std::chrono::milliseconds kPollInterval{50};

/// A daemon's page, as it came and as a value.
struct Page {
  std::string text;
  boost::json::value stats;
};

/// What the daemons answered, in the order of their addresses.
struct Pages {
  std::vector<std::string> texts;
  boost::json::value stats;  ///< Of all together.
};

/// A daemon of another user is never taken for one's own.
void name_user(boost::json::object& stats) {
  const auto* const uid = stats.if_contains("uid");
  if (uid == nullptr || !uid->is_int64() || uid->as_int64() == ::geteuid()) return;
  const passwd* const user = ::getpwuid(static_cast<uid_t>(uid->as_int64()));
  stats["user"] = user == nullptr ? fmt::format("{}", uid->as_int64()) : user->pw_name;
}

Result<Page> fetch_one(const std::string& address) {
  auto text = http_get(address, "/stats", kAnswerLimit);
  if (!text) return text.error();
  boost::system::error_code error;
  // Any HTTP server may answer there, with any page.
  boost::json::value stats = boost::json::parse(*text, error);
  if (error || !stats.is_object()) {
    return Error{ErrorCode::malformed_message, fmt::format("{}/stats is no JSON object", address)};
  }
  name_user(stats.as_object());
  return Page{std::move(*text), std::move(stats)};
}

/// Beside others where the system has a thread to spare, and otherwise when it is waited for.
constexpr auto kBesides = std::launch::async | std::launch::deferred;

/// All at once. Errors: that of the first, where none answers; invalid_argument.
Result<Pages> fetch(const std::vector<std::string>& addresses) {
  std::vector<std::future<Result<Page>>> asked;
  for (const std::string& address : addresses) {
    asked.push_back(std::async(kBesides, fetch_one, address));
  }
  Pages pages;
  std::vector<HostPage> hosts;
  std::optional<Error> trouble;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    auto page = asked[i].get();
    if (page) {
      pages.texts.push_back(std::move(page->text));
      hosts.push_back({addresses[i], std::move(page->stats), {}});
      continue;
    }
    // No later look can mend a wrong address.
    if (page.error().code == ErrorCode::invalid_argument) return page.error();
    hosts.push_back({addresses[i], nullptr, page.error().message});
    if (!trouble) trouble = page.error();
  }
  if (pages.texts.empty() && trouble) return *trouble;
  pages.stats = merged(hosts);
  return pages;
}

/// As it is shown: one address, or the number of them.
std::string shown_address(const std::vector<std::string>& addresses) {
  return addresses.size() == 1 ? addresses.front() : fmt::format("{} daemons", addresses.size());
}

void print(const Pages& page, const TopMemory& memory, const TopOptions& options) {
  if (options.json) {
    for (const std::string& text : page.texts) fmt::print("{}\n", text);
  } else {
    for (const TopLine& line : snapshot(page.stats, memory, shown_address(options.stats))) {
      // It goes to files and pipes, whose readers may take nothing but ASCII.
      fmt::print("{}\n", in_ascii(line.text()));
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
  TopMemory memory;
  while (!interrupt.came()) {
    // From the start of a look, so that the pace does not depend on how long an answer takes.
    const auto due = Clock::now() + interval;
    const auto page = fetch(options.stats);
    if (page) {
      memory.add(page->stats);
      print(*page, memory, options);
    } else if (options.once || page.error().code == ErrorCode::invalid_argument) {
      // No later look can mend a wrong address; a daemon that restarts is waited for.
      return fail(page.error());
    } else {
      fmt::print(stderr, "batchwright: no answer, trying again: {}\n", page.error().message);
    }
    if (options.once) return kDone;
    sleep_until(due, interrupt);
  }
  return kDone;
}

void show_next(TopModel& model, Result<Pages> page) {
  if (page) return model.take(std::move(page->stats));
  model.miss(page.error().message);
}

/// Keys work while a page is under way, however long the daemon takes.
int run_on_terminal(const TopOptions& options) {
  const auto interval = std::chrono::duration_cast<Clock::duration>(options.interval);
  auto page = fetch(options.stats);
  // Found out before the screen is taken: it would hide why.
  if (!page && page.error().code == ErrorCode::invalid_argument) return fail(page.error());
  TopModel model(shown_address(options.stats));
  show_next(model, std::move(page));
  auto due = Clock::now() + interval;
  std::future<Result<Pages>> coming;  // goes after the terminal: that is given back at once
  TopTerminal terminal(wants_colours());
  while (!terminal.ended()) {
    terminal.show(model.draw(TopTerminal::size()));
    // A future cannot be waited for along with keys, so it is looked at every kPollInterval.
    const auto until = coming.valid() ? Clock::now() + kPollInterval : due;
    for (const TopKey key : terminal.wait_for_keys(until)) {
      if (key == TopKey::quit) return kDone;
      model.press(key);
    }
    if (coming.valid() && coming.wait_for(Clock::duration(0)) != std::future_status::timeout) {
      show_next(model, coming.get());
    } else if (!coming.valid() && Clock::now() >= due) {
      due = Clock::now() + interval;
      coming = std::async(kBesides, fetch, options.stats);
    }
  }
  return kDone;
}

/// The options with addresses of pages: without --stats those of the daemons at the endpoints.
Result<TopOptions> with_pages(TopOptions options) {
  if (!options.stats.empty()) return options;
  if (options.endpoint.empty()) {
    options.stats = {"http://127.0.0.1:9477"};
    return options;
  }
  for (const std::string& endpoint : endpoints_in(options.endpoint)) {
    const auto pages = find_pages(endpoint);
    if (!pages) return pages.error();
    options.stats.push_back(pages->front());
  }
  return options;
}

}  // namespace

int run_top(const TopOptions& given) {
  const auto found = with_pages(given);
  if (!found) return fail(found.error());
  const TopOptions& options = *found;
  if (!options.once && !options.json && writes_to_terminal()) return run_on_terminal(options);
  const Interrupt interrupt;
  return run_plain(options, interrupt);
}

}  // namespace batchwright
