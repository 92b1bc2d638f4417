#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "client/library/batchwright/client.hpp"
#include "formats/formats.h"

namespace batchwright {

/// Says on stderr what is waited for, once, when a second has passed and it still lives: a command
/// that a daemon keeps waiting is never mute.
/// Threads: made and destroyed on one thread; the line is written by a thread of its own.
class WaitNote {
 public:
  explicit WaitNote(std::string text);
  ~WaitNote();
  WaitNote(const WaitNote&) = delete;
  WaitNote& operator=(const WaitNote&) = delete;

 private:
  void say_if_late();

  std::string text_;
  Mutex mutex_;
  Condition over_;
  bool is_over_ GUARDED_BY(mutex_) = false;
  std::optional<std::jthread> thread_;  // none where there is none to spare: then it is mute
};

/// The note for a daemon that may not be there.
std::string waiting_for(const std::string& endpoint);

/// A connection; it is noted where the daemon keeps it waiting. Throws client::Error.
std::unique_ptr<client::Connection> connect_noted(const std::string& endpoint,
                                                  const client::ConnectOptions& wanted);

}  // namespace batchwright
