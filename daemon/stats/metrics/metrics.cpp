#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "daemon/stats/metrics/metric_rows.h"

namespace batchwright {
namespace {

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

/// What the sources of rows read.
struct Scrape {
  MetricsPage& page;
  const StatsSource& daemon;
  std::vector<Trainer> trainers;

  void write(std::string_view labels, Number value) {
    std::visit([&](auto number) { page.sample(labels, number); }, value);
  }
  void write(MetricsPage::Labels labels, Number value) {
    write(std::string_view(MetricsPage::prepare(labels)), value);
  }

  void operator()(Number (*of)(const StatsSource&)) { write(std::string_view(), of(daemon)); }
  void operator()(Number (*of)(const FeedStatus&)) {
    for (const FeedStatus& feed : daemon.feeds) write({{"feed", feed.name}}, of(feed));
  }
  void operator()(Number (*of)(const LiveStatus&)) {
    for (const FeedStatus& feed : daemon.feeds) {
      if (feed.live) write({{"feed", feed.name}}, of(*feed.live));
    }
  }
  void operator()(Number (*of)(const Trainer&)) {
    for (const Trainer& each : trainers) write(each.labels, of(each));
  }
  void operator()(Number (*of)(const ReadDiskStats&)) {
    for (const ReadDiskStats& disk : daemon.readahead.disks) {
      write({{"device", disk.device}}, of(disk));
    }
  }
  /// A file that could not be measured has no line: 0 bytes would be an alert.
  void operator()(Number (*of)(const DiskStats&)) {
    for (const DiskStats& disk : daemon.disks) {
      write({{"feed", disk.feed}, {"file", disk.file}}, of(disk));
    }
  }
  void operator()(FeedCounter counter) {
    for (const FeedStatus& feed : daemon.feeds) {
      write({{"feed", feed.name}}, feed.counters.get(counter));
    }
  }
  void operator()(ModeCounter counter) {
    for (const FeedStatus& feed : daemon.feeds) {
      for (const wire::Mode mode : kModes) {
        write({{"feed", feed.name}, {"mode", name_of(mode)}}, feed.counters.get(mode, counter));
      }
    }
  }
  void operator()(const FeedChoice& choice) {
    for (const FeedStatus& feed : daemon.feeds) {
      const std::string_view is = choice.of(feed);
      for (const std::string_view name : choice.all) {
        write({{"feed", feed.name}, {choice.label, name}}, std::uint64_t{name == is});
      }
    }
  }
  void operator()(const MetricLines& lines) { lines.write(page, daemon); }
};

}  // namespace

std::string render_metrics(const StatsSource& source) {
  MetricsPage page;
  Scrape scrape{page, source, trainers_of(source.feeds)};
  // Row by row: Prometheus wants the samples of a metric together.
  for (const MetricRow& row : metric_rows()) {
    page.begin(full_name(row), row.help, row.type);
    std::visit(scrape, row.source);
  }
  return page.text();
}

}  // namespace batchwright
