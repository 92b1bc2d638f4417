#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/assembly/batch_source.h"
#include "daemon/assembly/casts.h"
#include "daemon/assembly/copying/copy_choice.h"
#include "daemon/assembly/fair_queue.h"
#include "daemon/assembly/padding.h"
#include "daemon/assembly/threads/thread_policy.h"
#include "daemon/planning/planning.h"
#include "daemon/stats/stats.h"
#include "formats/formats.h"
#include "storage/dataset/dataset.h"
#include "storage/features/recipe/recipe.h"

namespace batchwright {

/// A feed's reaction to a record that fails verification.
enum class OnCorrupt : std::uint8_t { stop, skip };

/// The common properties of all batches of a feed.
struct BatchStyle {
  std::string feed;
  Layout layout = Layout::batch_major;
  PaddingValues padding;
  OnCorrupt on_corrupt = OnCorrupt::stop;
  std::shared_ptr<StageTimes> times = nullptr;  ///< Takes the times of assembling; may be null.
  Casts casts = {};
  /// Makes rows of what is stored; null: rows are what is stored.
  std::shared_ptr<const Recipe> recipe = nullptr;
};

/// The fields of a feed's rows, before casts.
const Schema& row_schema(const Snapshot& snapshot, const Recipe* recipe);

/// A sequence that was left out of a batch because its record is corrupt. Where rows may be parts
/// of sequences its row stays and is all padding, with length 0, so that lanes keep their places.
struct SkippedSequence {
  Ordinal ordinal;
  std::string reason;
};

/// Finite values of a batch that a cast made infinite.
struct CastLoss {
  std::uint64_t values = 0;  ///< 0: there are none, and the rest says nothing.
  std::string field;         ///< A field that has some,
  Ordinal ordinal;           ///< and a sequence of which it has them.
};

/// A finished batch and its figures.
struct AssembledBatch {
  std::size_t offset = 0;  ///< Place of the FlatBuffer within the slot.
  std::size_t size = 0;    ///< Bytes of the FlatBuffer.
  std::uint32_t rows = 0;
  std::uint64_t frames = 0;
  std::uint64_t padded_frames = 0;
  /// Pages that were not in place, on the disk or only in the page cache.
  std::uint64_t page_faults = 0;
  std::vector<SkippedSequence> skipped;
  CastLoss lost = {};
  MadeRows made = {};
};

/// Builds batch `index` of `source` in `slot` with one copy of the payload: lays out the finished
/// FlatBuffer, copies every row straight from the source to its place by `copies`, writes only the
/// padding.
/// Errors: corrupt_record (on_corrupt = stop, or all rows are corrupt), does_not_fit,
/// store_unavailable, invalid_argument (no such batch), busy (no memory now), internal. Threads:
/// any; it blocks on the disk.
Result<AssembledBatch> assemble_batch(const BatchSource& source, const BatchStyle& style,
                                      BatchIndex index, std::span<std::byte> slot,
                                      const CopyChoice& copies = {});

/// Bytes of a slot that holds any batch within `bound`. Errors: does_not_fit when one batch would
/// pass kMaxBatchBytes, with the bytes needed.
Result<std::size_t> slot_bytes_for(const Snapshot& snapshot, const BatchStyle& style,
                                   const PlanBound& bound);

/// The assembly threads, which all feeds share: FairQueue chooses the feed whose job is next. The
/// pages of a feed that had to wait for them are brought in by a thread of its own first
/// (bw-fetch), so that an assembly thread does not wait for a disk, and a slow one costs its own
/// feed only; where threads are few they wait themselves.
///
/// A thread that waits for pages all the same, for longer than kLost, is lost to its feed until it
/// is back: another one takes its place, and the feed gets none meanwhile. Threads: submit(),
/// poison(), on_begun(), look() and replace() from one thread (the event loop), others from any.
/// Destruction waits for every job, so that each `done` is called once.
class Assembler {
 public:
  using Done = std::function<void(Result<AssembledBatch>)>;

  /// `copies` is the name of the way to copy, or "auto" for the fastest on this processor;
  /// check_copy() has let it through. `policy` are those of the assembly threads, and of those
  /// that wait for pages in their place.
  explicit Assembler(unsigned threads, std::string_view copies = plain_copy().name,
                     ThreadPolicy policy = {});
  ~Assembler();
  Assembler(const Assembler&) = delete;
  Assembler& operator=(const Assembler&) = delete;

  /// Calls `done` on an assembly thread. `slot` stays the job's own until then. Jobs of one feed
  /// and one urgency begin in order.
  void submit(std::shared_ptr<const BatchSource> source, std::shared_ptr<const BatchStyle> style,
              BatchIndex index, std::span<std::byte> slot, Done done,
              Urgency urgency = Urgency::ahead);

  /// Overwrites a released slot with 0xDB on an assembly thread, then calls `done` there.
  void poison(std::span<std::byte> slot, std::function<void()> done);

  /// Does `work`, which must not throw, on an assembly thread between two jobs. Each kind has a
  /// share of the threads as a feed has one. Threads: any.
  enum class Between : std::uint8_t { slots, look_ups, plans };
  void do_between(Between kind, std::function<void()> work);

  /// How batches are copied. Threads: any; it does not change.
  const CopyChoice& copies() const;

  using Time = FairQueue::Time;
  static constexpr std::chrono::milliseconds kLost{100};

  /// Sets what is called within submit() where nothing was under way before.
  void on_begun(std::function<void()> begun);
  /// Looks which threads get on, and starts others in place of those that are lost. To be called
  /// several times a second, as long as it returns true: then there is something under way.
  bool look(Time now);
  /// Since when a job of the feed waits for pages, longer than kLost; empty: none does, as far as
  /// look() has seen.
  std::optional<Time> waits_for_pages(const std::string& feed) const;
  /// The feed ends. Another one of its name does not wait for what this one waits for.
  void replace(const std::string& feed);

  /// Each feed's share of the threads, by its name, and the feeds that it waited for.
  std::map<std::string, FeedShare> shares() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace batchwright
