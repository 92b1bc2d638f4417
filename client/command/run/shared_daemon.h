#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "client/command/run/daemon_place.h"
#include "formats/formats.h"

namespace batchwright {

/// One daemon for all who run something with a configuration on this host.
///
/// The first of them owns it: it starts the daemon as its child, starts it again should it die, and
/// stops it when it is the last one there. When the owner ends first it waits for the others; when
/// it is killed, another becomes the owner. What they agree by are locks on two files, which the
/// kernel drops with the process that has them. None of the calls waits for a lock.
/// Threads: one.
class SharedDaemon {
 public:
  /// `has_reader`: pages of its own are of use to someone, who is at a terminal.
  SharedDaemon(DaemonPlace place, std::string program, bool has_reader)
      : place_(std::move(place)), program_(std::move(program)), has_reader_(has_reader) {}

  /// Tries to join. False while an owner is just leaving, or has just come: then it is called again
  /// in a moment. Nothing runs before tend() is called.
  /// Errors: io_error; already_exists: a daemon of another configuration listens there.
  Result<bool> join();

  /// Does what is due: becomes the owner where there is none, starts the daemon where it is not,
  /// makes the folder again where that has gone. Errors: those of doing so.
  Result<void> tend();

  /// The daemon's process, where this one owns it.
  std::optional<pid_t> child() const { return child_; }
  /// The child has ended, with this status of waitpid(). Errors: bad_configuration: it never
  /// listened, or says that it will not, and its log says why; io_error: it is killed each time
  /// before it listens.
  Result<void> ended(int status);

  /// Whether clients can connect. Errors: not_found, naming the feed that a daemon lacks which no
  /// run has started; io_error: its socket may not be used, or is another user's.
  Result<bool> ready();

  /// Whether it is this one's, and listens.
  bool owns() const { return owner_ && was_ready_; }

  /// The configured feeds that the daemon cannot serve now, with its reasons; empty where there are
  /// none, or where it does not answer.
  std::string not_served() const;

  /// Nothing is run here any more. Returns whether others use the daemon that this one owns, and
  /// it has to be tended until they do not.
  Result<bool> leave();
  /// Removes the files, and the folder, where leave() found no one else. The child is to have
  /// ended: those who come wait at these files until then.
  void remove_files();

  const DaemonPlace& place() const { return place_; }

 private:
  using Clock = std::chrono::steady_clock;

  std::filesystem::path users_file() const { return place_.locks.string() + ".users"; }
  std::filesystem::path owner_file() const { return place_.locks.string() + ".owner"; }
  std::filesystem::path text_file() const { return place_.locks.string() + ".toml"; }
  std::string mark() const;
  Result<bool> take_user();
  Result<void> try_to_own();
  Result<void> write_text() const;
  Result<void> start();
  void look_at_sockets();

  DaemonPlace place_;
  std::string program_;
  bool has_reader_;
  std::optional<FileLock> user_;   // shared while something runs, exclusive at the end
  std::optional<FileLock> owner_;  // while the daemon is this one's
  std::optional<pid_t> child_;
  Clock::time_point started_{};
  bool was_ready_ = false;
  bool left_ = false;     // nothing is run here any more
  bool listens_ = false;  // the child's socket has been seen
  int killed_ = 0;        // children, one after the other, before any was ready
  std::optional<Clock::time_point> took_over_;  // from an owner that was killed
  bool foreign_ = false;  // a daemon listens that no run has started, such as the system's
};

}  // namespace batchwright
