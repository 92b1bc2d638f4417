#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "client/command/top/keys.h"
#include "client/command/top/line.h"

namespace batchwright {

/// The terminal while it is ours: another screen, no cursor, no echo, keys one by one. It is given
/// back as it was when this object goes, and also by a signal that ends or stops the process.
/// SIGINT, SIGTERM, SIGHUP and SIGQUIT set ended() the first time and end the process the second.
/// One at a time in a process. Threads: one.
class TopTerminal {
 public:
  using Clock = std::chrono::steady_clock;

  /// `colours`: whether tones are shown as such.
  explicit TopTerminal(bool colours);
  ~TopTerminal();
  TopTerminal(const TopTerminal&) = delete;
  TopTerminal& operator=(const TopTerminal&) = delete;

  static TopSize size();
  /// Writes over what was shown before, unless that is the same.
  void show(const std::vector<TopLine>& lines);
  /// Keys that were pressed. Waits for one until `until`; none may come earlier, with a signal or a
  /// window of another size. Ctrl-L and Ctrl-Z are done here.
  std::vector<TopKey> wait_for_keys(Clock::time_point until);
  /// A signal asks for the end, or the terminal takes nothing more.
  bool ended() const;

 private:
  void read_keys();
  std::vector<TopKey> take_keys();
  void suspend();

  bool colours_;
  bool utf8_;
  bool gone_ = false;  ///< Writing failed.
  KeyReader keys_;
  Clock::time_point last_read_{};
  std::string shown_;  ///< The last frame.
};

/// Whether standard output is a terminal that can be written over, and whether it shows colours:
/// not with NO_COLOR (no-color.org).
bool writes_to_terminal();
bool wants_colours();

}  // namespace batchwright
