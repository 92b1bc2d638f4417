#include "client/command/run/shared_daemon.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "client/command/run/child.h"
#include "client/library/batchwright/client.h"

namespace batchwright {
namespace {

namespace fs = std::filesystem;

constexpr auto kBetweenStarts = std::chrono::seconds(1);
constexpr auto kForTheLastOne = std::chrono::seconds(10);  // to end
constexpr int kMostKilled = 5;                             // starts; the next one fares no better
constexpr std::int32_t kAnswerMs = 250;                    // for which one look waits

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
  // One that cannot be served for now is waited for by each subscription to it.
  for (std::size_t i = 0; i < bw_absent_feed_count(connection); ++i) {
    if (bw_absent_feed_at(connection, i)->name == name) return true;
  }
  return false;
}

/// The configured feeds that are not served now, each with the daemon's reason.
std::string absent_of(const bw_connection* connection, const std::vector<std::string>& configured) {
  std::string lines;
  for (std::size_t i = 0; i < bw_absent_feed_count(connection); ++i) {
    const bw_absent_feed& feed = *bw_absent_feed_at(connection, i);
    if (std::find(configured.begin(), configured.end(), feed.name) == configured.end()) continue;
    lines += fmt::format("{}feed \"{}\" is not served: {}", lines.empty() ? "" : "; ", feed.name,
                         feed.reason);
  }
  return lines;
}

/// Whether a program listens at the endpoint, and the feeds that it lacks.
struct Answer {
  bool came = false;
  std::string lacks;
  std::string has;
  std::string absent;
};

Result<Answer> ask(const DaemonPlace& place) {
  // Before a word is said to it: both sockets are to be of the same kind of user.
  for (const std::string& socket : {place.socket(), place.socket() + std::string(kArenaSuffix)}) {
    const auto believed = check_listener(socket);
    if (!believed) return believed.error();
    if (!*believed) return Answer{};
  }
  bw_connect_options options = BW_CONNECT_OPTIONS_INIT;
  options.timeout_ms = kAnswerMs;
  options.program = "batchwright run";
  bw_connection* connection = nullptr;
  const bw_status status = bw_connect(place.endpoint.c_str(), &options, &connection);
  if (status == BW_TIMED_OUT) return Answer{};
  if (status != BW_OK) {
    return Error{static_cast<ErrorCode>(status), bw_error_message()};
  }
  Answer answer{true, {}, feeds_of(connection), absent_of(connection, place.feeds)};
  for (const std::string& feed : place.feeds) {
    if (!has_feed(connection, feed) && answer.lacks.empty()) answer.lacks = feed;
  }
  bw_close(connection);
  return answer;
}

bool is_socket(const std::string& path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode);
}

}  // namespace

/// False where an owner leaves at this moment, and keeps everyone out until its daemon has ended.
Result<bool> SharedDaemon::take_user() {
  if (user_ && user_->is_there()) return true;
  user_.reset();
  owner_.reset();
  if (!place_.source.folder.empty()) {
    if (auto made = make_private(place_.source.folder); !made) return made.error();
  }
  auto user = FileLock::take(users_file(), FileLock::Kind::shared);
  // The last user of the folder may have removed it between the two calls.
  const bool gone = !user && user.error().code == ErrorCode::not_found;
  if (gone && !place_.source.folder.empty()) return false;
  if (!user) return user.error();
  user_ = *std::move(user);
  return user_.has_value();
}

Result<bool> SharedDaemon::join() {
  const auto user = take_user();
  if (!user || !*user) return user;
  if (auto tried = try_to_own(); !tried) return tried.error();
  if (owner_) return true;
  const std::string theirs = file_text(owner_file()).value_or("");
  // One that has just become the owner has not said yet of what.
  if (theirs.empty()) return false;
  if (const std::string mine = mark(); theirs != mine) {
    return Error{ErrorCode::already_exists,
                 fmt::format("a daemon of another configuration runs at {} (text and paths {}, "
                             "here {}); allowed: the same text and data, or another endpoint",
                             place_.endpoint, theirs, mine)};
  }
  return true;
}

std::string SharedDaemon::mark() const { return fmt::format("{:016x}", place_.content); }

Result<void> SharedDaemon::try_to_own() {
  auto owner = FileLock::take(owner_file(), FileLock::Kind::exclusive);
  if (!owner) return owner.error();
  if (!*owner) return {};
  owner_ = *std::move(owner);
  // An owner that ends in order removes the file. The daemon of one that was killed ends, too.
  if (!file_text(owner_file()).value_or("").empty()) took_over_ = Clock::now();
  return owner_->write(mark());
}

