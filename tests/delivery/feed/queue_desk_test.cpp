#include "daemon/delivery/feed/queue/queue_desk.h"

#include <doctest/doctest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;
using namespace std::chrono_literals;

namespace {

constexpr Fingerprint kDeskPlan{11, 22, 33};
constexpr std::uint64_t kBatches = 5;

/// Five batches of an epoch of the queue.
EpochSource source_of(const Fingerprint& plan = kDeskPlan) {
  static const std::vector<std::uint32_t> lengths(10, 5);
  PlanSettings settings;
  settings.size = 2;
  auto planned = plan_epoch(lengths, settings, Epoch{0});
  REQUIRE(planned);
  return {Epoch{0}, plan, nullptr, *planned};
}

/// A desk with a queue in this folder.
QueueDesk open_in(const TemporaryFolder& folder, LeaseNumber first_lease = {1}) {
  WorkQueue queue;
  auto journal = QueueJournal::open((folder / "journal").string(), kDeskPlan, false, queue);
  REQUIRE(journal);
  auto ledger = Ledger::open((folder / "ledger").string(), "train");
  REQUIRE(ledger);
  return {queue, std::move(*journal), std::move(*ledger), first_lease};
}

struct Client {
  explicit Client(std::uint64_t token, bool in_queue = true)
      : info{SessionId{token}, token, "test", 1, false},
        holder{info, {1}, queue_owner(token, {1}), in_queue} {}
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// The lease of the queue's next batch.
  LeaseNumber take(QueueDesk& desk) const {
    const auto index = desk.queue().ahead(0, kBatches);
    REQUIRE(index);
    const auto lease = desk.give(holder, source_of(), {Epoch{0}, *index}, false);
    REQUIRE(lease);
    return *lease;
  }

