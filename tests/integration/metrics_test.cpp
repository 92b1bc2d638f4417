#include <doctest/doctest.h>

#include <atomic>
#include <boost/json.hpp>
#include <thread>

#include "tests/integration/daemon_process.h"
#include "tests/integration/trainer.h"

using namespace batchwright::test;
namespace json = boost::json;

namespace {

constexpr const char* kServedPlan = "[feed.plan]\ncut = \"fixed\"\nsize = 4\n";

json::value feed(DaemonProcess& daemon) { return json::parse(daemon.stats()).at("feeds").at(0); }

double number(const json::value& object, const char* key) {
  return object.at(key).to_number<double>();
}

double waited(DaemonProcess& daemon, const char* key) {
  const auto page = feed(daemon);
  const auto& subscribers = page.at("subscribers").as_array();
  return subscribers.empty() ? 0.0 : number(subscribers[0], key);
}

std::string verdict(DaemonProcess& daemon) {
  return std::string(feed(daemon).at("verdict").at("text").as_string());
}

/// The value of the metric's only line; -1 without it.
double metric(const std::string& page, const std::string& name) {
  const std::size_t at = page.find("\nbatchwright_" + name);
  if (at == std::string::npos) return -1.0;
  const std::size_t end = page.find('\n', at + 1);
  const std::size_t space = page.rfind(' ', end);
  return std::stod(page.substr(space, end - space));
}

}  // namespace

TEST_CASE("integration: a client that holds its credit is what the daemon waits for") {
  DaemonProcess daemon(std::string("slots = 8\n") + kServedPlan);
  REQUIRE(daemon.start());
  CHECK(verdict(daemon) == "idle");
  Trainer trainer(daemon.endpoint());
  trainer.subscribe([](bw_subscribe_options& options) { options.window = 2; });
  REQUIRE(trainer.next() == BW_OK);
  REQUIRE(trainer.next() == BW_OK);
  // It does not release, and the figure grows while that lasts.
  REQUIRE(eventually([&] { return waited(daemon, "waited_for_client_seconds") > 0.2; }));
  const double before = waited(daemon, "waited_for_client_seconds");
  REQUIRE(eventually([&] { return waited(daemon, "waited_for_client_seconds") > before; }));
  REQUIRE(eventually([&] { return waited(daemon, "held_seconds") > 0.2; }));
  CHECK(eventually([&] { return verdict(daemon) == "trainer-bound"; }));
  const json::value page = feed(daemon);
  const json::value& subscriber = page.at("subscribers").at(0);
  CHECK(subscriber.at("waiting") == "client");
  CHECK(number(subscriber, "credit_batches") == 0);
  CHECK(number(subscriber, "delivered_batches") == 3);
  CHECK(number(subscriber, "waited_for_daemon_seconds") <
        number(subscriber, "waited_for_client_seconds"));
  CHECK(page.at("modes").at("replica").at("batches") == 3);
  CHECK(number(page.at("stages").at("deliver"), "count") == 3);
  CHECK(number(page.at("stages").at("assemble"), "count") >= 2);
  const std::string metrics = daemon.page("/metrics");
  CHECK(metric(metrics, "daemon_waited_seconds_total{") > before);
  CHECK(metric(metrics, "client_credit_batches{") == 0.0);
  CHECK(metric(metrics, "events_total{event=\"client_connected\"}") == 1.0);
}

