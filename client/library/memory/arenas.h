#pragma once

#include <map>
#include <memory>
#include <thread>

#include "client/library/deadline.h"
#include "client/library/memory/mapping.h"
#include "formats/formats.h"

namespace batchwright {

/// Where a daemon's arenas come from. While it is open, each side is alive.
/// Threads: one at a time, except for alive() and descriptor().
class ArenaSource {
 public:
  virtual ~ArenaSource() = default;

  /// Asks for an arena and maps it. Where the time is over a later call gets the answer.
  /// Errors: timed_out, io_error, disconnected, malformed_message, what the daemon refuses with.
  virtual Result<std::shared_ptr<const Mapping>> fetch(ArenaNumber arena,
                                                       const Deadline& deadline) = 0;
  /// The same for a producer's area, which is mapped to be written to.
  virtual Result<std::shared_ptr<const Area>> fetch_area(ArenaNumber area,
                                                         const Deadline& deadline) = 0;
  /// Whether the daemon still has its end open.
  virtual bool alive() const = 0;
  /// Readable when the daemon has closed its end; -1: none.
  virtual int descriptor() const = 0;
};

/// The arenas of one daemon as this process maps them, and the connection over which they came.
///
/// The memory of a daemon that dies lives on in the processes that map it, and the next daemon
/// needs as much again. So a thread does nothing but wait for the connection's end, and unmaps
/// then, also where the program is in no call of ours for hours. What a batch lies in stays until
/// it is released.
///
/// Lifetime: batches share the connection, which so ends with the last of them.
/// Threads: one at a time, with the watching thread beside it.
class Arenas {
 public:
  explicit Arenas(std::shared_ptr<ArenaSource> source);
  ~Arenas();
  Arenas(const Arenas&) = delete;
  Arenas& operator=(const Arenas&) = delete;

  /// The arena of this number, once it is mapped; null before.
  std::shared_ptr<const Mapping> find(ArenaNumber number);
  /// Asks for it. An arena that grew takes the place of the smaller one, which held batches keep.
  /// Where the time is over a later call gets the answer; after any other failure the connection
  /// cannot be trusted. Errors: as ArenaSource::fetch().
  Result<std::shared_ptr<const Mapping>> fetch(ArenaNumber number, const Deadline& deadline);

  /// The connection, for a batch to keep.
  const std::shared_ptr<ArenaSource>& source() const { return source_; }

 private:
  using Mapped = std::map<ArenaNumber, std::shared_ptr<const Mapping>>;

  void start_watching();
  void watch();

  const std::shared_ptr<ArenaSource> source_;
  const Descriptor stop_;  ///< An eventfd that ends the watch.
  Mutex mutex_;
  Mapped mapped_ GUARDED_BY(mutex_);
  bool ended_ GUARDED_BY(mutex_) = false;  ///< The connection has ended.
  std::jthread watcher_;
};

}  // namespace batchwright
