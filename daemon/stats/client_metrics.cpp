#include "daemon/stats/client_metrics.h"

#include <utility>

namespace batchwright {
namespace {

/// A subscription and its labels, which all its lines have.
using Line = std::pair<std::string, const SubscriberStats*>;

std::vector<Line> lines_of(const std::vector<FeedStats>& feeds) {
  std::vector<Line> lines;
  for (const FeedStats& feed : feeds) {
    for (const SubscriberStats& each : feed.subscribers) {
      const auto labels =
          MetricsPage::prepare({{"feed", feed.name},
                                {"client", each.client},
                                {"rank", std::to_string(each.rank)},
                                {"session", name_of(each.session)},
                                {"subscription", std::to_string(each.subscription)}});
      lines.emplace_back(labels, &each);
    }
  }
  return lines;
}

template <class Figure>
void samples(MetricsPage& page, const std::vector<Line>& lines, Figure figure) {
  for (const auto& [labels, subscriber] : lines) page.sample(labels, figure(*subscriber));
}

}  // namespace

void add_client_metrics(MetricsPage& page, const std::vector<FeedStats>& feeds) {
  using Each = const SubscriberStats&;
  const std::vector<Line> lines = lines_of(feeds);
  page.counter("client_waited_seconds_total", "How long the client waited for the daemon.");
  samples(page, lines, [](Each each) { return each.waited_for_daemon_seconds; });
  page.counter("daemon_waited_seconds_total", "How long the daemon waited for the client.");
  samples(page, lines, [](Each each) { return each.waited_for_client_seconds; });
  page.gauge("client_credit_batches", "Batches that the client may still get before a release.");
  samples(page, lines, [](Each each) { return credit_of(each); });
  page.gauge("client_held_batches", "Batches that the client holds.");
  samples(page, lines, [](Each each) { return each.held; });
  page.gauge("client_lag_batches", "Batches behind the furthest subscriber of the feed.");
  samples(page, lines, [](Each each) { return each.lag_batches; });
  page.gauge("client_position_epoch", "Epoch of the client's next batch.");
  samples(page, lines, [](Each each) { return each.epoch.value; });
  page.gauge("client_position_step", "Global step of the client's next batch.");
  samples(page, lines, [](Each each) { return each.step.value; });
  page.counter("client_batches_delivered_total", "Batches sent to the client.");
  samples(page, lines, [](Each each) { return each.delivered_batches; });
  page.counter("client_bytes_delivered_total", "Bytes of the batches sent to the client.");
  samples(page, lines, [](Each each) { return each.delivered_bytes; });
}

}  // namespace batchwright
