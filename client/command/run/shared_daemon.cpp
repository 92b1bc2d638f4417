#include "client/command/run/shared_daemon.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "client/command/run/child.h"
#include "client/library/batchwright/client.h"

namespace batchwright {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto kBetweenStarts = std::chrono::seconds(1);
constexpr auto kForTheMark = std::chrono::milliseconds(5);
constexpr auto kForTheLastOne = std::chrono::seconds(10);  // to end
constexpr std::int32_t kAnswerMs = 250;                    // for which one look waits
constexpr std::size_t kMostSocketBytes = 100;

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// A folder that is this user's alone. Errors: io_error.
Result<void> make_private(const fs::path& folder) {
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    return Error{ErrorCode::io_error,
                 fmt::format("{}: mkdir: {}", folder.string(), std::strerror(errno))};
  }
  struct stat there = {};
  // In /tmp anyone may have made it, or a link in its place.
  const bool own = ::lstat(folder.c_str(), &there) == 0 && S_ISDIR(there.st_mode) &&
                   there.st_uid == ::geteuid() && (there.st_mode & (S_IRWXG | S_IRWXO)) == 0;
  if (own) return {};
  return Error{
      ErrorCode::io_error,
      fmt::format("{}: it is not a folder of this user alone (mode 0700)", folder.string())};
}

/// $XDG_RUNTIME_DIR, or a folder in /tmp that the job's end need not outlive.
fs::path private_folder(std::uint64_t content) {
  const std::string job = environment("SLURM_JOB_ID");
  const std::string name =
      fmt::format("batchwright-{}{}{:08x}", job, job.empty() ? "" : "-", content >> 32);
  const fs::path runtime = environment("XDG_RUNTIME_DIR");
  std::error_code ignored;  // systemd removes it with the user's last session
  if (!runtime.empty() && fs::is_directory(runtime, ignored)) return runtime / name;
  return fmt::format("/tmp/{}-{}", name, ::geteuid());
}

Error bad_place(const fs::path& file, std::string what) {
  return {ErrorCode::bad_configuration, fmt::format("{}: {}", file.string(), what)};
}

std::string feeds_of(const bw_connection* connection) {
  std::string names;
  for (std::size_t i = 0; i < bw_feed_count(connection); ++i) {
    names += fmt::format("{}{}", names.empty() ? "" : " ", bw_feed_at(connection, i)->name);
  }
  return names;
}

bool has_feed(const bw_connection* connection, const std::string& name) {
  for (std::size_t i = 0; i < bw_feed_count(connection); ++i) {
    if (bw_feed_at(connection, i)->name == name) return true;
  }
  // One that cannot be served for now is waited for by whoever subscribes to it.
  for (std::size_t i = 0; i < bw_absent_feed_count(connection); ++i) {
    if (bw_absent_feed_at(connection, i)->name == name) return true;
  }
  return false;
}

/// Whether a program listens at the endpoint, and the feeds that it lacks.
struct Answer {
  bool came = false;
  std::string lacks;
  std::string has;
};

Result<Answer> ask(const DaemonPlace& place) {
  bw_connect_options options = BW_CONNECT_OPTIONS_INIT;
  options.timeout_ms = kAnswerMs;
  options.program = "batchwright run";
  bw_connection* connection = nullptr;
  const bw_status status = bw_connect(place.endpoint.c_str(), &options, &connection);
  if (status == BW_TIMED_OUT) return Answer{};
  if (status != BW_OK) {
    return Error{static_cast<ErrorCode>(status), bw_error_message()};
  }
  Answer answer{true, {}, feeds_of(connection)};
  for (const std::string& feed : place.feeds) {
    if (!has_feed(connection, feed) && answer.lacks.empty()) answer.lacks = feed;
  }
  bw_close(connection);
  return answer;
}

}  // namespace

Result<DaemonPlace> place_daemon(const fs::path& file) {
  auto config = load_config(file);
  if (!config) return config.error();
  DaemonPlace place{{file, {}}, {}, {}, fnv1a(kFnv1aBasis, read_small_file(file)), {}};
  for (const FeedConfig& feed : config->feeds) place.feeds.push_back(feed.served.name);
  const std::vector<std::string>& given = config->daemon.endpoints;
  if (given == DaemonConfig().endpoints) {
    place.source.folder = private_folder(place.content);
    if (auto made = make_private(place.source.folder); !made) return made.error();
    place_sockets(config->daemon, place.source.folder);
    place.endpoint = given.front();
    place.locks = place.source.folder / "run";
  } else {
    const auto local = std::find_if(given.begin(), given.end(),
                                    [](const std::string& each) { return each.starts_with(kIpc); });
    if (local == given.end()) {
      return bad_place(file, fmt::format("daemon.endpoints: found {}; run needs one that begins "
                                         "with {}, or none, for one of its own",
                                         fmt::join(given, ", "), kIpc));
    }
    place.endpoint = *local;
    place.locks = local->substr(kIpc.size());
  }
  if (place.endpoint.size() - kIpc.size() > kMostSocketBytes) {
    return bad_place(file, fmt::format("{}: more than the {} bytes that a socket's path may have; "
                                       "name one in daemon.endpoints",
                                       place.endpoint, kMostSocketBytes));
  }
  return place;
}