TEST_CASE("integration: a client that takes more than one thread makes waits for the daemon") {
  // Batches of 16 MiB, and credit for all slots but one: making a batch takes far longer than
  // handing it over, and the daemon never waits for a release.
  DaemonProcess daemon(std::string("slots = 4\n") + kServedPlan, 0);
  make_small_dataset(daemon.dataset(), std::vector<std::uint32_t>(12, 262'144));
  const std::string threads = "[daemon]\nassembly_threads = 1\n";
  daemon.config().replace(0, std::string("[daemon]\n").size(), threads);
  REQUIRE(daemon.start());
  std::atomic<bool> enough{false};
  std::thread hungry([&] {
    Trainer trainer(daemon.endpoint());
    trainer.subscribe([](bw_subscribe_options& options) { options.window = 3; });
    while (!enough && trainer.next() == BW_OK) {
    }
  });
  const bool grows = eventually([&] { return waited(daemon, "waited_for_daemon_seconds") > 0.5; });
  const bool bound = eventually([&] {
    const std::string text = verdict(daemon);
    return text == "assembly-bound" || text == "storage-bound" || text == "processor-bound";
  });
  const std::string metrics = daemon.page("/metrics");
  enough = true;
  hungry.join();
  CHECK(grows);
  CHECK(bound);
  CHECK(metric(metrics, "client_waited_seconds_total{") > 0.5);
  CHECK(metric(metrics, "stage_seconds_count{feed=\"train\",stage=\"readahead\"}") >= 0.0);
  CHECK(metric(metrics, "readahead_window_bytes{device=\"") > 0.0);
  CHECK(metric(metrics, "readahead_ahead_bytes") >= 0.0);
}

TEST_CASE("integration: a page that is opened late learns how fast the feed was before") {
  DaemonProcess daemon(std::string("slots = 8\n") + kServedPlan);
  REQUIRE(daemon.start());
  const auto points = [&daemon] {
    return json::parse(daemon.page("/history")).at("bytes_per_second").at("train").as_array();
  };
  REQUIRE(eventually([&] { return points().size() >= 3; }));
  const json::array past = points();
  for (std::size_t i = 1; i < past.size(); ++i) {
    CHECK(past[i].at(0).to_number<double>() > past[i - 1].at(0).to_number<double>());
  }
}

TEST_CASE("integration: a subscription that goes takes its lines along") {
  DaemonProcess daemon(std::string("slots = 8\n") + kServedPlan);
  REQUIRE(daemon.start());
  {
    Trainer trainer(daemon.endpoint());
    trainer.subscribe([](bw_subscribe_options&) {});
    REQUIRE(trainer.next() == BW_OK);
    CHECK(metric(daemon.page("/metrics"), "client_held_batches{") >= 1.0);
  }
  CHECK(eventually([&] { return feed(daemon).at("subscribers").as_array().empty(); }));
  std::string metrics;
  CHECK(eventually([&] {
    metrics = daemon.page("/metrics");
    return metric(metrics, "client_held_batches{") == -1.0;
  }));
  CHECK(metric(metrics, "sessions ") == 0.0);
  CHECK(metric(metrics, "batches_delivered_total{feed=\"train\",mode=\"replica\"}") >= 1.0);
  CHECK(verdict(daemon) == "idle");
}

TEST_CASE("integration: figures asked for again and again are those of a moment ago") {
  DaemonProcess daemon("");
  REQUIRE(daemon.start());
  // A page that is made again counts the requests before it.
  for (const char* path : {"/stats", "/metrics"}) {
    CAPTURE(path);
    CHECK(eventually([&] { return daemon.page(path) == daemon.page(path); }));
    const std::string first = daemon.page(path);
    CHECK(eventually([&] { return daemon.page(path) != first; }));
  }
}

TEST_CASE("integration: what the plan promised stays when the last job has ended") {
  DaemonProcess daemon("[feed.plan]\norder = \"random\"\nsize = 4\n");
  REQUIRE(daemon.start());
  {
    Trainer trainer(daemon.endpoint());
    trainer.subscribe([](bw_subscribe_options& options) { options.epochs = 3; });
    while (trainer.next() == BW_OK) {
    }
  }
  const auto left = [&] {
    const json::value page = feed(daemon);
    return page.at("subscribers").as_array().empty();
  };
  REQUIRE(eventually(left));
  const json::value page = feed(daemon);
  const json::array& plans = page.at("plans").as_array();
  REQUIRE(plans.size() == 1);
  CHECK(plans[0].at("epoch") == 2);
  CHECK(metric(daemon.page("/metrics"), "plan_padded_share{") ==
        doctest::Approx(number(plans[0], "padded_share")));
  CHECK(number(plans[0], "padded_share") > 0.0);
  // A client that wants another epoch gets it; that is then the last, not what was planned ahead.
  {
    Trainer again(daemon.endpoint());
    again.subscribe([](bw_subscribe_options& options) { options.epochs = 0; });
    for (int i = 0; i < 20; ++i) REQUIRE(again.next() == BW_OK);
    CHECK(eventually([&] { return feed(daemon).at("plans").as_array().size() == 2; }));
  }
  REQUIRE(eventually(left));
  const json::value then = feed(daemon);
  REQUIRE(then.at("plans").as_array().size() == 1);
  CHECK(then.at("plans").at(0).at("epoch") == 1);
}
