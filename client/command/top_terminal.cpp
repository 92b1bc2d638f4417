#include "client/command/top_terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace batchwright {
namespace {

// Words of ECMA-48, and of xterm for the other screen; every terminal of today knows them.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";
constexpr std::string_view kHome = "\x1b[H";
constexpr std::string_view kRestOfLine = "\x1b[K";
constexpr std::string_view kRestOfScreen = "\x1b[J";

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

constexpr char kInterruptKey = 3;  // Ctrl-C

void write_out(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// It only has to interrupt poll().
extern "C" void ignore_signal(int) {}

std::size_t from_environment(const char* name, std::size_t otherwise) {
  const char* text = std::getenv(name);
  const long value = text == nullptr ? 0 : std::strtol(text, nullptr, 10);
  return value > 0 && value < 10'000 ? static_cast<std::size_t>(value) : otherwise;
}

}  // namespace

TopTerminal::TopTerminal(bool colours) : colours_(colours) {
  if (isatty(STDIN_FILENO) == 1 && tcgetattr(STDIN_FILENO, &before_) == 0) {
    struct termios quiet = before_;
    // Without ISIG, Ctrl-C is a key like q: a signal that came twice would leave the screen behind.
    quiet.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
    keys_ = tcsetattr(STDIN_FILENO, TCSANOW, &quiet) == 0;
  }
  struct sigaction resized = {};
  resized.sa_handler = ignore_signal;
  sigaction(SIGWINCH, &resized, &before_winch_);
  write_out(kEnter);
}

TopTerminal::~TopTerminal() {
  write_out(kLeave);
  sigaction(SIGWINCH, &before_winch_, nullptr);
  if (keys_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

TopSize TopTerminal::size() {
  struct winsize window = {};
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
      frame += piece.text;
      if (!tone.empty()) frame += "\x1b[0m";
    }
    frame += kRestOfLine;
  }
  frame += kRestOfScreen;
  write_out(frame);
}

TopTerminal::Wake TopTerminal::wait_until(std::chrono::steady_clock::time_point until) {
  using std::chrono::milliseconds;
  constexpr milliseconds kSlice(500);  // a signal just before poll() is seen so late at most
  const auto left = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now());
  if (left <= milliseconds(0)) return Wake::time;
  struct pollfd input = {keys_ ? STDIN_FILENO : -1, POLLIN, 0};
  if (poll(&input, 1, static_cast<int>(std::min(left, kSlice).count())) <= 0) return Wake::early;
  char key = 0;
  if (read(STDIN_FILENO, &key, 1) != 1) keys_ = false;  // its end: there are no keys any more
  return key == 'q' || key == 'Q' || key == kInterruptKey ? Wake::quit : Wake::early;
}

bool writes_to_terminal() {
  const char* kind = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
}

bool wants_colours() {
  const char* refused = std::getenv("NO_COLOR");
  return refused == nullptr || *refused == '\0';
}

}  // namespace batchwright
