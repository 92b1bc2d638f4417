// What a delivery costs the event loop, by the number of clients that train in step.
//   loop_bench DATASET [MAX_LEAD] | grep "us a delivery"
// One feed, its subscriptions, and the threads that assemble; no sockets. Each batch is released in
// a turn of the loop of its own, as those of trainers that compute are, and a turn's processor time
// is counted. Bounded: 20,000 deliveries for each number of clients.

#include <time.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <utility>

#include "daemon/delivery/delivery.h"

namespace {

using namespace batchwright;

constexpr std::size_t kDeliveries = 20'000;

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

/// What the feed sent and its clients have not released yet.
struct Sent {
  SessionId session;
  std::uint64_t lease = 0;
};

FeedSettings settings_with(std::uint32_t max_lead) {
  FeedSettings settings;
  settings.name = "bench";
  settings.plan.order = Order::random;
  settings.plan.size = 4;
  settings.slots = 64;
  settings.max_lead = max_lead;
  return settings;
}

class Scene {
 public:
  Scene(const std::shared_ptr<Dataset>& dataset, FeedSettings settings, std::size_t clients)
      : memory_(std::make_shared<MemoryBudget>()), planner_(loop_), assembler_(2) {
    memory_->set_left(std::uint64_t{4} << 30);
    auto resources = prepare_feed(dataset, settings, std::uint64_t{4} << 30);
    if (!resources) throw std::runtime_error(resources.error().message);
    feed_ =
        std::make_unique<Feed>(ArenaNumber{1}, std::move(settings), std::move(*resources), ports());
    feed_->start();
    for (std::size_t i = 1; i <= clients; ++i) subscribe(SessionId{i});
  }
  ~Scene() {
    feed_->retire({ErrorCode::disconnected, "the end"});
    while (!feed_->at_rest()) loop_.run_one();
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  /// Processor time of the loop for each of so many deliveries.
  double seconds_a_delivery() {
    for (std::size_t i = 0; i < kDeliveries / 10; ++i) turn();
    const double before = thread_seconds();
    for (std::size_t i = 0; i < kDeliveries; ++i) turn();
    return (thread_seconds() - before) / kDeliveries;
  }

 private:
  FeedPorts ports() {
    const auto send = [this](SessionId session, const flatbuffers::DetachedBuffer& message) {
      const auto read = ControlMessage::decode(
          {reinterpret_cast<const std::byte*>(message.data()), message.size()});
      const auto* ticket = read ? read->as<wire::Delivery>() : nullptr;
      if (ticket != nullptr) sent_.push_back({session, ticket->lease()});
    };
    return {loop_, planner_, assembler_, readahead_, 2, send, {}, memory_, log_, {}};
  }

  void subscribe(SessionId session) {
    wire::SubscribeT subscribe;
    subscribe.subscription = 1;
    subscribe.feed = "bench";
    const auto message = encode(std::move(subscribe));
    const auto read = ControlMessage::decode(
        {reinterpret_cast<const std::byte*>(message.data()), message.size()});
    ClientInfo client;
    client.session = session;
    const auto done = feed_->subscribe(client, *read->as<wire::Subscribe>());
    if (!done) throw std::runtime_error(done.error().message);
  }

  /// One client releases a batch; what follows from that is done before the next one does.
  void turn() {
    while (sent_.empty()) loop_.run_one();
    wire::ReleaseT release;
    const Sent next = sent_.front();
    sent_.pop_front();
    release.subscription = 1;
    release.leases = {next.lease};
    const auto message = encode(std::move(release));
    const auto read = ControlMessage::decode(
        {reinterpret_cast<const std::byte*>(message.data()), message.size()});
    feed_->release(next.session, *read->as<wire::Release>());
    loop_.poll();
  }

  boost::asio::io_context loop_{1};
  /// Without it the loop stops whenever it waits for another thread alone.
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      loop_.get_executor()};
  std::shared_ptr<MemoryBudget> memory_;
  EventLog log_;
  Planner planner_;
  Readahead readahead_;
  std::deque<Sent> sent_;
  std::unique_ptr<Feed> feed_;
  Assembler assembler_;  ///< Ends first, for it works in the feed's slots.
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: loop_bench DATASET [MAX_LEAD]\n");
    return 2;
  }
  Catalog catalog;
  auto dataset = catalog.open({argv[1]});
  if (!dataset) {
    std::fprintf(stderr, "%s\n", dataset.error().message.c_str());
    return 1;
  }
  const auto max_lead = static_cast<std::uint32_t>(argc > 2 ? std::atoi(argv[2]) : 0);
  for (const std::size_t clients : {1U, 8U, 64U, 256U, 768U}) {
    Scene scene(*dataset, settings_with(max_lead), clients);
    std::printf("%4zu clients: %6.2f us a delivery\n", clients, scene.seconds_a_delivery() * 1e6);
    std::fflush(stdout);
  }
  return 0;
}
