#include "daemon/reload/reload_prepare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <utility>

#include "daemon/reload/room_settings.h"

namespace batchwright {
namespace {

Error needs_restart(const std::string& what) {
  return {ErrorCode::bad_configuration, fmt::format("{}; restart the daemon for that", what)};
}

/// A file that a feed goes on with where the one before it has ended.
struct OwnFile {
  const char* what;
  const char* goes_on;
  std::filesystem::path (*of)(const FeedSettings&);
};

constexpr std::array kOwnFiles{
    OwnFile{"journal", "its queue goes on in",
            [](const FeedSettings& feed) { return feed.journal; }},
    OwnFile{"record", "its steps are recorded in", [](const FeedSettings& feed) {
              return feed.live ? feed.live->record : std::filesystem::path();
            }}};

/// A running feed has its files open, and no moment is free of what it writes. One that has failed
/// has closed them. `keys`: what changes of a feed that runs already.
Result<void> check_file(const OwnFile& file, const ReloadRequest& request,
                        const FeedSettings& wanted, const std::string& keys) {
  const std::filesystem::path path = file.of(wanted);
  if (path.empty()) return {};
  for (const FeedConfig& feed : request.running.feeds) {
    const FeedSettings& runs = feed.served;
    if (file.of(runs) != path || request.failed.contains(runs.name)) continue;
    if (runs.name == wanted.name) {
      return needs_restart(
          fmt::format("{} cannot change while {} {}", keys, file.goes_on, path.string()));
    }
    return Error{ErrorCode::busy,
                 fmt::format("{} {} is written by feed {}; remove it there in one reload, and "
                             "have it here from the next on",
                             file.what, path.string(), runs.name)};
  }
  return {};
}

Result<void> check_files(const ReloadRequest& request, const FeedSettings& wanted,
                         const std::string& keys) {
  for (const OwnFile& file : kOwnFiles) {
    if (auto free = check_file(file, request, wanted, keys); !free) return free;
  }
  return {};
}

constexpr std::string_view kHolders = "; feeds hold: ";

bool lacks_memory(const Error& error) {
  return error.code == ErrorCode::does_not_fit || error.message.find(kHolders) != std::string::npos;
}

/// Prepares one configuration.
class Preparation {
 public:
  Preparation(const ReloadRequest& request, Catalog& catalog, PreparedConfig& ready)
      : request_(request), catalog_(catalog), ready_(ready) {}

  Result<void> add(const std::string& name) {
    auto free = check_files(request_, find_feed(ready_.config, name)->served, {});
    if (!free) return in_feed(name, free.error());
    // No client is to be told why: the feed replaces none.
    const auto made = make(name, {});
    return made ? made : in_feed(name, made.error());
  }

  /// What is gone is served on: there is nothing to open.
  void compare_data() {
    for (const auto& [name, found] : request_.standing) {
      const FeedConfig* before = find_feed(request_.running, name);
      const FeedConfig* after = find_feed(ready_.config, name);
      if (before == nullptr || after == nullptr || before->dataset != after->dataset) continue;
      if (found.standing >= DataStanding::replaced) ready_.stale.emplace(name, found.why);
    }
  }

  Result<void> change(const FeedChange& change) {
    // Reloader::take_up() adjusts it; there is nothing to prepare.
    if (change.in_place || ready_.stale.contains(change.name)) return {};
    auto free = check_files(request_, find_feed(ready_.config, change.name)->served, change.keys);
    if (!free) return in_feed(change.name, free.error());
    const auto made =
        make(change.name, fmt::format("feed {} has changed: {}", change.name, change.keys));
    return made ? made : in_feed(change.name, made.error());
  }

  /// What has failed and has the same batches as before may have been mended from outside. If it
  /// has not, it stays as it is, and the rest is taken up.
  void mend(const std::string& name) {
    const auto& changed = ready_.changes.changed;
    // Failed, and not in the new file: it is removed.
    if (find_feed(ready_.config, name) == nullptr || ready_.stale.contains(name)) return;
    // change() has made it again.
    if (std::any_of(changed.begin(), changed.end(), [&name](const FeedChange& change) {
          return change.name == name && !change.in_place;
        })) {
      return;
    }
    const auto made = make(name, fmt::format("feed {} had failed, and is opened anew", name));
    if (made) {
      ready_.mended.push_back(name);
    } else {
      ready_.still_failed.emplace(name, made.error());
    }
  }

