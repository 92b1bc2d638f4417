#include "daemon/config/paths.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <map>
#include <string>
#include <system_error>

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
    add(feed.served.plan.order_file);
    add(feed.served.features.normalise.statistics);
    for (const StyleSettings& style : feed.served.features.styles) {
      for (const fs::path& noise : style.noise) add(noise);
      for (const fs::path& room : style.rooms) add(room);
    }
  }
  return paths;
}

Result<void> resolve_journals(Config& config) {
  std::map<fs::path, std::string> owners;
  for (FeedConfig& feed : config.feeds) {
    fs::path& journal = feed.served.journal;
    if (journal.empty()) continue;
    const fs::path named = journal;
    journal = resolved(named);
    const auto [owner, is_new] = owners.emplace(journal, feed.served.name);
    if (is_new) continue;
    return Error{ErrorCode::bad_configuration,
                 fmt::format("feed {}: journal: found {}, which is {}, the journal of feed {}; "
                             "allowed: one that no other feed has",
                             feed.served.name, named.string(), journal.string(), owner->second)};
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
