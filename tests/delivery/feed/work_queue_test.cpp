#include "daemon/delivery/feed/queue/work_queue.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "daemon/delivery/feed/queue/journal.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;
using namespace std::chrono_literals;

namespace {

constexpr QueueOwner kAnna{1};
constexpr QueueOwner kBert{2};
constexpr Fingerprint kQueuePlan{11, 22, 33};

/// Gives the next batch, or returns nothing.
std::optional<std::uint64_t> take(WorkQueue& queue, std::uint64_t lease, QueueOwner owner,
                                  std::uint64_t batches = 5) {
  const auto index = queue.ahead(0, batches);
  if (!index) return {};
  queue.give({lease}, *index, owner);
  return index->value;
}

std::unique_ptr<QueueJournal> open(const std::filesystem::path& path, WorkQueue& queue) {
  auto journal = QueueJournal::open(path.string(), kQueuePlan, false, queue);
  REQUIRE_MESSAGE(journal, (journal ? "" : journal.error().message));
  return std::move(*journal);
}

std::string refusal(const std::filesystem::path& path, const Fingerprint& plan,
                    bool data_may_grow = false) {
  WorkQueue queue;
  const auto journal = QueueJournal::open(path.string(), plan, data_may_grow, queue);
  return journal ? "" : journal.error().message;
}

}  // namespace

TEST_CASE("delivery: a queue gives each batch once, and what comes back before all others") {
  WorkQueue queue;
  CHECK(take(queue, 1, kAnna) == 0);
  CHECK(take(queue, 2, kAnna) == 1);
  CHECK(take(queue, 3, kBert) == 2);
  CHECK(queue.done({2}, kAnna));
  CHECK_FALSE(queue.done({2}, kAnna));
  CHECK_FALSE(queue.done({3}, kAnna));
  queue.come_back({1});
  CHECK(queue.distance(BatchIndex{0}) == 0);
  CHECK(queue.distance(BatchIndex{1}) == std::nullopt);
  CHECK(queue.distance(BatchIndex{3}) == 1);
  CHECK(take(queue, 4, kBert) == 0);
  CHECK(take(queue, 5, kBert) == 3);
  CHECK(take(queue, 6, kBert) == 4);
  CHECK(take(queue, 7, kBert) == std::nullopt);
  CHECK(queue.exhausted(5));
  CHECK(queue.done_count() == 1);
  CHECK(queue.out_beside(kBert) == 0);
  for (const std::uint64_t lease : std::vector<std::uint64_t>{3, 4, 5, 6})
    CHECK(queue.done({lease}, kBert));
  CHECK(queue.over(5));
}

TEST_CASE("delivery: a queue keeps what a client that is away holds, and no longer than told") {
  WorkQueue queue;
  take(queue, 1, kAnna);
  take(queue, 2, kAnna);
  take(queue, 3, kBert);
  const WorkQueue::Time now{};
  CHECK_FALSE(queue.next_return());
  queue.keep(kAnna, now + 2s);
  CHECK(queue.next_return() == now + 2s);
  CHECK(queue.ahead(0, 5)->value == 3);
  SUBCASE("it comes back with one of two: the other never reached it") {
    const std::vector<LeaseNumber> held = {{2}, {3}, {99}};
    CHECK(queue.claim(kAnna, held) == std::vector<LeaseNumber>{{2}});
    CHECK(queue.ahead(0, 5)->value == 0);
    CHECK(queue.done({2}, kAnna));
  }
  SUBCASE("it does not come back") {
    CHECK(queue.due(now + 1s).empty());
    const auto due = queue.due(now + 2s);
    REQUIRE(due.size() == 2);
    for (const auto& [lease, owner] : due) {
      CHECK(owner == kAnna);
      queue.come_back(lease);
    }
    CHECK(queue.due(now + 2s).empty());
    CHECK(queue.ahead(0, 5)->value == 0);
    CHECK(queue.ahead(1, 5)->value == 1);
    CHECK(queue.out_beside(kAnna) == 1);
  }
}

