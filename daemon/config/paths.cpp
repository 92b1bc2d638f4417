#include "daemon/config/paths.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <string>
#include <system_error>
#include <utility>

namespace batchwright {

namespace fs = std::filesystem;

fs::path resolved(const fs::path& path) {
  constexpr int kMostLinks = 40;  // as the kernel
  std::error_code failed;
  fs::path way = path;
  for (int i = 0; i < kMostLinks; ++i) {
    const fs::path absolute = fs::absolute(way, failed);
    if (failed) return way;
    const fs::path found = fs::weakly_canonical(absolute, failed);
    // Where a folder cannot be searched the path is as good as it is.
    if (failed) return absolute.lexically_normal();
    // A link to what is not there yet is what weakly_canonical() leaves.
    const fs::path target = fs::read_symlink(found, failed);
    if (failed) return found;
    way = found.parent_path() / target;
  }
  return way;
}

std::vector<fs::path> named_paths(const Config& config) {
  std::vector<fs::path> paths;
  const auto add = [&paths](const fs::path& path) {
    if (!path.empty()) paths.push_back(path);
  };
  add(config.daemon.curve_secret_key_file);
  add(config.daemon.authorized_keys_file);
  for (const FeedConfig& feed : config.feeds) {
    for (const fs::path& shard : feed.dataset) add(shard);
    add(feed.served.journal);
    add(feed.served.ledger);
    if (feed.served.live) add(feed.served.live->record);
    if (feed.served.live) add(feed.served.live->spool);
    add(feed.served.plan.order_file);
    add(feed.served.features.normalise.statistics);
    for (const StyleSettings& style : feed.served.features.styles) {
      for (const fs::path& noise : style.noise) add(noise);
      for (const fs::path& room : style.rooms) add(room);
    }
  }
  return paths;
}

namespace {

/// What has a path, in words.
using Owners = std::map<fs::path, std::string>;

/// Resolves a path that a feed alone may have.
Result<void> resolve_own(const std::string& feed, const char* key, fs::path& path, Owners& owners) {
  if (path.empty()) return {};
  const fs::path named = std::exchange(path, resolved(path));
  const auto [owner, is_new] = owners.emplace(path, fmt::format("the {} of feed {}", key, feed));
  if (is_new) return {};
  return Error{ErrorCode::bad_configuration,
               fmt::format("feed {}: {}: found {}, which is {}, {}; allowed: one that no other "
                           "feed has",
                           feed, key, named.string(), path.string(), owner->second)};
}

bool has_folder(const FeedConfig& feed) {
  return feed.served.live && !(feed.served.live->record.empty() && feed.served.live->spool.empty());
}

}  // namespace

Result<void> resolve_written(Config& config) {
  Owners journals;
  Owners folders;  // datasets, records and spools
  // Their file systems are asked only where that matters: one may not answer.
  if (std::any_of(config.feeds.begin(), config.feeds.end(), has_folder)) {
    for (const FeedConfig& feed : config.feeds) {
      for (const fs::path& shard : feed.dataset) {
        folders.emplace(resolved(shard), fmt::format("the dataset of feed {}", feed.served.name));
      }
    }
  }
  for (FeedConfig& feed : config.feeds) {
    const std::string& name = feed.served.name;
    auto own = resolve_own(name, "journal", feed.served.journal, journals);
    if (own && feed.served.live) {
      own = resolve_own(name, "live.record", feed.served.live->record, folders);
    }
    if (own && feed.served.live) {
      own = resolve_own(name, "live.spool", feed.served.live->spool, folders);
    }
    if (!own) return own;
  }
  return {};
}

void note_order_files(Config& config) {
  for (FeedConfig& feed : config.feeds) {
    const std::string& file = feed.served.plan.order_file;
    struct stat status {};
    if (file.empty() || ::stat(file.c_str(), &status) != 0) continue;
    feed.order_file_state =
        fmt::format("{} {} {} {}.{:09}", status.st_dev, status.st_ino, status.st_size,
                    status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
  }
}

}  // namespace batchwright
