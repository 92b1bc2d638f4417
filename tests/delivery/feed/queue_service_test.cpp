#include "daemon/delivery/feed/queue/queue_service.h"

#include <doctest/doctest.h>

#include <string>
#include <variant>
#include <vector>

using namespace batchwright;
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

/// A desk with a queue and a ledger.
QueueService new_desk(LeaseNumber first_lease = {1}) {
  return {{}, JournalState{"journal", kDeskPlan, {1}}, "train", first_lease};
}

struct Client {
  explicit Client(std::uint64_t token, bool in_queue = true)
      : info{SessionId{token}, token, "test", 1, false},
        holder{info, {1}, queue_owner(token, {1}), in_queue} {}
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// The lease of the queue's next batch.
  LeaseNumber take(QueueService& desk) const {
    const auto index = desk.queue().ahead(0, kBatches);
    REQUIRE(index);
    const auto lease = desk.give(holder, source_of(), {Epoch{0}, *index}, false);
    REQUIRE(lease);
    return *lease;
  }

  ClientInfo info;
  QueueService::Holder holder;
};

/// What the desk has for its files, one word each: of the journal "given 0", "done", "set aside",
/// "returned 0" or "epoch 1", of the ledger "delivered", "done", ..., and "close".
std::vector<std::string> noted(QueueService& desk) {
  using Kind = JournalRecord::Kind;
  std::vector<std::string> all;
  for (const Record& record : desk.take_records()) {
    if (const auto* line = std::get_if<LedgerLine>(&record)) {
      constexpr std::string_view kBefore = R"({"event":")";
      REQUIRE(line->text.starts_with(kBefore));
      all.push_back(
          "line " +
          line->text.substr(kBefore.size(), line->text.find('"', kBefore.size()) - kBefore.size()));
    } else if (const auto* begin = std::get_if<BeginJournal>(&record)) {
      all.push_back("epoch " + std::to_string(begin->epoch.value));
    } else if (const auto* note = std::get_if<JournalRecord>(&record)) {
      const bool is_done = note->kind == Kind::done;
      const std::string index = " " + std::to_string(note->second);
      if (is_done)
        all.emplace_back(note->second == JournalRecord::kSetAside ? "set aside" : "done");
      if (!is_done) all.push_back((note->kind == Kind::given ? "given" : "returned") + index);
    } else {
      all.emplace_back("close");
    }
  }
  return all;
}
using Noted = std::vector<std::string>;

}  // namespace

TEST_CASE("delivery: a lease is never given twice, not by another daemon either") {
  const Client anna(1);
  QueueService desk = new_desk({100});
  CHECK(anna.take(desk) == LeaseNumber{100});
  CHECK(anna.take(desk) == LeaseNumber{101});
  CHECK(desk.journal().next_lease == LeaseNumber{102});
  QueueService next({}, desk.journal(), {}, {50});  // its clock is behind
  CHECK(anna.take(next) == LeaseNumber{102});
}

TEST_CASE("delivery: what is done is noted, and is done only once") {
  const Client anna(1);
  const Client bert(2);
  QueueService desk = new_desk();
  const LeaseNumber lease = anna.take(desk);
  CHECK_FALSE(desk.done(bert.holder, lease));
  CHECK(desk.done(anna.holder, lease));
  CHECK_FALSE(desk.done(anna.holder, lease));
  CHECK(desk.last_record() == 4);
  CHECK(noted(desk) == Noted{"given 0", "line delivered", "done", "line done"});
  CHECK(desk.take_records().empty());
  CHECK(desk.last_record() == 4);
}

TEST_CASE("delivery: a journal's record has the lease, the batch and its owner") {
  const Client anna(1);
  QueueService desk = new_desk({7});
  anna.take(desk);
  const auto records = desk.take_records();
  const auto* given = std::get_if<JournalRecord>(&records.at(0));
  REQUIRE(given);
  CHECK(given->first == 7);
  CHECK(given->second == 0);
  CHECK(given->third == anna.holder.owner.value);
}

