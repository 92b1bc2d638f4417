#pragma once

#include <cstddef>

namespace batchwright {

/// Whether a subscription writes to its batches, judged by those it gave back. A page that is
/// copied when it is written to costs a fault, which is as much as copying 4 to 8 pages ahead, and
/// a page that is copied and not written to is a copy for nothing.
/// Threads: one at a time.
class WriteHabit {
 public:
  /// Of so many batches of a subscription that writes one is not copied, to see whether the habit
  /// has changed.
  static constexpr std::size_t kLookAtOneOf = 256;
  /// A batch counts as written to when one page of so many was.
  static constexpr std::size_t kOneOf = 8;

  /// A batch that was not copied ahead is back.
  void note(std::size_t written, std::size_t pages) {
    writes_ = written != 0 && written * kOneOf >= pages;
  }
  /// Whether the next batch is to be copied ahead.
  bool copies() const { return writes_ && copied_ < kLookAtOneOf - 1; }
  /// The next batch is handed out, as copies() says.
  void count() { copied_ = copies() ? copied_ + 1 : 0; }

 private:
  bool writes_ = false;
  std::size_t copied_ = 0;  ///< Since one was not.
};

}  // namespace batchwright
