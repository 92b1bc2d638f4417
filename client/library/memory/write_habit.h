#pragma once

#include <cstddef>

namespace batchwright {

/// Whether a subscription writes to its batches, judged by those it gave back. A page that is
/// copied when it is written to costs a fault, which is as much as copying 4 to 8 pages ahead, and
/// a page that is copied and not written to is a copy for nothing.
/// Threads: one at a time.
class WriteHabit {
 public:
  /// So many batches are copied ahead behind one that was written to. The next is not, to see
  /// whether the habit has changed.
  static constexpr std::size_t kAhead = 255;
  /// A batch counts as written to when one page of so many was.
  static constexpr std::size_t kOneOf = 8;

  /// A batch that was not copied ahead is back.
  void note(std::size_t written, std::size_t pages) {
    if (written != 0 && written * kOneOf >= pages) left_ = kAhead;
  }
  /// Whether the next batch is to be copied ahead. Counts it.
  bool copies_next() {
    if (left_ == 0) return false;
    --left_;
    return true;
  }

 private:
  std::size_t left_ = 0;
};

}  // namespace batchwright
