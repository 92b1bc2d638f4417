#include "tests/delivery/test_server.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <utility>

namespace batchwright::test {

TestServer::TestServer(FeedSettings settings, ServerSettings server, std::size_t sequences,
                       const std::vector<std::uint32_t>& to_append)
    : TestServer(std::move(settings), std::move(server), sequences, to_append, {}) {}

TestServer::TestServer(FeedSettings settings, const Amend& amend,
                       const std::vector<std::uint32_t>& to_append)
    : TestServer(std::move(settings), ServerSettings{}, 40, to_append, amend) {}

TestServer::TestServer(FeedSettings settings, const std::filesystem::path& dataset)
    : TestServer(std::move(settings), ServerSettings{}, 0, {}, {}, dataset) {}

TestServer::TestServer(FeedSettings settings, ServerSettings server, std::size_t sequences,
                       const std::vector<std::uint32_t>& to_append, const Amend& amend,
                       const std::filesystem::path& dataset)
    : dataset_(dataset.empty() ? folder_ / "data" : dataset),
      lengths_(mixed_lengths(sequences, 50)) {
  if (!settings.live && dataset.empty()) make_small_dataset(dataset_, lengths_);
  if (!to_append.empty()) fork_writer(to_append);
  auto resources = prepare(settings);
  if (!resources) throw std::runtime_error(resources.error().message);
  if (amend) amend(dataset_, *resources);
  if (server.endpoints.empty()) server.endpoints = {endpoint()};
  server.version = "test";
  server_ = std::make_unique<Server>(loop_, std::move(server));
  server_->memory().set_left(std::uint64_t{1} << 30);
  server_->add_feed(std::move(settings), std::move(*resources));
  if (auto listening = server_->listen(); !listening) {
    throw std::runtime_error(listening.error().message);
  }
  thread_ = std::thread([this] { loop_.run(); });
}

Result<FeedResources> TestServer::prepare(const FeedSettings& settings) {
  constexpr std::uint64_t kMemory = std::uint64_t{1} << 30;
  if (settings.live) return prepare_live_feed(settings, kMemory);
  auto dataset = catalog_.open({dataset_});
  if (!dataset) return dataset.error();
  return prepare_feed(*dataset, settings, kMemory);
}

/// A process that reads a dataset cannot write to it; and it is forked before there are threads.
void TestServer::fork_writer(const std::vector<std::uint32_t>& lengths) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) throw std::runtime_error("pipe");
  writer_ = ::fork();
  if (writer_ == 0) {
    ::close(ends[1]);
    char byte = 0;
    if (::read(ends[0], &byte, 1) != 1) ::_exit(0);
    try {
      make_small_dataset(dataset_, lengths, lengths_.size());
    } catch (const std::exception&) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  ::close(ends[0]);
  to_writer_ = ends[1];
}

void TestServer::append() {
  int status = 1;
  if (::write(to_writer_, "!", 1) != 1 || ::waitpid(std::exchange(writer_, 0), &status, 0) < 0 ||
      status != 0) {
    throw std::runtime_error("the writer failed");
  }
}

TestServer::~TestServer() {
  if (to_writer_ >= 0) ::close(to_writer_);
  if (writer_ > 0) ::waitpid(writer_, nullptr, 0);
  stop();
}

void TestServer::stop() {
  if (!thread_.joinable()) return;
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
