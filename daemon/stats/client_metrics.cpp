#include "daemon/stats/client_metrics.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace batchwright {
namespace {

/// What one rank of one process has of a feed, over all of its subscriptions. Neither sessions nor
/// subscriptions have series of their own: each reconnect and each epoch could bring another one.
struct Trainer {
  std::string labels;
  double waited_for_daemon = 0.0;
  double waited_for_client = 0.0;
  std::uint64_t credit = 0;
  std::uint64_t held = 0;
  std::uint64_t lag = 0;
  std::pair<Epoch, Step> position;  ///< Position of the subscription that is furthest behind.
  std::uint64_t batches = 0;
  std::uint64_t bytes = 0;
};

void add(Trainer& trainer, const SubscriberStatus& each) {
  trainer.waited_for_daemon += each.waited_for_daemon_seconds;
  trainer.waited_for_client += each.waited_for_client_seconds;
  trainer.credit += credit_of(each);
  trainer.held += each.held;
  // Not sums: the subscription that is furthest behind is the one that holds the others up.
  trainer.lag = std::max(trainer.lag, each.lag_batches);
  trainer.position = std::min(trainer.position, std::pair(each.epoch, each.step));
  trainer.batches += each.delivered_batches;
  trainer.bytes += each.delivered_bytes;
}

std::vector<Trainer> trainers_of(const std::vector<FeedStatus>& feeds) {
  std::vector<Trainer> trainers;
  for (const FeedStatus& feed : feeds) {
    // Who waits for a feed that is not served lacks the feed, not batches: its state tells that.
    if (feed.retried) continue;
    // A map for each feed: one process may be a trainer of several.
    std::map<std::tuple<std::string, std::uint32_t, std::uint32_t>, std::size_t> places;
    for (const SubscriberStatus& each : feed.subscribers) {
      const auto [place, is_new] =
          places.try_emplace({each.client, each.rank, each.pid}, trainers.size());
      if (is_new) {
        trainers.push_back({});
        trainers.back().labels = MetricsPage::prepare({{"feed", feed.name},
                                                       {"client", each.client},
                                                       {"rank", std::to_string(each.rank)},
                                                       {"pid", std::to_string(each.pid)}});
        // The minimum in add() starts from a real position, not from epoch 0.
        trainers.back().position = {each.epoch, each.step};
      }
      add(trainers[place->second], each);
    }
  }
  return trainers;
}

/// One figure of all trainers: Prometheus wants the samples of a metric together.
template <class Figure>
void samples(MetricsPage& page, const std::vector<Trainer>& trainers, Figure figure) {
  for (const Trainer& each : trainers) page.sample(each.labels, figure(each));
}

}  // namespace

void add_client_metrics(MetricsPage& page, const std::vector<FeedStatus>& feeds) {
  using Each = const Trainer&;
  const std::vector<Trainer> trainers = trainers_of(feeds);
  page.counter("client_waited_seconds_total", "How long the client waited for the daemon.");
  samples(page, trainers, [](Each each) { return each.waited_for_daemon; });
  page.counter("daemon_waited_seconds_total", "How long the daemon waited for the client.");
  samples(page, trainers, [](Each each) { return each.waited_for_client; });
  page.gauge("client_credit_batches", "Batches that the client may still get before a release.");
  samples(page, trainers, [](Each each) { return each.credit; });
  page.gauge("client_held_batches", "Batches that the client holds.");
  samples(page, trainers, [](Each each) { return each.held; });
  page.gauge("client_lag_batches", "Batches behind the furthest subscriber of the feed.");
  samples(page, trainers, [](Each each) { return each.lag; });
  page.gauge("client_position_epoch", "Epoch of the client's next batch.");
  samples(page, trainers, [](Each each) { return each.position.first.value; });
  page.gauge("client_position_step", "Global step of the client's next batch.");
  samples(page, trainers, [](Each each) { return each.position.second.value; });
  page.counter("client_batches_delivered_total", "Batches sent to the client.");
  samples(page, trainers, [](Each each) { return each.batches; });
  page.counter("client_bytes_delivered_total", "Bytes of the batches sent to the client.");
  samples(page, trainers, [](Each each) { return each.bytes; });
}

}  // namespace batchwright
