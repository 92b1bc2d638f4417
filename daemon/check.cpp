#include "daemon/check.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "daemon/account_ids.h"
#include "daemon/command_line.h"
#include "daemon/reload/room_settings.h"
#include "formats/formats.h"

namespace batchwright {
namespace {

using Grade = Finding::Grade;
namespace fs = std::filesystem;

/// What the keys of a live feed come to.
std::string about_live(const LiveFeedSettings& live) {
  const LiveSettings& pool = live.pool;
  std::string fields;
  for (const FieldSpec& field : live.schema.fields) {
    fields += (fields.empty() ? "" : ", ") + field.name;
  }
  return fmt::format(
      "a live feed of {}, {} frames a sequence; steps of {} {} in {} batch{}; its pool holds "
      "up to {} sequences and {:.0f} MiB",
      fields, pool.max_length == 0 ? "any number of" : fmt::format("up to {}", pool.max_length),
      pool.step, word_of(kStepUnits, pool.step_unit), pool.world, pool.world == 1 ? "" : "es",
      pool.pool_sequences, static_cast<double>(pool.pool_bytes) / (1 << 20));
}

/// Collects what is found.
class Inspection {
 public:
  Inspection(const Config& config, bool for_run)
      : config_(config), for_run_(for_run), memory_left_(config.daemon.memory_bytes) {}

  std::vector<Finding> run() {
    examine_access();
    examine_sockets();
    for (const FeedConfig& feed : config_.feeds) examine(feed);
    if (::geteuid() == 0 && !for_run_ && !found_.empty() && is_of_service()) {
      add(Grade::note,
          "checked as root; the service runs as a user of its own: runuser -u "
          "batchwright -- batchwrightd --config FILE --check-config");
    }
    return std::move(found_);
  }

 private:
  void add(Grade grade, std::string text) { found_.push_back({grade, std::move(text)}); }

  /// Whether sockets or datasets are in the folders that the packages have for the service.
  bool is_of_service() const {
    const auto is_its = [](const std::string& path) {
      return path.starts_with("/run/batchwright/") || path.starts_with("/var/lib/batchwright/");
    };
    const auto& endpoints = config_.daemon.endpoints;
    if (std::any_of(endpoints.begin(), endpoints.end(), [&](const std::string& endpoint) {
          return endpoint.starts_with(kIpc) && is_its(endpoint.substr(kIpc.size()));
        })) {
      return true;
    }
    return std::any_of(config_.feeds.begin(), config_.feeds.end(), [&](const FeedConfig& feed) {
      return std::any_of(feed.dataset.begin(), feed.dataset.end(),
                         [&](const fs::path& path) { return is_its(path.string()); });
    });
  }

  void examine_access() {
    // Users, groups and key files: the start asks for the same.
    const auto settings = server_settings(config_.daemon);
    if (!settings) return add(Grade::error, settings.error().message);
    if (!settings->access.gid || ::geteuid() == 0 || is_member_of(*settings->access.gid)) return;
    add(Grade::warning,
        fmt::format("daemon.socket_group: uid {} is not in group {}, so it cannot give the sockets "
                    "to that; add SupplementaryGroups={} to the unit",
                    ::geteuid(), config_.daemon.socket_group, config_.daemon.socket_group));
  }

  static bool is_member_of(gid_t group) {
    // With no room for a list, getgroups() returns the number of groups alone.
    std::vector<gid_t> groups(static_cast<std::size_t>(std::max(::getgroups(0, nullptr), 0)));
    const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
    groups.resize(static_cast<std::size_t>(std::max(count, 0)));
    // Whether the list includes the effective group is left open by getgroups(2).
    groups.push_back(::getegid());
    return std::find(groups.begin(), groups.end(), group) != groups.end();
  }

  void examine_sockets() {
    const bool gets_folder = for_run_ && config_.daemon.endpoints == DaemonConfig().endpoints;
    for (const std::string& endpoint : config_.daemon.endpoints) {
      if (!gets_folder && endpoint.starts_with(kIpc))
        examine_folder("daemon.endpoints", endpoint.substr(kIpc.size()));
    }
    for (const std::string& address : config_.daemon.stats) {
      if (address.starts_with(kUnix)) examine_folder("daemon.stats", address.substr(kUnix.size()));
    }
  }

