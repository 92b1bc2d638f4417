#include "daemon/pages/plan_pages.h"

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <future>
#include <mutex>
#include <utility>
#include <vector>

#include "tests/delivery/test_server.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

using Clock = std::chrono::steady_clock;

Target plan_of_epoch(const std::string& epoch) {
  Target target;
  target.names = {"train"};
  target.query = {{"epoch", epoch}};
  return target;
}

/// Pages of a server, asked and freed on its loop.
class AskedPages {
 public:
  AskedPages(TestServer& server, PlanPages::Make make) : server_(server) {
    server_.ask([&](Server& s) {
      pages_ = std::make_shared<PlanPages>(server_.loop(), s, std::move(make));
      return true;
    });
  }
  ~AskedPages() {
    server_.ask([this](Server&) {
      pages_.reset();
      return true;
    });
  }
  AskedPages(const AskedPages&) = delete;
  AskedPages& operator=(const AskedPages&) = delete;

  std::future<Reply> ask(const std::string& epoch) {
    auto answer = std::make_shared<std::promise<Reply>>();
    server_.ask([&](Server&) {
      pages_->answer(plan_of_epoch(epoch), [answer](Reply reply) { answer->set_value(reply); });
      return true;
    });
    return answer->get_future();
  }

 private:
  TestServer& server_;
  std::shared_ptr<PlanPages> pages_;
};

}  // namespace

TEST_CASE("daemon: a plan's page and a feed's plan do not wait for each other") {
  TestServer server(sorted_feed(4));
  std::promise<void> let_go;
  const std::shared_future<void> held = let_go.get_future().share();
  SUBCASE("a page while the planning threads are busy") {
    const BusyPlanner busy(server);
    AskedPages pages(server, plan_figures);
    auto page = pages.ask("7");
    REQUIRE(page.wait_for(std::chrono::seconds(10)) == std::future_status::ready);
    CHECK(page.get().status == 200);
  }
  SUBCASE("a plan while a page is made") {
    AskedPages pages(server, [held](const PlanQuestion& question) {
      held.wait();
      return plan_figures(question);
    });
    auto page = pages.ask("7");
    std::promise<void> planned;
    server.ask([&planned](Server& s) {
      s.planner().run([&planned] { planned.set_value(); });
      return true;
    });
    CHECK(planned.get_future().wait_for(std::chrono::seconds(10)) == std::future_status::ready);
    let_go.set_value();
    CHECK(page.get().status == 200);
  }
}

TEST_CASE("daemon: pages of ever new epochs have half a core at most") {
  TestServer server(sorted_feed(4));
  std::mutex mutex;
  std::vector<std::pair<Clock::time_point, Clock::time_point>> times;
  AskedPages pages(server, [&](const PlanQuestion&) {
    const auto began = Clock::now();
    while (Clock::now() - began < std::chrono::milliseconds(20)) {
    }
    const std::lock_guard lock(mutex);
    times.emplace_back(began, Clock::now());
    return Result<std::string>("{}");
  });
  std::array<std::future<Reply>, 3> asked{pages.ask("7"), pages.ask("8"), pages.ask("9")};
  for (auto& page : asked) CHECK(page.get().status == 200);
  const std::lock_guard lock(mutex);
  REQUIRE(times.size() == 3);
  for (std::size_t i = 1; i < times.size(); ++i) {
    const auto [began, ended] = times[i - 1];
    CHECK(times[i].first - ended >= ended - began);
  }
}