TEST_CASE("delivery: who comes and goes puts off nobody else's return") {
  WorkQueue queue;
  take(queue, 1, kAnna);
  take(queue, 2, kBert);
  const WorkQueue::Time now{};
  queue.keep(kAnna, now + 2s);
  for (int i = 1; i <= 5; ++i) {
    queue.keep(kBert, now + i * 1s + 2s);
    const std::vector<LeaseNumber> held = {{2}};
    CHECK(queue.claim(kBert, held) == held);
    queue.keep(kAnna, now + 60s);  // it is kept already
  }
  CHECK(queue.next_return() == now + 2s);
  REQUIRE(queue.due(now + 2s).size() == 1);
  queue.come_back(queue.due(now + 2s)[0].first);
  CHECK(queue.ahead(0, 5)->value == 0);
  CHECK_FALSE(queue.next_return());
}

TEST_CASE("delivery: a journal gives back the queue it was told of") {
  const TemporaryFolder folder;
  {
    WorkQueue queue;
    const auto journal = open(folder / "j", queue);
    REQUIRE(journal->given({7}, BatchIndex{0}, kAnna));
    REQUIRE(journal->given({8}, BatchIndex{1}, kBert));
    REQUIRE(journal->given({9}, BatchIndex{2}, kBert));
    REQUIRE(journal->done({8}, kBert));
    REQUIRE(journal->given({10}, BatchIndex{0}, kBert));  // it had come back
  }
  WorkQueue queue;
  const auto journal = open(folder / "j", queue);
  CHECK(journal->next_lease() == LeaseNumber{11});
  CHECK(queue.epoch() == Epoch{0});
  CHECK(queue.done_count() == 1);
  CHECK(queue.out().size() == 2);
  CHECK(queue.out().at({9}).kept_until);
  CHECK(queue.out().at({10}).index == BatchIndex{0});
  CHECK(queue.ahead(0, 5)->value == 3);
}

TEST_CASE("delivery: a journal goes on from epoch to epoch, and lease numbers with it") {
  const TemporaryFolder folder;
  {
    WorkQueue queue;
    const auto journal = open(folder / "j", queue);
    REQUIRE(journal->given({1}, BatchIndex{0}, kAnna));
    auto begun = journal->beginning(Epoch{1}, kQueuePlan)();
    REQUIRE(begun);
    journal->take_up(std::move(*begun));
    REQUIRE(journal->given({2}, BatchIndex{0}, kAnna));
  }
  WorkQueue queue;
  const auto journal = open(folder / "j", queue);
  CHECK(queue.epoch() == Epoch{1});
  CHECK(queue.out().size() == 1);
  CHECK(journal->next_lease() == LeaseNumber{3});
}

TEST_CASE("delivery: a batch that was given up goes to others first, and says how often it was") {
  WorkQueue queue;
  CHECK(take(queue, 1, kAnna) == 0);
  CHECK(queue.attempt(BatchIndex{0}) == 1);
  CHECK_FALSE(queue.give_up({1}, kBert));
  CHECK(queue.give_up({1}, kAnna));
  CHECK_FALSE(queue.give_up({1}, kAnna));
  CHECK(queue.attempt(BatchIndex{0}) == 2);
  CHECK(queue.next_for(kAnna, 5) == BatchIndex{1});
  CHECK(queue.next_for(kBert, 5) == BatchIndex{0});
  CHECK(queue.next_for(kAnna, 1) == BatchIndex{0});  // there is no other
  CHECK(take(queue, 2, kBert) == 0);
  CHECK(queue.done({2}, kBert));
  CHECK(queue.undone().empty());
  CHECK(queue.done_count() == 1);
}

TEST_CASE("delivery: a batch that is set aside counts as done, and is given to nobody") {
  WorkQueue queue;
  CHECK(take(queue, 1, kAnna, 1) == 0);
  CHECK_FALSE(queue.set_aside({1}, kBert));
  CHECK(queue.set_aside({1}, kAnna));
  CHECK(queue.over(1));
  CHECK(queue.undone().at(0).set_aside);
  queue.begin(Epoch{1});
  CHECK(queue.undone().empty());
}

TEST_CASE("delivery: a journal tells what was given up and what was set aside") {
  const TemporaryFolder folder;
  {
    WorkQueue queue;
    const auto journal = open(folder / "j", queue);
    REQUIRE(journal->given({1}, BatchIndex{0}, kAnna));
    REQUIRE(journal->given({2}, BatchIndex{1}, kAnna));
    REQUIRE(journal->returned({1}, BatchIndex{0}, kAnna));
    REQUIRE(journal->set_aside({2}, kAnna));
  }
  WorkQueue queue;
  const auto journal = open(folder / "j", queue);
  CHECK(queue.out().empty());
  CHECK(queue.done_count() == 1);
  CHECK(queue.attempt(BatchIndex{0}) == 2);
  CHECK(queue.gave_up(kAnna, BatchIndex{0}));
  CHECK(queue.undone().at(1).set_aside);
}

