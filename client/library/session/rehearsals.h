#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace batchwright {

/// The rehearsals of one subscription: batches of its first epoch, the largest first, that come
/// before everything else. A daemon that was lost leaves them to the next one, which sends all of
/// them from the first on: those that were handed out are due again, but not for the program.
class Rehearsals {
 public:
  enum class Verdict {
    fresh,     ///< The program's, and taken by take().
    repeated,  ///< It was handed out before.
    astray,    ///< Another one was due.
    surplus,   ///< One that was handed out already, or one too many.
  };

  explicit Rehearsals(std::uint32_t wanted) : wanted_(wanted), due_(wanted != 0) {}

  /// Whether more may come. They are over with the first other batch.
  bool are_due() const { return due_; }
  bool any_taken() const { return !taken_.empty(); }

  /// Judges the next one. A repeated one counts as having come.
  Verdict check(std::uint64_t index);
  void take(std::uint64_t index);
  void end() { due_ = false; }
  /// Another daemon sends them, from the first on.
  void begin_again() { repeated_ = 0; }

 private:
  std::uint32_t wanted_;
  bool due_;
  std::vector<std::uint64_t> taken_;  ///< Indices, as handed out.
  std::size_t repeated_ = 0;          ///< Those of them that this session's daemon has sent.
};

}  // namespace batchwright
