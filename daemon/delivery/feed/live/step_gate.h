#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "daemon/delivery/feed/feed_settings.h"
#include "daemon/delivery/feed/live/live_source.h"
#include "formats/formats.h"

namespace batchwright {

/// Lets steps of a live feed to its trainers, in their order, once slots hold their batches and the
/// feed's record, if it has one, keeps up.
/// Threads: one at a time.
class StepGate {
 public:
  StepGate(const FeedSettings& settings, std::shared_ptr<LiveSource> source)
      : batch_schema_(cast_schema(settings.casts, settings.live->schema)),
        name_bytes_(settings.name.size()),
        source_(std::move(source)) {}

  void add(std::vector<LiveBatch> batches);
  /// No more steps come.
  void end();
  /// Slots have so many bytes from now on.
  void set_slot_bytes(std::size_t bytes);
  /// Whether steps are held back until the record has more of those before them.
  void wait_for_record(bool waits);
  /// What slots have to have for the first step that is held back; 0: none is for want of that.
  std::size_t wanted_slot_bytes() const {
    return held_.empty() || fits(held_.front()) ? 0 : held_.front().slot_bytes;
  }
  /// Whether a step is held back for the record.
  bool is_waiting_for_record() const { return waits_for_record_ && !held_.empty(); }
  /// Whether a step was let through, or the end, since this was asked last.
  bool take_news() { return std::exchange(news_, false); }
  LiveSource& source() const { return *source_; }

 private:
  struct Held {
    std::vector<LiveBatch> batches;
    std::size_t slot_bytes = 0;  ///< That its largest batch takes.
  };
  std::size_t bytes_of(const LiveBatch& batch) const;
  bool fits(const Held& step) const { return step.slot_bytes <= slot_bytes_; }
  void let_through();

  const Schema batch_schema_;  ///< With the dtypes that batches have.
  const std::size_t name_bytes_;
  const std::shared_ptr<LiveSource> source_;
  std::deque<Held> held_;
  std::size_t slot_bytes_ = 0;
  bool waits_for_record_ = false;
  bool ended_ = false;
  bool news_ = false;
};

}  // namespace batchwright
