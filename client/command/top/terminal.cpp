#include "client/command/top/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <utility>

// By hand, not by ncurses: this needs five sequences and keys one by one, and a library with a
// screen of its own and a database of terminals would be no gain.

namespace batchwright {
namespace {

// Words of ECMA-48, and of xterm for the other screen; every terminal of today knows them.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";
constexpr std::string_view kHome = "\x1b[H";
constexpr std::string_view kRestOfLine = "\x1b[K";
constexpr std::string_view kRestOfScreen = "\x1b[J";

/// The bytes of a key follow each other faster than this.
constexpr std::chrono::milliseconds kWithinKey{50};

constexpr std::array kEnding{SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr std::array kFaults{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

/// True unless 0. A word, since not every processor has atomic bytes that never wait.
using Flag = std::atomic<int>;
static_assert(Flag::is_always_lock_free);

// A signal handler reaches nothing but what is global. `before` is written before `taken` is set.
struct termios before = {};
Flag taken = 0;
Flag has_keys = 0;  ///< Standard input is a terminal, too.
Flag end_wanted = 0;
Flag stop_wanted = 0;
Flag looks_other = 0;  ///< What was shown is gone or has changed.

/// Whether all of it was written. For signal handlers too.
bool write_out(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      // Standard output may share a non-blocking description with another program, such as ssh.
      struct pollfd output = {STDOUT_FILENO, POLLOUT, 0};
      // What takes nothing for a second counts as gone: a signal handler may not hang.
      if (poll(&output, 1, 1000) == 0) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

void take() {
  if (isatty(STDIN_FILENO) == 1 && tcgetattr(STDIN_FILENO, &before) == 0) {
    struct termios quiet = before;
    // Without ISIG, Ctrl-C is a key like q; without IXON, Ctrl-S does not stop the screen.
    quiet.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
    quiet.c_iflag &= ~static_cast<tcflag_t>(IXON);
    // read() returns with the first byte; how long to wait is for poll() to say.
    quiet.c_cc[VMIN] = 1;
    quiet.c_cc[VTIME] = 0;
    has_keys = tcsetattr(STDIN_FILENO, TCSANOW, &quiet) == 0;
  }
  taken = true;
  write_out(kEnter);
  looks_other = true;
}

/// Restores the terminal. Signal handlers may call it, too.
void give_back() {
  // Once, though a signal may come amid the destructor's call.
  if (!taken.exchange(false)) return;
  write_out(kLeave);
  if (has_keys) tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

/// Ends the process as if the signal had never been caught.
void end_by(int signal) {
  give_back();
  // Raised again, so that the shell sees which signal it was, and a fault leaves its core.
  std::signal(signal, SIG_DFL);
  raise(signal);
}

extern "C" void on_end(int signal) {
  // The first is left to the loop; a second means that the loop hangs.
  if (end_wanted.exchange(true)) end_by(signal);
}

extern "C" void on_fault(int signal) { end_by(signal); }

extern "C" void on_stop(int) { stop_wanted = true; }

extern "C" void on_other_look(int) { looks_other = true; }

/// What was done at a signal before this program looked after it.
using Before = std::pair<int, struct sigaction>;
std::array<Before, kEnding.size() + kFaults.size() + 3> handlers;

void catch_signals() {
  std::size_t next = 0;
  const auto set = [&next](int signal, void (*handler)(int)) {
    struct sigaction action = {};
    action.sa_handler = handler;
    // Kept, so that the process behaves after top as it did before it.
    handlers[next].first = signal;
    sigaction(signal, &action, &handlers[next].second);
    ++next;
  };
  for (const int signal : kEnding) set(signal, on_end);
  for (const int signal : kFaults) set(signal, on_fault);
  // Only noted: the terminal is given back between two frames, by suspend().
  set(SIGTSTP, on_stop);
  set(SIGCONT, on_other_look);
  set(SIGWINCH, on_other_look);
}

void release_signals() {
  for (const auto& [signal, action] : handlers) sigaction(signal, &action, nullptr);
}

std::string_view begin(Tone tone) {
  switch (tone) {
    case Tone::plain: return "";
    case Tone::strong: return "\x1b[1m";
    case Tone::faint: return "\x1b[2m";
    case Tone::good: return "\x1b[1;32m";
    case Tone::warning: return "\x1b[1;33m";
    case Tone::bad: return "\x1b[1;31m";
  }
  return "";
}

std::size_t from_environment(const char* name, std::size_t otherwise) {
  const char* text = std::getenv(name);
  const long value = text == nullptr ? 0 : std::strtol(text, nullptr, 10);
  // More is a slip, and no screen.
  return value > 0 && value < 10'000 ? static_cast<std::size_t>(value) : otherwise;
}

/// The locale by the rules of locale(7): the first of these that is set.
bool takes_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* text = std::getenv(name);
    if (text == nullptr || *text == '\0') continue;
    std::string locale(text);
    std::transform(locale.begin(), locale.end(), locale.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace

TopTerminal::TopTerminal(bool colours) : colours_(colours), utf8_(takes_utf8()) {
  end_wanted = stop_wanted = false;
  // Before the screen is taken: a signal in between would leave it taken.
  catch_signals();
  take();
}

TopTerminal::~TopTerminal() {
  give_back();
  release_signals();
}

bool TopTerminal::ended() const { return gone_ || end_wanted; }

TopSize TopTerminal::size() {
  struct winsize window = {};
  // A serial line reports 0 by 0; then the environment has its say, as for other programs.
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 && window.ws_row > 0) {
    return {window.ws_col, window.ws_row};
  }
  return {from_environment("COLUMNS", 80), from_environment("LINES", 24)};
}

void TopTerminal::show(const std::vector<TopLine>& lines) {
  std::string frame(kHome);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    // No newline behind the last: it would scroll a full screen.
    if (i > 0) frame += "\r\n";
    for (const Piece& piece : lines[i].pieces) {
      const std::string_view tone = colours_ ? begin(piece.tone) : "";
      frame += tone;
      // Marks beyond ASCII would be garbage, and of another width.
      frame += utf8_ ? piece.text : in_ascii(piece.text);
      if (!tone.empty()) frame += "\x1b[0m";
    }
    frame += kRestOfLine;
  }
  frame += kRestOfScreen;
  // An unchanged frame is not sent again, unless Ctrl-L, SIGCONT or another size asks for it.
  if (!looks_other.exchange(false) && frame == shown_) return;
  gone_ = gone_ || !write_out(frame);
  shown_ = std::move(frame);
}

std::vector<TopKey> TopTerminal::wait_for_keys(Clock::time_point until) {
  using std::chrono::milliseconds;
  constexpr milliseconds kSlice(500);  // a signal just before poll() is seen so late at most
  // Once a sequence has begun the wait is short: an Escape alone is to work at once.
  const auto most = keys_.has_begun() ? kWithinKey : kSlice;
  const auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
  // poll() passes over a negative descriptor, and so only waits.
  struct pollfd input = {has_keys ? STDIN_FILENO : -1, POLLIN, 0};
  const auto wait = std::clamp(left, milliseconds(0), most);
  if (poll(&input, 1, static_cast<int>(wait.count())) > 0) read_keys();
  std::vector<TopKey> keys = take_keys();
  if (stop_wanted.exchange(false)) suspend();
  return keys;
}

void TopTerminal::read_keys() {
  std::array<char, 256> bytes;
  const ssize_t count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
  last_read_ = Clock::now();
  if (count > 0) return keys_.add({bytes.data(), static_cast<std::size_t>(count)});
  if (count == 0 || errno != EINTR) has_keys = false;  // end of input: no more keys will come
}

std::vector<TopKey> TopTerminal::take_keys() {
  std::vector<TopKey> keys;
  const auto take = [&](std::optional<TopKey> key) {
    if (key == TopKey::redraw) {
      looks_other = true;
    } else if (key == TopKey::suspend) {
      stop_wanted = true;
    } else if (key) {
      keys.push_back(*key);
    }
    return key.has_value();
  };
  while (take(keys_.next())) {
  }
  // Nothing has followed for long enough: what has begun is all there is.
  if (Clock::now() - last_read_ >= kWithinKey) take(keys_.finish());
  return keys;
}

/// The process stops here, until the shell lets it go on.
void TopTerminal::suspend() {
  give_back();
  struct sigaction stopping = {}, ours = {};
  // Only the default action stops a process; it goes on behind raise().
  stopping.sa_handler = SIG_DFL;
  sigaction(SIGTSTP, &stopping, &ours);
  raise(SIGTSTP);
  sigaction(SIGTSTP, &ours, nullptr);
  take();
}

bool writes_to_terminal() {
  const char* kind = std::getenv("TERM");
  // TERM=dumb is what editors set for a shell that knows no sequences.
  return isatty(STDOUT_FILENO) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
}

bool wants_colours() {
  const char* refused = std::getenv("NO_COLOR");
  // Set and empty means nothing, as no-color.org has it.
  return refused == nullptr || *refused == '\0';
}

}  // namespace batchwright