TEST_CASE("delivery: a line of the ledger is JSON whatever the feed's name holds") {
  QueueService desk({}, {}, "a\"b\n", {7});
  const Client replica(0xAB, false);
  const auto lease = desk.give(replica.holder, source_of(), {Epoch{0}, BatchIndex{3}}, false);
  REQUIRE(lease);
  desk.released(replica.holder, *lease);
  const auto records = desk.take_records();
  REQUIRE(records.size() == 2);
  CHECK(
      std::get<LedgerLine>(records[0])
          .text.starts_with(
              R"({"event":"delivered","feed":"a\"b\n","client":"00000000000000ab","pid":1,"subscription":1,)"
              R"("lease":7,"epoch":0,"step":3,"index":3,"rehearsal":false,"ordinals":[)"));
  CHECK(std::get<LedgerLine>(records[1]).text ==
        R"({"event":"released","feed":"a\"b\n","client":"00000000000000ab","pid":1,"lease":7})"
        "\n");
}

TEST_CASE("delivery: the ledger tells a batch that is done from one that is only released") {
  const Client worker(1);
  const Client replica(2, false);
  QueueService desk = new_desk();
  desk.released(worker.holder, worker.take(desk));
  const auto lease = desk.give(replica.holder, source_of(), {Epoch{0}, BatchIndex{3}}, false);
  REQUIRE(lease);
  desk.released(replica.holder, *lease);
  CHECK(noted(desk) ==
        Noted{"given 0", "line delivered", "done", "line done", "line delivered", "line released"});
  CHECK(desk.queue().done_count() == 1);
}

TEST_CASE("delivery: a batch that is given back undone is another's, until it is set aside") {
  const Client anna(1);
  const Client bert(2);
  QueueService desk = new_desk();
  const auto first = desk.gave_up(anna.holder, anna.take(desk), 2);
  REQUIRE(first);
  CHECK(first->index == BatchIndex{0});
  CHECK(first->times == 1);
  CHECK_FALSE(first->set_aside);
  CHECK(noted(desk) == Noted{"given 0", "line delivered", "returned 0", "line returned"});
  const LeaseNumber lease = bert.take(desk);
  CHECK(desk.queue().out().at(lease).index == BatchIndex{0});
  const auto second = desk.gave_up(bert.holder, lease, 2);
  REQUIRE(second);
  CHECK(second->set_aside);
  CHECK(desk.queue().done_count() == 1);
  CHECK(desk.queue().ahead(0, kBatches) == BatchIndex{1});
  CHECK(noted(desk) == Noted{"given 0", "line delivered", "set aside", "line set aside"});
}

TEST_CASE("delivery: what is done or no batch of the queue cannot be given back undone") {
  const Client anna(1);
  const Client replica(2, false);
  QueueService desk = new_desk();
  const LeaseNumber done = anna.take(desk);
  REQUIRE(desk.done(anna.holder, done));
  CHECK_FALSE(desk.gave_up(anna.holder, done, 1));
  const auto lease = desk.give(replica.holder, source_of(), {Epoch{0}, BatchIndex{3}}, false);
  REQUIRE(lease);
  CHECK_FALSE(desk.gave_up(replica.holder, *lease, 1));
  CHECK(desk.queue().undone().empty());
}

TEST_CASE("delivery: of a client that does not come back the first batch is what it worked on") {
  const Client anna(1);
  QueueService desk = new_desk();
  for (int i = 0; i < 3; ++i) anna.take(desk);
  desk.keep(anna.holder.owner, QueueService::Time{} + 10s);
  const auto early = desk.end_keeping(QueueService::Time{} + 9s, 0);
  CHECK_FALSE(early.any);
  const auto returned = desk.end_keeping(QueueService::Time{} + 10s, 0);
  CHECK(returned.any);
  REQUIRE(returned.undone.size() == 1);
  CHECK(returned.undone[0].index == BatchIndex{0});
  CHECK(desk.queue().attempt(BatchIndex{0}) == 2);
  CHECK(desk.queue().attempt(BatchIndex{1}) == 1);
  CHECK(desk.queue().out().empty());
}

TEST_CASE("delivery: a batch of another plan than the journal's is not given") {
  const Client anna(1);
  QueueService desk = new_desk();
  const auto lease = desk.give(anna.holder, source_of({12, 22, 33}), {}, false);
  REQUIRE(!lease);
  CHECK(lease.error().code == ErrorCode::internal);
  CHECK(desk.queue().out().empty());
  CHECK(desk.give(anna.holder, source_of({12, 22, 33}), {}, true));  // a rehearsal is no work
}