  ClientInfo info;
  QueueDesk::Holder holder;
};

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("delivery: a lease is never given twice, not by another daemon either") {
  const TemporaryFolder folder;
  const Client anna(1);
  {
    QueueDesk desk = open_in(folder, {100});
    CHECK(anna.take(desk) == LeaseNumber{100});
    CHECK(anna.take(desk) == LeaseNumber{101});
  }
  QueueDesk desk = open_in(folder, {50});  // its clock is behind
  CHECK(anna.take(desk) == LeaseNumber{102});
}

TEST_CASE("delivery: what is done is noted before it has an effect, and is done only once") {
  const TemporaryFolder folder;
  const Client anna(1);
  const Client bert(2);
  {
    QueueDesk desk = open_in(folder);
    const LeaseNumber lease = anna.take(desk);
    CHECK(*desk.done(bert.holder, lease) == false);
    CHECK(*desk.done(anna.holder, lease) == true);
    CHECK(*desk.done(anna.holder, lease) == false);
  }
  const QueueDesk desk = open_in(folder);
  CHECK(desk.queue().done_count() == 1);
  CHECK(desk.queue().out().empty());
}

TEST_CASE("delivery: the ledger tells a batch that is done from one that is only released") {
  const TemporaryFolder folder;
  const Client worker(1);
  const Client replica(2, false);
  QueueDesk desk = open_in(folder);
  REQUIRE(desk.released(worker.holder, worker.take(desk)));
  const auto lease = desk.give(replica.holder, source_of(), {Epoch{0}, BatchIndex{3}}, false);
  REQUIRE(lease);
  REQUIRE(desk.released(replica.holder, *lease));
  const auto lines = lines_of(folder / "ledger");
  REQUIRE(lines.size() == 4);
  CHECK(lines[1].find("\"done\"") != std::string::npos);
  CHECK(lines[3].find("\"released\"") != std::string::npos);
  CHECK(desk.queue().done_count() == 1);
}

TEST_CASE("delivery: a batch that is given back undone is another's, until it is set aside") {
  const TemporaryFolder folder;
  const Client anna(1);
  const Client bert(2);
  {
    QueueDesk desk = open_in(folder);
    const auto first = desk.gave_up(anna.holder, anna.take(desk), 2);
    REQUIRE((first && *first));
    CHECK((*first)->index == BatchIndex{0});
    CHECK((*first)->times == 1);
    CHECK_FALSE((*first)->set_aside);
  }
  QueueDesk desk = open_in(folder);  // the journal has counted
  const LeaseNumber lease = bert.take(desk);
  CHECK(desk.queue().out().at(lease).index == BatchIndex{0});
  const auto second = desk.gave_up(bert.holder, lease, 2);
  REQUIRE((second && *second));
  CHECK((*second)->set_aside);
  CHECK(desk.queue().done_count() == 1);
  CHECK(desk.queue().ahead(0, kBatches) == BatchIndex{1});
  const auto lines = lines_of(folder / "ledger");
  REQUIRE(lines.size() == 4);
  CHECK(lines[1].find("\"returned\"") != std::string::npos);
  CHECK(lines[3].find("\"set aside\"") != std::string::npos);
}

TEST_CASE("delivery: what is done or no batch of the queue cannot be given back undone") {
  const TemporaryFolder folder;
  const Client anna(1);
  const Client replica(2, false);
  QueueDesk desk = open_in(folder);
  const LeaseNumber done = anna.take(desk);
  REQUIRE(desk.done(anna.holder, done));
  CHECK_FALSE(*desk.gave_up(anna.holder, done, 1));
  const auto lease = desk.give(replica.holder, source_of(), {Epoch{0}, BatchIndex{3}}, false);
  REQUIRE(lease);
  CHECK_FALSE(*desk.gave_up(replica.holder, *lease, 1));
  CHECK(desk.queue().undone().empty());
}

TEST_CASE("delivery: of a client that does not come back the first batch is what it worked on") {
  const TemporaryFolder folder;
  const Client anna(1);
  QueueDesk desk = open_in(folder);
  for (int i = 0; i < 3; ++i) anna.take(desk);
  desk.keep(anna.holder.owner, QueueDesk::Time{} + 10s);
  const auto early = desk.end_keeping(QueueDesk::Time{} + 9s, 0);
  REQUIRE(early);
  CHECK_FALSE(early->any);
  const auto returned = desk.end_keeping(QueueDesk::Time{} + 10s, 0);
  REQUIRE(returned);
  CHECK(returned->any);
  REQUIRE(returned->undone.size() == 1);
  CHECK(returned->undone[0].index == BatchIndex{0});
  CHECK(desk.queue().attempt(BatchIndex{0}) == 2);
  CHECK(desk.queue().attempt(BatchIndex{1}) == 1);
  CHECK(desk.queue().out().empty());
}

TEST_CASE("delivery: a batch of another plan than the journal's is not given") {
  const TemporaryFolder folder;
  const Client anna(1);
  QueueDesk desk = open_in(folder);
  const auto lease = desk.give(anna.holder, source_of({12, 22, 33}), {}, false);
  REQUIRE(!lease);
  CHECK(lease.error().code == ErrorCode::internal);
  CHECK(desk.queue().out().empty());
  CHECK(desk.give(anna.holder, source_of({12, 22, 33}), {}, true));  // a rehearsal is no work
}

TEST_CASE(
    "delivery: a client that comes back keeps what it holds, and loses what it does not name") {
  const TemporaryFolder folder;
  const Client anna(1);
  QueueDesk desk = open_in(folder);
  const LeaseNumber done = anna.take(desk);
  const LeaseNumber held = anna.take(desk);
  const LeaseNumber lost = anna.take(desk);
  desk.keep(anna.holder.owner, QueueDesk::Time{} + 10s);
  CHECK(desk.next_return() == QueueDesk::Time{} + 10s);
  const auto claimed = desk.claim(anna.holder, std::vector{done, done},
                                  std::vector{held, LeaseNumber{lost.value + 100}});
  REQUIRE(claimed);
  CHECK(*claimed == std::vector{held});
  CHECK(!desk.next_return());
  CHECK(desk.queue().done_count() == 1);
  CHECK(desk.queue().ahead(0, kBatches) == BatchIndex{2});
}

TEST_CASE("delivery: an epoch of a queue is over for a worker that waits with its last batch") {
  const TemporaryFolder folder;
  const Client anna(1);
  const Client bert(2);
  QueueDesk desk = open_in(folder);
  for (int i = 0; i < 4; ++i) REQUIRE(desk.released(anna.holder, anna.take(desk)));
  CHECK(!desk.is_over_for(anna.holder.owner, Epoch{0}, kBatches, true));
  const LeaseNumber last = anna.take(desk);
  CHECK(desk.is_over_for(anna.holder.owner, Epoch{0}, kBatches, true));
  CHECK(!desk.is_over_for(anna.holder.owner, Epoch{0}, kBatches, false));
  CHECK(!desk.is_over_for(bert.holder.owner, Epoch{0}, kBatches, true));
  CHECK(!desk.is_over_for(bert.holder.owner, Epoch{1}, kBatches, true));
  CHECK(!desk.next_epoch(kBatches));
  REQUIRE(desk.released(anna.holder, last));
  CHECK(desk.next_epoch(kBatches) == Epoch{1});
  CHECK(!desk.next_epoch(0));
}

TEST_CASE("delivery: a queue's next epoch is begun once, when its journal is on the disk") {
  const TemporaryFolder folder;
  const Client anna(1);
  QueueDesk desk = open_in(folder);
  for (std::uint64_t i = 0; i < kBatches; ++i) {
    REQUIRE(desk.released(anna.holder, anna.take(desk)));
  }
  const auto write = desk.begin(Epoch{1}, kDeskPlan);
  CHECK(desk.beginning() == Epoch{1});
  CHECK(!desk.next_epoch(kBatches));
  CHECK(desk.epoch() == Epoch{0});
  REQUIRE(desk.begun(Epoch{1}, write()));
  CHECK(desk.epoch() == Epoch{1});
  CHECK(!desk.beginning());
  CHECK(desk.is_over_for(anna.holder.owner, Epoch{0}, kBatches, false));
}

TEST_CASE("delivery: after a desk is closed nothing is written, and what is released stays given") {
  const TemporaryFolder folder;
  const Client anna(1);
  QueueDesk desk = open_in(folder);
  const LeaseNumber lease = anna.take(desk);
  desk.close();
  CHECK(!desk.is_open());
  CHECK(*desk.done(anna.holder, lease));
  CHECK(lines_of(folder / "ledger").size() == 1);
  const QueueDesk next = open_in(folder);
  CHECK(next.queue().out().size() == 1);
}