Result<SharedDaemon> SharedDaemon::join(DaemonPlace place, std::string program) {
  SharedDaemon joined(std::move(place), std::move(program));
  auto user = FileLock::take(joined.users_file(), FileLock::Kind::shared, true);
  if (!user) return user.error();
  joined.user_ = *std::move(user);
  std::string theirs;
  // One that has just become the owner has not said yet of what.
  for (; theirs.empty(); std::this_thread::sleep_for(kForTheMark)) {
    if (auto tried = joined.try_to_own(); !tried) return tried.error();
    if (joined.owner_) return joined;
    theirs = read_small_file(joined.owner_file());
  }
  if (const std::string mine = joined.mark(); theirs != mine) {
    return Error{ErrorCode::already_exists,
                 fmt::format("a daemon of another configuration runs at {} (text {}, here {}); "
                             "allowed: the same text, or another endpoint",
                             joined.place_.endpoint, theirs, mine)};
  }
  return joined;
}

std::string SharedDaemon::mark() const { return fmt::format("{:016x}", place_.content); }

Result<void> SharedDaemon::try_to_own() {
  auto owner = FileLock::take(owner_file(), FileLock::Kind::exclusive, false);
  if (!owner) return owner.error();
  if (!*owner) return {};
  owner_ = *std::move(owner);
  // An owner that ends in order removes the file. The daemon of one that was killed ends, too.
  if (!read_small_file(owner_file()).empty()) took_over_ = Clock::now();
  return owner_->write(mark());
}

Result<void> SharedDaemon::tend() {
  if (foreign_) return {};
  if (!owner_) {
    if (auto tried = try_to_own(); !tried) return tried;
    if (!owner_) return {};
  }
  if (child_ || (started_ != Clock::time_point() && Clock::now() - started_ < kBetweenStarts)) {
    return {};
  }
  return start();
}

Result<void> SharedDaemon::start() {
  // The system's service, or one that was started by hand, is as good.
  if (place_.source.folder.empty() && !took_over_ && started_ == Clock::time_point()) {
    const auto answer = ask(place_);
    if (!answer) return answer.error();
    if (answer->came) {
      foreign_ = true;
      owner_->remove();
      owner_.reset();
      return {};
    }
  }
  started_ = Clock::now();
  ChildOptions daemon;
  daemon.words = {program_, "--config", place_.source.file.string()};
  if (!place_.source.folder.empty()) {
    daemon.words.insert(daemon.words.end(), {"--folder", place_.source.folder.string()});
  }
  // The terminal's Ctrl-C is for the command; the daemon ends when that has ended.
  daemon.own_group = true;
  const auto child = start_child(daemon);
  if (!child) return child.error();
  child_ = *child;
  return {};
}

Result<void> SharedDaemon::ended(int status) {
  child_.reset();
  const int code = code_of_end(status);
  // One that follows a daemon which is just ending may find its socket in use.
  const bool may_recover =
      was_ready_ || (took_over_ && Clock::now() - *took_over_ < kForTheLastOne);
  if (may_recover && code != kWrongInput) return {};
  return Error{ErrorCode::bad_configuration,
               fmt::format("{} ended with {} and serves nothing", program_, code)};
}

Result<bool> SharedDaemon::ready() {
  const auto answer = ask(place_);
  if (!answer) return answer.error();
  if (!answer->came) return false;
  if (foreign_ && !answer->lacks.empty()) {
    return Error{ErrorCode::not_found,
                 fmt::format("the daemon at {} has no feed \"{}\"; it has: {}", place_.endpoint,
                             answer->lacks, answer->has)};
  }
  was_ready_ = true;
  return true;
}

Result<bool> SharedDaemon::leave() {
  user_.reset();
  if (!owner_ && !foreign_) return false;
  auto last = FileLock::take(users_file(), FileLock::Kind::exclusive, false);
  if (!last) return last.error();
  user_ = *std::move(last);
  return owner_ && !user_;
}

void SharedDaemon::remove_files() {
  // Exclusive by now, or another's. Who is between opening one and locking it sees that it is gone.
  if (!user_) return;
  if (owner_) owner_->remove();
  user_->remove();
}

}  // namespace batchwright
