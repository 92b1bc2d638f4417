#pragma once

#include <algorithm>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "daemon/delivery/delivery.h"
#include "tests/support/small_dataset.h"
#include "tests/support/temporary_folder.h"

namespace batchwright::test {

/// A server with its event loop on a thread, over a small dataset, or with a live feed.
class TestServer {
 public:
  explicit TestServer(FeedSettings settings, std::size_t sequences = 40,
                      const std::vector<std::uint32_t>& to_append = {})
      : TestServer(std::move(settings), ServerSettings{}, sequences, to_append) {}
  /// Listens at endpoint(), if `server` names no other endpoints.
  /// `to_append`: lengths of the sequences that another process is to append later.
  TestServer(FeedSettings settings, ServerSettings server, std::size_t sequences = 40,
             const std::vector<std::uint32_t>& to_append = {});
  /// What is done to the dataset's folder and the feed's resources before they are served.
  using Amend = std::function<void(const std::filesystem::path& dataset, FeedResources& resources)>;
  TestServer(FeedSettings settings, const Amend& amend,
             const std::vector<std::uint32_t>& to_append = {});
  /// Serves a dataset that is there, in place of one of its own.
  TestServer(FeedSettings settings, const std::filesystem::path& dataset);
  ~TestServer();
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  std::string endpoint() const { return "ipc://" + (folder_ / "s").string(); }
  std::string arena_socket() const { return (folder_ / "s.arena").string(); }
  const std::filesystem::path& dataset() const { return dataset_; }
  const std::vector<std::uint32_t>& lengths() const { return lengths_; }

  /// The other writer appends its sequences, and commits.
  void append();
  /// The event loop ends, as with its daemon: a client that leaves afterwards is not seen to leave.
  void stop();

  boost::asio::io_context& loop() { return loop_; }
  /// What `look(server)` returns, computed on the event loop.
  template <class Look>
  auto ask(Look look) {
    std::promise<decltype(look(*server_))> answer;
    boost::asio::post(loop_, [&] { answer.set_value(look(*server_)); });
    return answer.get_future().get();
  }
  ServerStatus status() {
    return ask([](const Server& s) { return s.status(std::chrono::steady_clock::now()); });
  }
  /// Of its first feed.
  FeedStatus feed() { return status().feeds.at(0); }
  std::uint64_t count(FeedCounter counter) { return feed().counters.get(counter); }
  /// The n-th of those it listens at, with its port.
  std::string endpoint(std::size_t n) {
    return ask([n](const Server& s) { return s.endpoints().at(n); });
  }
  std::size_t sessions() { return status().sessions.size(); }
  bool has_session(SessionId id) {
    const std::vector<SessionStatus> all = status().sessions;
    return std::any_of(all.begin(), all.end(),
                       [id](const SessionStatus& each) { return each.id == id; });
  }
  std::uint32_t held_slots() { return feed().slots.held; }
  /// Waits, at most 10 s, until `holds(*this)`.
  template <class Holds>
  bool eventually(Holds holds) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!holds(*this)) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }

 private:
  TestServer(FeedSettings settings, ServerSettings server, std::size_t sequences,
             const std::vector<std::uint32_t>& to_append, const Amend& amend,
             const std::filesystem::path& dataset = {});
  Result<FeedResources> prepare(const FeedSettings& settings);
  void fork_writer(const std::vector<std::uint32_t>& lengths);

  TemporaryFolder folder_;
  std::filesystem::path dataset_;
  pid_t writer_ = 0;  ///< Waits for a byte, appends, and ends.
  int to_writer_ = -1;
  std::vector<std::uint32_t> lengths_;
  Catalog catalog_;
  boost::asio::io_context loop_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      loop_.get_executor()};
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

/// A feed that cuts `size` sequences a batch out of the sorted order.
FeedSettings sorted_feed(std::uint32_t size, std::uint32_t world = 1);

/// Nothing is planned as long as it lives: every planning thread waits for its end.
class BusyPlanner {
 public:
  explicit BusyPlanner(TestServer& server) {
    const std::shared_future<void> end = end_.get_future().share();
    const auto begun = std::make_shared<std::atomic<std::size_t>>(0);
    server.ask([&end, &begun](Server& s) {
      // More than there are threads: one that has just ended a work may still count as busy.
      for (std::size_t i = 0; i < 2 * Planner::kThreads; ++i) {
        s.planner().run([end, begun] {
          ++*begun;
          end.wait();
        });
      }
      return true;
    });
    const auto all_busy = [&begun](TestServer&) { return *begun == Planner::kThreads; };
    if (!server.eventually(all_busy)) throw std::runtime_error("a planning thread has no work");
  }
  ~BusyPlanner() { end_.set_value(); }
  BusyPlanner(const BusyPlanner&) = delete;
  BusyPlanner& operator=(const BusyPlanner&) = delete;

 private:
  std::promise<void> end_;
};

}  // namespace batchwright::test