TEST_CASE(
    "delivery: a client that comes back keeps what it holds, and loses what it does not name") {
  const Client anna(1);
  QueueService desk = new_desk();
  const LeaseNumber done = anna.take(desk);
  const LeaseNumber held = anna.take(desk);
  const LeaseNumber lost = anna.take(desk);
  desk.keep(anna.holder.owner, QueueService::Time{} + 10s);
  CHECK(desk.next_return() == QueueService::Time{} + 10s);
  const auto claimed = desk.claim(anna.holder, std::vector{done, done},
                                  std::vector{held, LeaseNumber{lost.value + 100}});
  CHECK(claimed == std::vector{held});
  CHECK(!desk.next_return());
  CHECK(desk.queue().done_count() == 1);
  CHECK(desk.queue().ahead(0, kBatches) == BatchIndex{2});
}

TEST_CASE("delivery: an epoch of a queue is over for a worker that waits with its last batch") {
  const Client anna(1);
  const Client bert(2);
  QueueService desk = new_desk();
  for (int i = 0; i < 4; ++i) desk.released(anna.holder, anna.take(desk));
  CHECK(!desk.is_over_for(anna.holder.owner, Epoch{0}, kBatches, true));
  const LeaseNumber last = anna.take(desk);
  CHECK(desk.is_over_for(anna.holder.owner, Epoch{0}, kBatches, true));
  CHECK(!desk.is_over_for(anna.holder.owner, Epoch{0}, kBatches, false));
  CHECK(!desk.is_over_for(bert.holder.owner, Epoch{0}, kBatches, true));
  CHECK(!desk.is_over_for(bert.holder.owner, Epoch{1}, kBatches, true));
  CHECK(!desk.next_epoch(kBatches));
  desk.released(anna.holder, last);
  CHECK(desk.next_epoch(kBatches) == Epoch{1});
  CHECK(!desk.next_epoch(0));
}

TEST_CASE("delivery: a queue's next epoch is begun once, when its journal is written") {
  const Client anna(1);
  QueueService desk = new_desk();
  for (std::uint64_t i = 0; i < kBatches; ++i) desk.released(anna.holder, anna.take(desk));
  desk.take_records();
  const std::uint64_t before = desk.last_record();
  constexpr Fingerprint kGrown{12, 22, 33};
  desk.begin(Epoch{1}, kGrown);
  const auto records = desk.take_records();
  REQUIRE(records.size() == 1);
  const auto* begin = std::get_if<BeginJournal>(&records[0]);
  REQUIRE(begin);
  CHECK(desk.last_record() == before);  // the end of the epoch before can be told
  CHECK(begin->epoch == Epoch{1});
  CHECK(begin->fingerprint == kGrown);
  CHECK(begin->next_lease == LeaseNumber{kBatches + 1});
  CHECK(desk.beginning() == Epoch{1});
  CHECK(!desk.next_epoch(kBatches));
  CHECK(!desk.written(before));
  CHECK(desk.epoch() == Epoch{0});
  CHECK(desk.written(before + 1) == Epoch{1});
  CHECK(desk.epoch() == Epoch{1});
  CHECK(desk.journal().fingerprint == kGrown);
  CHECK(!desk.beginning());
  CHECK(!desk.written(before + 1));
  CHECK(desk.is_over_for(anna.holder.owner, Epoch{0}, kBatches, false));
}

TEST_CASE("delivery: after a desk is closed nothing is noted, and what is released stays given") {
  const Client anna(1);
  QueueService desk = new_desk();
  const LeaseNumber lease = anna.take(desk);
  const LeaseNumber other = anna.take(desk);
  desk.close();
  CHECK(noted(desk) == Noted{"given 0", "line delivered", "given 1", "line delivered", "close"});
  CHECK(!desk.is_open());
  CHECK(desk.done(anna.holder, lease));
  CHECK(desk.died_with(anna.holder.owner, other, 1));
  CHECK(!desk.next_epoch(2));  // no journal could begin with it
  desk.close();
  CHECK(noted(desk).empty());
}
