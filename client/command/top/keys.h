#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace batchwright {

/// The meaning of a terminal's key for `batchwright top`.
enum class TopKey : unsigned char {
  up,
  down,
  page_up,
  page_down,
  home,
  end,
  open,
  back,
  next_column,
  previous_column,
  reverse,
  help,
  redraw,
  suspend,
  quit,
  other,  ///< A key that means nothing.
};

/// Finds keys in the bytes that a terminal sends: letters, and the sequences of ECMA-48 and xterm
/// for the others. They may come in parts.
/// Threads: one at a time.
class KeyReader {
 public:
  void add(std::string_view bytes) { bytes_ += bytes; }
  /// The next key; empty: none, or only the beginning of one.
  std::optional<TopKey> next();
  /// Whether what is here is the beginning of a key. An Escape is one, too, unless nothing follows.
  bool has_begun() const { return !bytes_.empty(); }
  /// The key that has begun is as it is, since nothing followed for a while.
  std::optional<TopKey> finish();

 private:
  std::optional<TopKey> take_sequence();

  std::string bytes_;
};

}  // namespace batchwright
