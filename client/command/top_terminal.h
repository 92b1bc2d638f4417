#pragma once

#include <termios.h>

#include <chrono>
#include <csignal>
#include <vector>

#include "client/command/top_screen.h"

namespace batchwright {

/// The terminal while it is ours: another screen, no cursor, no echo. It is given back as it was
/// when this object goes, so whoever holds one must not end by a signal: see Interrupt.
/// One at a time in a process. Threads: one.
class TopTerminal {
 public:
  /// `colours`: whether tones are shown as such.
  explicit TopTerminal(bool colours);
  ~TopTerminal();
  TopTerminal(const TopTerminal&) = delete;
  TopTerminal& operator=(const TopTerminal&) = delete;

  static TopSize size();
  /// Writes over what was shown before.
  void show(const std::vector<TopLine>& lines);

  enum class Wake : unsigned char {
    time,   ///< It is `until`.
    early,  ///< It may be that the size is another, or that a signal came.
    quit,   ///< q or Ctrl-C was pressed.
  };
  Wake wait_until(std::chrono::steady_clock::time_point until);

 private:
  bool colours_;
  bool keys_ = false;  ///< Standard input is a terminal, too.
  struct termios before_ = {};
  struct sigaction before_winch_ = {};
};

/// Whether standard output is a terminal that can be written over, and whether it shows colours:
/// not with NO_COLOR (no-color.org).
bool writes_to_terminal();
bool wants_colours();

}  // namespace batchwright
