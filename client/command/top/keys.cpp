#include "client/command/top/keys.h"

#include <algorithm>
#include <array>
#include <utility>

namespace batchwright {
namespace {

constexpr char kEscape = '\x1b';
constexpr std::size_t kLongestSequence = 32;  // what is longer is no key

// Those of less and vi, beside the Ctrl keys of Emacs: what hands know from other programs.
constexpr std::array<std::pair<char, TopKey>, 24> kLetters{{
    {'k', TopKey::up},
    {'j', TopKey::down},
    {'g', TopKey::home},
    {'G', TopKey::end},
    {'b', TopKey::page_up},
    {' ', TopKey::page_down},
    {'<', TopKey::previous_column},
    {'>', TopKey::next_column},
    {'r', TopKey::reverse},
    {'?', TopKey::help},
    {'h', TopKey::help},
    {'q', TopKey::quit},
    {'Q', TopKey::quit},
    {'\r', TopKey::open},
    {'\n', TopKey::open},
    {'\x7f', TopKey::back},
    {'\b', TopKey::back},
    {'\x03', TopKey::quit},  // Ctrl-C
    {'\x0c', TopKey::redraw},
    {'\x1a', TopKey::suspend},  // Ctrl-L, Ctrl-Z
    {'\x02', TopKey::page_up},
    {'\x06', TopKey::page_down},  // Ctrl-B, Ctrl-F
    {'\x10', TopKey::up},
    {'\x0e', TopKey::down},  // Ctrl-P, Ctrl-N
}};

/// Without what says that Shift or its like was held.
constexpr std::array<std::pair<std::string_view, TopKey>, 11> kSequences{{
    {"A", TopKey::up},
    {"B", TopKey::down},
    {"H", TopKey::home},
    {"F", TopKey::end},
    {"M", TopKey::open},
    // Home and End by the Linux console (1, 4) and by rxvt (7, 8).
    {"1~", TopKey::home},
    {"4~", TopKey::end},
    {"7~", TopKey::home},
    {"8~", TopKey::end},
    {"5~", TopKey::page_up},
    {"6~", TopKey::page_down},
}};

TopKey key_of_letter(char letter) {
  const auto found = std::find_if(kLetters.begin(), kLetters.end(),
                                  [letter](const auto& each) { return each.first == letter; });
  return found == kLetters.end() ? TopKey::other : found->second;
}

/// Whether the byte ends a sequence (ECMA-48, 5.4).
bool is_final(char c) { return c >= 0x40 && c <= 0x7e; }

/// `parameters` and `final` of ESC [ 1 ; 5 A are "1;5" and 'A'.
TopKey key_of_sequence(std::string_view parameters, char final) {
  std::string name;
  // With ~ the first number says which key it is; with a letter all numbers are modifiers.
  if (final == '~') name = parameters.substr(0, parameters.find(';'));
  name += final;
  const auto found = std::find_if(kSequences.begin(), kSequences.end(),
                                  [&](const auto& each) { return each.first == name; });
  return found == kSequences.end() ? TopKey::other : found->second;
}

}  // namespace

std::optional<TopKey> KeyReader::next() {
  if (bytes_.empty()) return std::nullopt;
  if (bytes_[0] == kEscape) return take_sequence();
  const TopKey key = key_of_letter(bytes_[0]);
  bytes_.erase(0, 1);
  return key;
}

std::optional<TopKey> KeyReader::take_sequence() {
  // The key Escape, or the first byte of a sequence: finish() decides, by what does not follow.
  if (bytes_.size() == 1) return std::nullopt;
  // ESC [ begins a control sequence, ESC O is what keypad mode sends for the same keys.
  if (bytes_[1] != '[' && bytes_[1] != 'O') {
    bytes_.erase(0, 1);  // the key itself; what follows is another one
    return TopKey::back;
  }
  const auto end = std::find_if(bytes_.begin() + 2, bytes_.end(), is_final);
  if (end == bytes_.end()) {
    // Its end may come with the next read.
    if (bytes_.size() < kLongestSequence) return std::nullopt;
    bytes_.clear();
    return TopKey::other;
  }
  const TopKey key = key_of_sequence(
      std::string_view(bytes_).substr(2, static_cast<std::size_t>(end - bytes_.begin()) - 2), *end);
  bytes_.erase(bytes_.begin(), end + 1);
  return key;
}

std::optional<TopKey> KeyReader::finish() {
  if (bytes_.empty()) return std::nullopt;
  // A sequence that was cut short is no key: its letters are not to be taken for commands.
  const bool alone = bytes_.size() == 1 && bytes_[0] == kEscape;
  bytes_.clear();
  return alone ? TopKey::back : TopKey::other;
}

}  // namespace batchwright
