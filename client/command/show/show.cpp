#include <fmt/core.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <set>

#include "client/command/commands.h"
#include "client/command/exit_code.h"
#include "client/command/interrupt.h"
#include "client/command/output.h"
#include "client/command/show/show_page.h"

namespace batchwright {
namespace {

namespace json = boost::json;

/// The sequences of these keys, in their order. Errors: not_found, naming the key.
Result<std::vector<Ordinal>> ordinals_of(const Snapshot& snapshot,
                                         const std::vector<std::string>& keys) {
  std::vector<Ordinal> ordinals;
  for (const std::string& key : keys) {
    const auto found = snapshot.find(key);
    if (!found) return found.error();
    if (!*found) {
      return Error{ErrorCode::not_found,
                   fmt::format("no sequence has the key \"{}\"; the feed's data have {}",
                               printable(key), snapshot.sequences())};
    }
    ordinals.push_back(**found);
  }
  return ordinals;
}

/// `count` different ones of `sequences`, the same for one seed and epoch, in rising order.
std::vector<Ordinal> random_ordinals(std::uint64_t sequences, std::uint64_t count,
                                     std::uint64_t seed, std::uint64_t epoch) {
  SplitMix64 random{mix64(seed) + epoch};
  std::set<std::uint64_t> chosen;
  // Floyd's way (Bentley and Floyd 1987): each subset is as likely, and no draw is thrown away.
  const std::uint64_t taken = std::min(count, sequences);
  for (std::uint64_t last = sequences - taken; last < sequences; ++last) {
    const std::uint64_t drawn = random.next() % (last + 1);
    if (!chosen.insert(drawn).second) chosen.insert(last);
  }
  std::vector<Ordinal> ordinals;
  for (const std::uint64_t ordinal : chosen) ordinals.push_back(Ordinal{ordinal});
  return ordinals;
}

std::string line_of(const ShownRow& row) {
  if (!row.wrong.empty()) return fmt::format("{}: {}", printable(row.key), row.wrong);
  std::string line = printable(row.key);
  if (row.stored.rate != 0) {
    line += fmt::format("  {:.2f} s as stored, {:.2f} s as heard", row.stored.seconds(),
                        row.heard.seconds());
  }
  if (row.row.values != 0) {
    line += fmt::format("  [{}, {}]", row.row.frames(), row.row.values);
  }
  for (const auto& [name, text] : row.drawn) {
    line += fmt::format("\n    {:<18}{}", name, printable(text));
  }
  return line;
}

}  // namespace

int run_show(const ShowOptions& options) {
  // Without a recipe, rows are what is stored.
  const auto feed = open_configured_feed(options.config, options.feed,
                                         [](const RecipeSettings& settings) { return settings; });
  if (!feed) return fail(feed.error());
  const auto named = ordinals_of(*feed->snapshot, options.keys);
  if (!named) return fail(named.error());
  const auto ordinals = options.keys.empty()
                            ? random_ordinals(feed->snapshot->sequences(), options.random,
                                              feed->config.served.plan.seed, options.epoch)
                            : *named;
  const Interrupt interrupt;
  json::array rows;
  bool all_well = true;
  for (const Ordinal ordinal : ordinals) {
    if (interrupt.came()) break;
    const ShownRow row = look_at_row(*feed, Epoch{options.epoch}, ordinal);
    all_well = all_well && row.wrong.empty();
    if (options.json) {
      print_json_line(row_json(row));
    } else {
      fmt::print("{}\n", line_of(row));
    }
    if (!options.html.empty()) rows.push_back(page_row_json(row));
  }
  if (!options.html.empty()) {
    auto written =
        write_show_page(options.html, feed->config.served.name, options.epoch, std::move(rows));
    if (!written) return fail(written.error());
  }
  return all_well ? kDone : kFailed;
}

}  // namespace batchwright
