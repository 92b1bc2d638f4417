// The part of Feed that a new configuration asks for: how it changes in place, and how it ends.

#include <utility>

#include "daemon/delivery/feed/feed.h"

namespace batchwright {

void Feed::adjust(const FeedAdjustments& wanted) {
  FeedAdjustments& own = settings_;
  if (own == wanted) return;
  own = wanted;
  style_ = make_style(style_->times);
  scheduler_.forget_broken();  // what could not be assembled may be so with a sequence left out
  pump();
}

void Feed::retire(const Error& error) {
  on_state_ = nullptr;
  loop_.silence();
  desk_.close();  // first: what clients are told now waits for no record
  end_subscriptions(error);
  ports_.assembler.replace(name());  // a feed in its place may have another file system
  life_.retire(error);  // whatever comes back from other threads changes nothing any more
}

/// What clients hold stays held: a slot that is not held might be poisoned once a batch on its way
/// to a remote client has left.
void Feed::end_subscriptions(const Error& error) {
  refuse_all(error);
  subscriptions_.clear();
  scheduler_.stragglers().clear();
  waits_.clear();
}

std::vector<std::shared_ptr<const void>> Feed::belongings() const {
  std::vector<std::shared_ptr<const void>> all{data_.tree_reader, data_.dataset, data_.snapshot};
  for (auto& generation : scheduler_.generations()) all.push_back(std::move(generation));
  for (PlannedEpoch& epoch : plans_.epochs().all()) all.push_back(std::move(epoch.batches));
  return all;
}

}  // namespace batchwright
