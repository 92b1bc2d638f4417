#include "tests/delivery/test_server.h"

#include <stdexcept>

namespace batchwright::test {

TestServer::TestServer(FeedSettings settings, std::size_t sequences)
    : lengths_(mixed_lengths(sequences, 50)) {
  make_small_dataset(folder_ / "data", lengths_);
  auto dataset = catalog_.open({folder_ / "data"});
  if (!dataset) throw std::runtime_error(dataset.error().message);
  auto resources = prepare_feed(*dataset, settings, std::uint64_t{1} << 30);
  if (!resources) throw std::runtime_error(resources.error().message);
  ServerSettings server;
  server.endpoints = {endpoint()};
  server.version = "test";
  server_ = std::make_unique<Server>(loop_, std::move(server));
  server_->add_feed(std::move(settings), std::move(*resources));
  if (auto listening = server_->listen(); !listening) {
    throw std::runtime_error(listening.error().message);
  }
  thread_ = std::thread([this] { loop_.run(); });
}

TestServer::~TestServer() {
  boost::asio::post(loop_, [this] { loop_.stop(); });
  thread_.join();
}

FeedSettings sorted_feed(std::uint32_t size, std::uint32_t world) {
  FeedSettings settings;
  settings.name = "train";
  settings.plan.order = Order::sorted;
  settings.plan.size = size;
  settings.plan.world = world;
  return settings;
}

}  // namespace batchwright::test
