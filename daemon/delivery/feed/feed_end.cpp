// The part of Feed that a new configuration asks for: how it changes in place, and how it ends.

#include <utility>

#include "daemon/delivery/feed/feed.h"

namespace batchwright {

void Feed::adjust(const FeedAdjustments& wanted) {
  FeedAdjustments& own = parts_.settings;
  if (own == wanted) return;
  own = wanted;
  style_ = make_style(style_->times);
  parts_.scheduler
      .forget_broken();  // what could not be assembled may be so with a sequence left out
  pump();
}

void Feed::retire(const Error& error) {
  on_state_ = nullptr;
  loop_.silence();
  parts_.desk.close();  // first: what clients are told now waits for no record
  end_subscriptions(error);
  ports_.assembler.replace(name());  // a feed in its place may have another file system
  parts_.life.retire(error);  // whatever comes back from other threads changes nothing any more
}

/// What clients hold stays held: a slot that is not held might be poisoned once a batch on its way
/// to a remote client has left.
void Feed::end_subscriptions(const Error& error) {
  refuse_all(error);
  parts_.scheduler.stragglers().clear();
  parts_.subscriptions.clear();
}

std::vector<std::shared_ptr<const void>> Feed::belongings() const {
  std::vector<std::shared_ptr<const void>> all{data_.tree_reader, data_.dataset, data_.snapshot};
  for (auto& generation : parts_.scheduler.generations()) all.push_back(std::move(generation));
  for (PlannedEpoch& epoch : parts_.plans.epochs().all()) all.push_back(std::move(epoch.batches));
  return all;
}

}  // namespace batchwright