TEST_CASE("delivery: a journal that was cut anywhere behind its epoch holds what came before") {
  const TemporaryFolder folder;
  {
    WorkQueue queue;
    const auto journal = open(folder / "j", queue);
    for (std::uint64_t i = 0; i < 5; ++i) REQUIRE(journal->given({i + 1}, BatchIndex{i}, kAnna));
  }
  const auto size = std::filesystem::file_size(folder / "j");
  for (std::uintmax_t at = 64; at < size; at += 7) {
    std::filesystem::copy_file(folder / "j", folder / "cut",
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(folder / "cut", at);
    WorkQueue queue;
    const auto journal = open(folder / "cut", queue);
    CHECK(queue.out().size() == (at - 64) / 32);
    CHECK(journal->losses().records == 0);
    REQUIRE(journal->given({100}, BatchIndex{queue.out().size()}, kBert));
  }
}

TEST_CASE("delivery: a journal that is damaged is refused, and stays as it is") {
  const TemporaryFolder folder;
  {
    WorkQueue queue;
    const auto journal = open(folder / "j", queue);
    for (std::uint64_t i = 0; i < 6; ++i) {
      REQUIRE(journal->given({i + 1}, BatchIndex{i}, kAnna));
      REQUIRE(journal->done({i + 1}, kAnna));
    }
  }
  const auto flip = [&folder](std::streamoff at) {
    std::fstream file(folder / "j", std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const int byte = file.get();
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 1));
  };
  const auto size = std::filesystem::file_size(folder / "j");
  for (std::streamoff record = 0; record < static_cast<std::streamoff>(size / 32) - 1; ++record) {
    flip(record * 32 + 9);
    CHECK(refusal(folder / "j", kQueuePlan).find("damaged") != std::string::npos);
    CHECK(std::filesystem::file_size(folder / "j") == size);
    flip(record * 32 + 9);
  }
  CHECK(refusal(folder / "j", kQueuePlan).empty());
  for (const std::uintmax_t cut : {63U, 32U, 31U, 1U}) {
    std::filesystem::resize_file(folder / "j", cut);
    CHECK(refusal(folder / "j", kQueuePlan) != "");
    CHECK(std::filesystem::file_size(folder / "j") == cut);
  }
}

TEST_CASE("delivery: what a power cut took of a journal is given again, and counted") {
  const TemporaryFolder folder;
  constexpr std::uint64_t kBatches = 254;  // two pages, with plan and epoch
  {
    WorkQueue queue;
    const auto journal = open(folder / "j", queue);
    for (std::uint64_t i = 0; i < kBatches; ++i) {
      REQUIRE(journal->given({i + 1}, BatchIndex{i}, kAnna));
    }
  }
  {
    std::fstream file(folder / "j", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4096 - 320);
    const std::string zeros(320, 0);
    file.write(zeros.data(), 320);
  }
  WorkQueue queue;
  const auto journal = open(folder / "j", queue);
  CHECK(journal->losses().records == 10);
  CHECK(journal->losses().batches == 10);
  CHECK(queue.out().size() == kBatches - 10);
  CHECK(queue.ahead(0, kBatches) == BatchIndex{116});
}

TEST_CASE("delivery: a journal of another plan, of another daemon, or none is refused") {
  const TemporaryFolder folder;
  WorkQueue queue;
  {
    const auto journal = open(folder / "j", queue);
    CHECK(refusal(folder / "j", kQueuePlan).find("in use by another daemon") != std::string::npos);
  }
  const std::string settings = refusal(folder / "j", {11, 23, 33});
  CHECK(settings.find("is of another plan: settings (or planner) changed") != std::string::npos);
  CHECK(settings.find("remove the file") != std::string::npos);
  CHECK(refusal(folder / "j", {12, 22, 33}).find("data changed") != std::string::npos);
  CHECK(refusal(folder / "j", {12, 22, 33}, true).empty());
  std::ofstream(folder / "text") << std::string(1000, 'x');
  CHECK(refusal(folder / "text", kQueuePlan).find("is not the journal of a queue") !=
        std::string::npos);
  CHECK(refusal(folder / "nowhere" / "j", kQueuePlan).find("No such file") != std::string::npos);
}