 private:
  Result<void> make(const std::string& name, std::string why) {
    auto feed =
        prepare_one(*find_feed(ready_.config, name), {request_.memory, request_.stop}, catalog_);
    if (!feed) {
      Error error = feed.error();
      // The old arena is freed when the new one is taken up, so for a while both count.
      const bool replaces =
          find_feed(request_.running, name) != nullptr && !request_.failed.contains(name);
      if (replaces && lacks_memory(error)) {
        error.message += "; the arena that it replaces counts until then";
      }
      return error;
    }
    feed->why = std::move(why);
    ready_.feeds.push_back(std::move(*feed));
    return {};
  }

  const ReloadRequest& request_;
  Catalog& catalog_;
  PreparedConfig& ready_;
};

Result<void> prepare_access(PreparedConfig& ready) {
  auto allowed = allow_list(ready.config.daemon);
  if (!allowed) return allowed.error();
  ready.allowed = std::move(*allowed);
  const DaemonConfig& daemon = ready.config.daemon;
  // Read again at each reload, for a client's key is added to the file and not to the
  // configuration.
  auto keys = load_server_keys(daemon.curve_secret_key_file, daemon.authorized_keys_file);
  if (!keys) return keys.error();
  ready.authorized = std::move(keys->authorized);
  return {};
}

Result<PreparedConfig> prepare_all(const ReloadRequest& request, Catalog& catalog) {
  if (is_read_once(request.source.file)) {
    return needs_restart(fmt::format("{} is no file, and was read when the daemon started",
                                     request.source.file.string()));
  }
  auto config = load_config(request.source);
  if (!config) return config.error();
  PreparedConfig ready;
  ready.changes = compare_configs(request.running, *config);
  ready.config = std::move(*config);
  const ConfigChanges& changes = ready.changes;
  // Asked first: all that follows is slow.
  if (!changes.need_restart.empty()) {
    return needs_restart(fmt::format("{} cannot change while the daemon runs",
                                     fmt::join(changes.need_restart, ", ")));
  }
  if (changes.added.size() > request.numbers_left) {
    return needs_restart("more than 65535 feeds were served");
  }
  if (auto access = prepare_access(ready); !access) return access.error();
  Preparation preparation(request, catalog, ready);
  preparation.compare_data();
  for (const std::string& name : changes.added) {
    if (auto added = preparation.add(name); !added) return added.error();
  }
  for (const FeedChange& change : changes.changed) {
    if (auto changed = preparation.change(change); !changed) return changed.error();
  }
  // Last, with the memory that is left: these are the ones whose failure refuses nothing.
  for (const std::string& name : request.failed) preparation.mend(name);
  return ready;
}

/// Memory that would do if no other feed held any of it comes free with those.
Error with_holders(const Error& error, std::uint64_t needed, const MemoryBudget& memory) {
  if (error.code != ErrorCode::does_not_fit) return error;
  std::uint64_t all = memory.left();
  std::vector<std::string> holders;
  for (const auto& [feed, bytes] : memory.held()) {
    all += bytes;
    holders.push_back(fmt::format("{} {}", feed, in_mib(bytes)));
  }
  if (holders.empty()) return error;
  return {needed <= all ? ErrorCode::busy : error.code,
          fmt::format("{}{}{}", error.message, kHolders, fmt::join(holders, ", "))};
}

/// Claims what the arena and making the rows take, as it was found to fit.
Result<void> claim(const FittingData& data, const FeedPreparation& with, MemoryClaim& arena,
                   FeedData& resources) {
  const std::string& name = data.settings.name;
  const std::uint64_t bytes = data.needs.arena_bytes();
  const std::uint64_t making = data.needs.making_bytes;
  arena = claim_memory(with.memory, bytes, name);
  if (making != 0) resources.making.push_back(claim_memory(with.memory, making, name));
  if (arena && (making == 0 || resources.making.back())) return {};
  return Error{
      ErrorCode::does_not_fit,
      fmt::format("its arena of {} no longer fits, another feed took the memory", in_mib(bytes))};
}

/// Ends a feed's turn to claim memory, whatever becomes of it.
class Turn {
 public:
  explicit Turn(const FeedPreparation& with) : with_(with) {}
  ~Turn() { end(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  void await() const {
    if (with_.turns != nullptr) with_.turns->await(with_.place, with_.stop);
  }
  void end() {
    if (with_.turns != nullptr && !std::exchange(ended_, true)) with_.turns->leave(with_.place);
  }
  /// A row cache takes what the arenas of all feeds leave.
  void await_others() const {
    if (with_.turns != nullptr) with_.turns->await_others(with_.place, with_.stop);
  }

 private:
  const FeedPreparation& with_;
  bool ended_ = false;
};

/// Claims what the feed needs, and has `make` reserve it.
Result<PreparedFeed> reserve(FittingData& data, const FeedPreparation& with, Turn& turn,
                             std::uint64_t needed,
                             const std::function<Result<FeedResources>(FittingData&)>& make) {
  MemoryClaim arena;
  FeedData claimed;
  const auto has_memory = claim(data, with, arena, claimed);
  turn.end();
  if (!has_memory) return with_holders(has_memory.error(), needed, *with.memory);
  auto resources = make(data);
  if (!resources) return resources.error();
  resources->data.making = std::move(claimed.making);
  // Huge pages may take more than was asked for.
  const std::uint64_t more = resources->arena->bytes() - bytes_of(arena);
  auto rest = claim_memory(with.memory, more, data.settings.name);
  if (!rest) {
    return with_holders(
        {ErrorCode::does_not_fit,
         fmt::format("its arena of {} does not fit, the memory ceiling leaves {}",
                     in_mib(resources->arena->bytes()), in_mib(with.memory->left()))},
        needed, *with.memory);
  }
  arena.get_deleter().bytes += std::exchange(rest.get_deleter().bytes, 0);
  return PreparedFeed{std::move(data.settings), std::move(*resources), std::move(arena), {}};
}

/// It has no dataset: only memory is to be had.
Result<PreparedFeed> prepare_live(const FeedConfig& feed, const FeedPreparation& with, Turn& turn) {
  FittingData data;
  data.settings = feed.served;
  auto needs = live_feed_needs(data.settings);
  if (!needs) return needs.error();
  data.needs = *needs;
  turn.await();
  const std::uint64_t needed = data.needs.bytes();
  if (auto fits = choose_slots(data.settings, with.memory->left(), data.needs); !fits) {
    return with_holders(fits.error(), needed, *with.memory);
  }
  return reserve(data, with, turn, needed, [&with](FittingData& of) {
    return make_live_resources(of.settings, of.needs, with.stop);
  });
}

Result<PreparedFeed> prepare(const FeedConfig& feed, const FeedPreparation& with,
                             Catalog& catalog) {
  Turn turn(with);
  if (with.stop.stop_requested()) return Error{ErrorCode::disconnected, "the daemon ends"};
  if (feed.served.live) return prepare_live(feed, with, turn);
  auto dataset = catalog.open(feed.dataset, feed.verify, feed.lock, Holding::checksums);
  if (!dataset) return dataset.error();
  std::uint64_t needed = 0;
  const auto left = [&](std::uint64_t bytes) {
    needed = bytes;
    turn.await();
    return with.memory->left();
  };
  auto data = find_fitting_data(**dataset, feed.served, catalog, left, with.stop);
  if (!data) return with_holders(data.error(), needed, *with.memory);
  auto made = reserve(*data, with, turn, needed, [&](FittingData& of) {
    return make_resources(std::move(*dataset), std::move(of.first), of.settings, of.needs,
                          with.stop);
  });
  if (!made) return made;
  FeedData& resources = made->resources.data;
  resources.why_not_newer = std::move(data->why_not_newer);
  if (has_row_cache(made->settings)) turn.await_others();
  claim_row_cache(made->settings, with.memory, resources);
  return made;
}

}  // namespace

Result<PreparedFeed> prepare_one(const FeedConfig& feed, const FeedPreparation& with,
                                 Catalog& catalog) {
  // Lack of memory, most likely, which may pass: busy has the feed tried again.
  return as_result(ErrorCode::busy, "opening it: ", [&] { return prepare(feed, with, catalog); });
}

Result<PreparedConfig> prepare_reload(const ReloadRequest& request, Catalog& catalog) {
  return as_result(ErrorCode::internal, "reload: ", [&] { return prepare_all(request, catalog); });
}

}  // namespace batchwright
