#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "client/library/deadline.h"
#include "client/library/memory/arena_link.h"
#include "client/library/memory/mapping.h"
#include "formats/formats.h"

namespace batchwright {

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
  explicit Arenas(std::shared_ptr<ArenaLink> link);
  ~Arenas();
  Arenas(const Arenas&) = delete;
  Arenas& operator=(const Arenas&) = delete;

  /// The arena of this number, which is asked for once. An arena that grew takes the place of the
  /// smaller one, which held batches keep. Where the time is over a later call gets the answer;
  /// after any other failure the connection cannot be trusted. Errors: as ArenaLink::fetch().
  Result<std::shared_ptr<const Mapping>> at(ArenaNumber number, const Deadline& deadline);

  /// The arena's connection, for a batch to keep.
  std::shared_ptr<const ArenaLink> link() const { return link_; }
  /// Whether the daemon still has its end open.
  bool alive() const { return link_->alive(); }
  /// Readable when the daemon has closed its end.
  int descriptor() const { return link_->descriptor(); }

 private:
  using Mapped = std::map<ArenaNumber, std::shared_ptr<const Mapping>>;

  void start_watching();
  void watch();

  const std::shared_ptr<ArenaLink> link_;
  const Descriptor stop_;  ///< An eventfd that ends the watch.
  std::mutex mutex_;
  Mapped mapped_;       // both locked by mutex_
  bool ended_ = false;  ///< The connection has ended.
  std::jthread watcher_;
};

}  // namespace batchwright
