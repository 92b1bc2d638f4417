#include "client/command/top/client_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "client/command/top/figures.h"
#include "client/command/top/live_page.h"

namespace batchwright {
namespace {

namespace json = boost::json;

constexpr std::size_t kBarColumns = 20;

std::string name_of(const json::value& client) {
  const std::string name = text_at(client, "client");
  return fmt::format("{} (process {:.0f})", name.empty() ? "unnamed" : name,
                     number_or_0(client, "pid"));
}

/// Ranks are counted from 0, as launchers do.
std::string rank_of(const json::value& client) {
  const std::string mode = text_at(client, "mode");
  if (mode == "queue") return mode;
  // A replica gets every batch, so it has no share that a rank could number.
  if (mode != "sharded") return std::string(kNone);
  return fmt::format("{:.0f} / {:.0f}", number_or_0(client, "rank"), number_or_0(client, "ranks"));
}

/// "3 of 4 (12 s)": how many, and for how long the oldest.
std::string held_text(const json::value& client) {
  const std::string held = fmt::format("{:.0f} of {:.0f}", number_or_0(client, "held_batches"),
                                       number_or_0(client, "window_batches"));
  const auto seconds = number_at(client, "held_seconds");
  // No time where nothing is held, or where an older daemon does not tell it.
  return seconds ? fmt::format("{} ({})", held, seconds_text(seconds)) : held;
}

std::string lag_text(const json::value& client) {
  const double lag = number_or_0(client, "lag_batches");
  return whole_text(lag) + (lag == 1 ? " batch" : " batches");
}

/// A live feed has no epochs.
std::string position_text(const json::value& client, bool live) {
  const std::string step = "step " + whole_text(number_or_0(client, "step"));
  return live ? step : fmt::format("epoch {:.0f}, {}", number_or_0(client, "epoch"), step);
}

/// The ranks of a job stand together.
std::vector<const json::value*> clients_in_order(const json::value& feed) {
  std::vector<const json::value*> clients;
  for (const auto& client : items_at(feed, "subscribers")) clients.push_back(&client);
  // Program, rank, host, process: the same at each page, so that lines stay where they are.
  const auto place = [](const json::value& client) {
    return std::tuple(text_at(client, "client"), number_or_0(client, "rank"),
                      text_at(client, "host"), number_or_0(client, "pid"));
  };
  std::stable_sort(clients.begin(), clients.end(),
                   [&](const auto* a, const auto* b) { return place(*a) < place(*b); });
  return clients;
}

/// Whether the page is of several daemons.
bool has_hosts(const json::value& feed) {
  const json::array& clients = items_at(feed, "subscribers");
  return std::any_of(clients.begin(), clients.end(),
                     [](const json::value& client) { return !text_at(client, "host").empty(); });
}

std::vector<Piece> cells_of(const json::value& client, const std::optional<RecentShares>& recent,
                            bool live) {
  const std::string none(kNone);
  // A client that got nothing has no time for a step, rather than an endless one.
  const bool steps = recent && recent->per_second > 0;
  // How it is at this moment: the share beside it is of the last ten seconds.
  const std::string awaited = text_at(client, "waiting");
  const bool starves = awaited == "daemon" || awaited == "slot" || awaited == "step";
  const auto waited = [&](const char* key) { return seconds_text(number_at(client, key)); };
  return {{"  " + name_of(client)},
          {rank_of(client)},
          {recent ? rate_text(recent->per_second) : none},
          {steps ? seconds_text(1 / recent->per_second) : none},
          {recent ? share_text(recent->waits) : none, starves ? Tone::warning : Tone::plain},
          {recent ? share_text(recent->awaited) : none},
          {held_text(client)},
          {lag_text(client)},
          {position_text(client, live)},
          {live ? none : bar_text(number_or_0(client, "position_share"), kBarColumns)},
          {memory_text(number_or_0(client, "delivered_bytes"))},
          {waited("waited_for_daemon_seconds")},
          {waited("waited_for_client_seconds")}};
}

}  // namespace

TopTable client_table(const json::value& feed, const TopMemory& memory) {
  TopTable table;
  // The last two are sums since the client subscribed, the two of their like before are shares.
  table.columns = {{"  client", true, 0},       {"rank", false, 2},      {"batches/s", false, 3},
                   {"step", false, 1},          {"waits", false, 0},     {"daemon waits", false, 5},
                   {"holds", false, 0},         {"behind", false, 4},    {"position", false, 6},
                   {"of epoch", true, 11},      {"delivered", false, 8}, {"waited", false, 9},
                   {"daemon waited", false, 10}};
  const bool live = is_live(feed);
  const bool hosts = has_hosts(feed);
  if (hosts) table.columns.insert(table.columns.begin() + 1, TableColumn{"host", true, 0});
  for (const json::value* client : clients_in_order(feed)) {
    auto cells = cells_of(*client, memory.recent(feed, *client), live);
    if (hosts) cells.insert(cells.begin() + 1, Piece{text_at(*client, "host")});
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace batchwright
