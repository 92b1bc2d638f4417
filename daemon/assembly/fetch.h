#pragma once

#include "daemon/assembly/assembler.h"

namespace batchwright {

/// Puts the pages that the batch, or one row that is part of a sequence, is made of in place for
/// the assembly. Waits for the disk. What cannot be read is left to the assembly, which names it.
/// Threads: any.
void fetch_pages(const EpochSource& source, BatchIndex index);
void fetch_part(const EpochSource& source, const Row& row);

/// Whether the pages of a feed's batches are brought in before an assembly thread is given to
/// them. A feed is cold until kCalm batches in a row were there already, and again as soon as an
/// assembly thread had to wait.
/// Threads: one at a time.
class Warmth {
 public:
  static constexpr unsigned kCalm = 16;

  bool is_cold() const { return calm_ < kCalm; }
  /// The pages of one batch were brought in.
  void fetched(bool waited) { calm_ = waited ? 0 : calm_ + (calm_ < kCalm ? 1 : 0); }
  /// One batch was assembled.
  void assembled(bool waited) {
    if (waited) calm_ = 0;
  }

 private:
  unsigned calm_ = 0;
};

}  // namespace batchwright
