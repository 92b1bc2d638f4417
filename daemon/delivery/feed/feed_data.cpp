// The part of Feed that looks whether its dataset's path still leads to the files that it reads,
// and whether these are as they were.

#include <chrono>
#include <utility>

#include "daemon/delivery/feed/feed.h"

namespace batchwright {
namespace {

/// A file system that answers later is told of.
constexpr std::chrono::seconds kAnswersWithin{10};

DatasetStanding standing_of(const Snapshot& snapshot) {
  DatasetStanding found;
  // Lack of memory is no news of the files.
  static_cast<void>(caught(ErrorCode::internal, "", [&]() -> Result<void> {
    found = snapshot.standing();
    return {};
  }));
  return found;
}

}  // namespace

void Feed::look_at_data() {
  if (std::exchange(data_.looking, true)) return;
  loop_.set(FeedLoop::Alarm::data, FeedLoop::Time::clock::now() + kAnswersWithin, [this] {
    if (!data_.looking) return;
    ports_.log.note<Event::dataset_silent>(name(), dataset().shards().front().string(),
                                           kAnswersWithin.count());
  });
  ask_standing([this](const DatasetStanding& found) { looked_at_data(found); });
}

/// On a thread of the feed's own, since a file system that does not answer holds it up; where
/// threads are few, between two batches.
void Feed::ask_standing(std::function<void(DatasetStanding)> found) {
  // The snapshot goes before anyone is told: what is told may be that it stands in the way.
  auto look = [snapshot = data_.snapshot]() mutable {
    auto standing = standing_of(*snapshot);
    snapshot.reset();
    return standing;
  };
  auto looked = [found = std::move(found)](DatasetStanding standing) {
    found(std::move(standing));
  };
  if (!kFewThreads) return loop_.elsewhere(std::move(look), std::move(looked));
  ports_.planner.run([look = std::move(look),
                      done = loop_.brought_back(std::move(looked))]() mutable { done(look()); });
}

void Feed::looked_at_data(const DatasetStanding& found) {
  data_.looking = false;
  if (failure()) return;
  if (found.standing == DataStanding::overwritten) {
    return fail({ErrorCode::fingerprint_mismatch, found.why});
  }
  const bool is_news = !found.why.empty() && found.why != data_.standing.why;
  data_.standing = found;
  if (is_news) ports_.log.note<Event::dataset_stale>(name(), found.why);
}

}  // namespace batchwright