  /// Checks the folder of a socket, without which the daemon ends.
  void examine_folder(const std::string& key, const std::string& path) {
    const auto folder = check_socket_folder(path);
    if (!folder) add(Grade::error, fmt::format("{}: {}", key, folder.error().message));
  }

  void examine(const FeedConfig& feed) {
    // What is found from here on is this feed's, and gets its name below.
    const std::size_t before = found_.size();
    if (feed.served.live) {
      // There is nothing to open: what it is, so that a person sees what the keys come to.
      add(Grade::note, about_live(*feed.served.live));
    } else if (auto served = examine_data(feed); !served) {
      // The daemon starts and serves its other feeds.
      add(Grade::warning, served.error().message);
    }
    const fs::path record = feed.served.live ? feed.served.live->record : fs::path();
    const fs::path spool = feed.served.live ? feed.served.live->spool : fs::path();
    for (const auto& [key, file] :
         {std::pair("journal", feed.served.journal), std::pair("ledger", feed.served.ledger),
          std::pair("live.record", record), std::pair("live.spool", spool),
          std::pair("live.record", record.empty() ? record : order_file_of(record))}) {
      if (auto writable = check_file(file); !writable) {
        add(Grade::warning, fmt::format("{}: {}", key, writable.error().message));
      }
    }
    for (std::size_t i = before; i < found_.size(); ++i) {
      found_[i].text = fmt::format("feed {}: {}", feed.served.name, found_[i].text);
    }
  }

  Result<void> examine_data(const FeedConfig& feed) {
    // No record is read here, whatever the feed's `verify` is: damage is for `batchwright verify`.
    auto dataset = catalog_.open(feed.dataset, VerifyRecords::never, feed.lock);
    if (!dataset) return dataset.error();
    if (const std::string lock = lock_warning(**dataset); !lock.empty()) add(Grade::warning, lock);
    // The ceiling goes to feeds in the order of the file, as it does at the start.
    const auto data = find_fitting_data(**dataset, feed.served, catalog_,
                                        [this](std::uint64_t) { return memory_left_; });
    if (!data) return data.error();
    if (!data->why_not_newer.empty()) {
      add(Grade::warning,
          fmt::format("it begins with its first {} sequences: {}",
                      data->first.source->snapshot->sequences(), data->why_not_newer));
    }
    const FeedNeeds& needs = data->needs;
    const std::string few = about_slots(feed.served, needs.slots);
    if (!few.empty()) add(Grade::note, few);
    memory_left_ -= needs.bytes();
    const auto room = check_room(needs.slots, needs.slot_bytes, memory_room());
    if (room) return {};
    // A daemon that runs has the very memory that its successor will have.
    if (is_transient(room.error().code)) {
      add(Grade::note, room.error().message);
      return {};
    }
    return room.error();
  }

  static Result<void> check_file(const fs::path& file) {
    if (file.empty()) return {};
    std::error_code ignored;
    const fs::path folder = file.parent_path().empty() ? fs::path(".") : file.parent_path();
    if (!fs::is_directory(folder, ignored)) {
      return Error{ErrorCode::io_error,
                   fmt::format("the folder {} does not exist", folder.string())};
    }
    // A file that is not there yet is created, which takes a writable folder.
    const fs::path& needed = fs::exists(file, ignored) ? file : folder;
    if (::access(needed.c_str(), R_OK | W_OK) == 0) return {};
    return Error{ErrorCode::io_error,
                 fmt::format("{} is not writable for uid {}", needed.string(), ::geteuid())};
  }

  const Config& config_;
  const bool for_run_;
  std::uint64_t memory_left_;
  Catalog catalog_;
  std::vector<Finding> found_;
};

}  // namespace

std::vector<Finding> examine(const Config& config, bool for_run) {
  return Inspection(config, for_run).run();
}

const char* name_of(Finding::Grade grade) {
  switch (grade) {
    case Grade::note: return "note";
    case Grade::warning: return "warning";
    case Grade::error: return "error";
  }
  return "error";
}

int exit_code(const std::vector<Finding>& findings) {
  int code = kDone;
  for (const Finding& each : findings) {
    if (each.grade == Grade::error) return kWrongInput;
    if (each.grade == Grade::warning) code = kFailed;
  }
  return code;
}

}  // namespace batchwright
