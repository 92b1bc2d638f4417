#include "tests/simulation/daemon/record_witness.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <iterator>

namespace batchwright::simulation {

void RecordWitness::opened(bool cut) {
  noted_ = {};
  if (journal_.empty()) return;
  const Journal before = std::exchange(read_, {});
  read_journal();
  if (before.content != 0 && read_.epoch > before.epoch) check_epoch(before.content, before.epoch);
  if (read_.epoch < before.epoch) world_.fail("the journal has gone back to an earlier epoch");
  if (!cut && read_.epoch == before.epoch &&
      !std::includes(read_.done.begin(), read_.done.end(), before.done.begin(),
                     before.done.end())) {
    world_.fail("the journal has forgotten batches that are done");
  }
  noted_.done = read_.done;
  if (cut) worker_ended();
}

void RecordWitness::files_changed() {
  if (!journal_.empty()) read_journal();
  if (!ledger_.empty()) read_ledger();
}

void RecordWitness::read_journal() {
  std::ifstream file(journal_, std::ios::binary);
  struct stat status {};
  if (!file || ::stat(journal_.c_str(), &status) != 0) return;
  if (read_.file != status.st_ino) {
    read_.bytes = 0;
    read_.given.clear();
    read_.done.clear();
  }
  read_.file = status.st_ino;
  file.seekg(static_cast<std::streamoff>(read_.bytes));
  JournalRecord record;
  while (file.read(reinterpret_cast<char*>(&record), sizeof record) && record.is_sound()) {
    read_.bytes += sizeof record;
    take_in(record);
  }
}

void RecordWitness::take_in(const JournalRecord& record) {
  using Kind = JournalRecord::Kind;
  const LeaseNumber lease{record.first};
  const auto given = read_.given.find(lease);
  switch (record.kind) {
    case Kind::plan: read_.next_content = record.first; break;
    case Kind::epoch:
      if (read_.content != 0 && record.second > read_.epoch) {
        check_epoch(read_.content, read_.epoch);
      }
      read_.epoch = record.second;
      read_.content = read_.next_content;
      break;
    case Kind::given: {
      const Place place{read_.epoch, record.second};
      if (read_.done.contains(place)) {
        world_.fail(fmt::format("the journal gives batch {} again, which is done", place.second));
      }
      read_.given[lease] = place;
      break;
    }
    case Kind::done:
      if (given == read_.given.end()) world_.fail("the journal has an end of a lease without one");
      if (record.second == JournalRecord::kSetAside) {
        set_aside_.insert(given->second);
      } else if (!completed_.leases.contains(lease)) {
        world_.fail(fmt::format("the journal calls batch {} done, and no program was done with it",
                                given->second.second));
      }
      read_.done.insert(given->second);
      break;
    case Kind::returned: break;
  }
}

void RecordWitness::read_ledger() {
  std::ifstream file(ledger_, std::ios::binary);
  if (!file) return;
  file.seekg(static_cast<std::streamoff>(ledger_bytes_));
  std::string line;
  while (std::getline(file, line) && !file.eof()) {
    ledger_bytes_ += line.size() + 1;
    if (line.find("\"delivered\"") == std::string::npos) continue;
    const auto lease = line.find("\"lease\":");
    if (lease != std::string::npos) in_ledger_.insert({std::stoull(line.substr(lease + 8))});
  }
}

/// The daemon's word counts once it has taken the message, unless it dies before the record.
void RecordWitness::note_done(const WorkQueue& queue, LeaseNumber lease, QueueOwner owner) {
  const auto out = queue.out().find(lease);
  if (out == queue.out().end() || out->second.owner != owner) return;
  if (!completed_.leases.contains(lease)) {
    world_.fail(fmt::format("lease {} is released as done, and no program was done", lease.value));
  }
  noted_.done.insert({queue.epoch().value, out->second.index.value});
  noted_.latest.insert({queue.epoch().value, out->second.index.value});
}

void RecordWitness::released(const FeedCore& core, const Released& event) {
  const FeedParts& parts = core.parts();
  const Subscription* const one = parts.subscriptions.find(event.key);
  if (one == nullptr) return;
  for (const LeaseNumber lease : event.leases) {
    const auto sent = sent_.find(lease);
    const bool is_its = sent != sent_.end() && sent->second == event.key.session;
    if (!one->in_queue() && !is_its) {
      world_.fail(fmt::format("a session gives back lease {}, which it never had", lease.value));
    }
  }
  if (!one->in_queue() || event.undone || !parts.desk.is_open()) return;
  for (const LeaseNumber lease : event.leases) {
    if (one->leases.contains(lease)) note_done(parts.desk.queue(), lease, one->owner());
  }
}

void RecordWitness::claimed(const FeedCore& core, const SubscribeRequested& event) {
  const FeedParts& parts = core.parts();
  if (event.request.mode != wire::Mode::queue || !parts.desk.is_open()) return;
  const std::uint64_t token =
      event.client.token != 0 ? event.client.token : event.client.session.value;
  const QueueOwner owner = queue_owner(token, {event.request.subscription});
  for (const std::uint64_t lease : event.request.released) {
    note_done(parts.desk.queue(), {lease}, owner);
  }
}

void RecordWitness::ticket(const FeedCore& core, SessionId session,
                           std::span<const std::byte> message) {
  const auto read = ControlMessage::decode(message);
  const auto* ticket = read ? read->as<wire::Delivery>() : nullptr;
  if (ticket == nullptr) world_.fail("a ticket is no Delivery");
  const LeaseNumber lease{ticket->lease()};
  if (!sent_.emplace(lease, session).second) {
    world_.fail(fmt::format("lease {} is given twice", lease.value));
  }
  const FeedParts& parts = core.parts();
  if (parts.desk.keeps_ledger() && !in_ledger_.contains(lease)) {
    world_.fail(fmt::format("the ticket of lease {} leaves before its line", lease.value));
  }
  const Subscription* const one =
      parts.subscriptions.find({session, SubscriptionNumber{ticket->subscription()}});
  if (one == nullptr || !one->in_queue()) return;
  const Place place{ticket->epoch(), ticket->index()};
  queued_[lease] = place;
  if (completed_.promised.contains(place)) {
    world_.fail(fmt::format("batch {} of the queue is given again, and was done", place.second));
  }
  if (parts.desk.is_open() && !read_.given.contains(lease)) {
    world_.fail(fmt::format("the ticket of lease {} leaves before its record", lease.value));
  }
}

void RecordWitness::check(const FeedCore& core) {
  const QueueService& desk = core.parts().desk;
  if (!desk.is_open()) {
    noted_.latest.clear();
    return noted_.by_record.clear();
  }
  auto& records = noted_.by_record;
  for (const Place& place : std::exchange(noted_.latest, {}))
    records.emplace(desk.last_record(), place);
  while (!records.empty() && core.parts().sends.has_written(records.begin()->first)) {
    const Place place = records.begin()->second;
    records.erase(records.begin());
    if (place.first == read_.epoch && !read_.done.contains(place)) {
      world_.fail(fmt::format("batch {} is done, and the journal does not say so", place.second));
    }
  }
  std::set<BatchIndex> out;
  for (const auto& [lease, given] : desk.queue().out()) {
    if (!out.insert(given.index).second) {
      world_.fail(fmt::format("batch {} of the queue is out twice", given.index.value));
    }
    if (noted_.done.contains({desk.epoch().value, given.index.value})) {
      world_.fail(fmt::format("batch {} of the queue is out, and done", given.index.value));
    }
  }
}

void RecordWitness::worker_ended() {
  std::erase_if(completed_.promised,
                [this](const Place& place) { return !read_.done.contains(place); });
}

void RecordWitness::expect_late_workers() {
  completed_.keeps_promises = false;
  completed_.promised.clear();
}

void RecordWitness::completed(const Holding& batch) {
  const auto found = queued_.find(batch.lease);
  if (found == queued_.end()) world_.fail("a worker has a batch that the queue never gave");
  completed_.places.insert(found->second);
  // One that was done before a power cut, and is released after it, is promised no more; nor is one
  // of which the cut took the record that it was given.
  const bool is_new = completed_.leases.insert(batch.lease).second;
  const bool is_known = read_.given.contains(batch.lease);
  if (is_new && is_known && completed_.keeps_promises) completed_.promised.insert(found->second);
}

void RecordWitness::check_epoch(std::uint64_t content, std::uint64_t epoch) const {
  const auto* version = data_.find(content);
  if (version == nullptr) world_.fail("the journal is of data that never were");
  const std::uint64_t batches = data_.plan(*version, Epoch{epoch}).source->plan.batches();
  for (std::uint64_t index = 0; index < batches; ++index) {
    if (completed_.places.contains({epoch, index}) || set_aside_.contains({epoch, index})) continue;
    world_.fail(
        fmt::format("epoch {} of the queue is over, and no worker did batch {}", epoch, index));
  }
}

}  // namespace batchwright::simulation