Result<void> SharedDaemon::tend() {
  if (foreign_) return {};
  if (!left_ && (!user_ || !user_->is_there() || !owner_)) {
    // The folder may have gone, as one that ends with a login does.
    if (const auto joined = join(); !joined) return joined.error();
  }
  if (!owner_) {
    // Another became the owner where the folder was made again, and starts a daemon of its own.
    if (child_) ::kill(*child_, SIGTERM);
    return {};
  }
  look_at_sockets();
  if (child_ || (started_ != Clock::time_point() && Clock::now() - started_ < kBetweenStarts)) {
    return {};
  }
  return start();
}

/// A daemon whose sockets have gone serves those that it has, and no others: it is started again.
void SharedDaemon::look_at_sockets() {
  if (!child_) return;
  const bool there = is_socket(place_.socket());
  if (listens_ && !there) ::kill(*child_, SIGTERM);
  listens_ = there;
}

/// For a daemon that cannot read the configuration as it was given.
Result<void> SharedDaemon::write_text() const {
  const std::string file = text_file().string();
  const auto failed = [&file] {
    return Error{ErrorCode::io_error, fmt::format("{}: {}", file, reason_with_limit(errno))};
  };
  const Descriptor written(::open(file.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  struct stat status = {};
  if (!written || ::fstat(written.get(), &status) != 0) return failed();
  if (status.st_uid != ::geteuid() || !S_ISREG(status.st_mode)) {
    return Error{ErrorCode::io_error, fmt::format("{}: it is not a file of this user", file)};
  }
  if (::ftruncate(written.get(), 0) != 0) return failed();
  for (std::string_view left = *place_.own_text; !left.empty();) {
    const ssize_t taken = ::write(written.get(), left.data(), left.size());
    if (taken < 0 && errno != EINTR) return failed();
    if (taken > 0) left.remove_prefix(static_cast<std::size_t>(taken));
  }
  return {};
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
  if (place_.own_text) {
    if (auto written = write_text(); !written) return written;
  }
  ChildOptions daemon;
  const fs::path file = place_.own_text ? text_file() : place_.source.file;
  daemon.words = {program_, "--config", file.string()};
  if (!place_.source.folder.empty()) {
    daemon.words.insert(daemon.words.end(), {"--folder", place_.source.folder.string()});
    if (has_reader_) daemon.words.emplace_back("--private-page");
  }
  // Its terminal, or log, is the command's.
  daemon.words.insert(daemon.words.end(), {"--log-level", "warn"});
  // The terminal's Ctrl-C is for the command; the daemon ends when that has ended.
  daemon.own_group = true;
  const auto child = start_child(daemon);
  if (!child) return child.error();
  child_ = *child;
  listens_ = false;
  return {};
}

Result<void> SharedDaemon::ended(int status) {
  child_.reset();
  const int code = code_of_end(status);
  // A kill says nothing of the configuration, be it an operator's or the kernel's for memory.
  if (!was_ready_ && WIFSIGNALED(status)) {
    if (++killed_ < kMostKilled) return {};
    return Error{ErrorCode::io_error,
                 fmt::format("{} was ended by signal {} before it listened, and so were the {} "
                             "before it",
                             program_, WTERMSIG(status), killed_ - 1)};
  }
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
  listens_ = child_.has_value();
  return true;
}

std::string SharedDaemon::not_served() const {
  const auto answer = ask(place_);
  return answer ? answer->absent : "";
}

Result<bool> SharedDaemon::leave() {
  left_ = true;
  user_.reset();
  if (!owner_ && !foreign_) return false;
  auto last = FileLock::take(users_file(), FileLock::Kind::exclusive);
  if (!last) return last.error();
  user_ = *std::move(last);
  return owner_ && !user_;
}

void SharedDaemon::remove_files() {
  // Exclusive by now, or another's. Who is between opening one and locking it sees that it is gone.
  if (user_) {
    if (owner_ && place_.own_text) ::unlink(text_file().c_str());
    if (owner_) owner_->remove();
    user_->remove();
  }
  std::error_code ignored;  // others may have come meanwhile, or it was not made here
  if (!place_.source.folder.empty()) fs::remove(place_.source.folder, ignored);
}

}  // namespace batchwright
