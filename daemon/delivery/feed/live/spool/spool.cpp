// What a spool writes. spool_read.cpp has what it reads.

#include "daemon/delivery/feed/live/spool/spool.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <variant>

#include "daemon/delivery/feed/queue/journal.h"

namespace batchwright {
namespace {

/// Of the sequences that are put into one transaction of the store, which has them in memory.
constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;

template <class Table>
std::vector<std::byte> pack(const Table& values) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(Table::TableType::Pack(builder, &values));
  const auto* bytes = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return {bytes, bytes + builder.GetSize()};
}

template <class Struct>
std::span<const std::byte> bytes_of(const Struct& values) {
  return std::as_bytes(std::span(&values, 1));
}

/// With its checksum behind it.
void put(KeyedStore::Batch& batch, std::size_t table, std::uint64_t key,
         std::span<const std::byte> value) {
  const std::uint32_t crc = spool_crc(key, value);
  const std::span<std::byte> room = batch.reserve(table, key, value.size() + sizeof crc);
  std::memcpy(room.data(), value.data(), value.size());
  std::memcpy(room.data() + value.size(), &crc, sizeof crc);
}

std::uint64_t bytes_of(const SpoolTurn& turn) {
  std::uint64_t sum = 0;
  for (const SpooledSequence& each : turn.accepted) sum += each.sequence->bytes();
  return sum;
}

std::vector<std::byte> pack(const SpooledStep& step) {
  wire::SpoolStepT packed;
  packed.version = step.version;
  for (const auto& rows : step.batches) {
    auto& batch = packed.batches.emplace_back(std::make_unique<wire::SpoolBatchT>());
    for (const SpooledRow& row : rows) {
      const std::uint32_t flags = (row.zeroed ? kSpoolZeroed : 0U) |
                                  (row.filler ? kSpoolFiller : 0U) |
                                  (row.leaves ? kSpoolLeaves : 0U) |
                                  (row.reset ? kSpoolReset : 0U) | (row.last ? kSpoolLast : 0U);
      batch->rows.emplace_back(row.arrival, row.weight, flags, row.start, row.frames);
    }
  }
  return pack(packed);
}

void note(const SpooledProducer& producer, KeyedStore::Batch& batch) {
  wire::SpoolProducerT packed;
  packed.name = *producer.name;
  packed.next = producer.next;
  packed.first = producer.forgotten_before;
  packed.totals = producer.totals;
  packed.refused_full = producer.refused_full;
  packed.duplicates = producer.duplicates;
  put(batch, kSpoolProducers, producer.id, pack(packed));
  const auto outcomes = std::as_bytes(std::span(producer.outcomes));
  for (std::size_t at = 0; at < outcomes.size(); at += kSpoolChunk) {
    put(batch, kSpoolOutcomes, spool_chunk_key(producer.id, producer.first + at),
        outcomes.subspan(at, std::min<std::size_t>(kSpoolChunk, outcomes.size() - at)));
  }
}

}  // namespace

Result<void> Spool::write(std::span<const Record> records) {
  for (std::size_t next = 0; next < records.size();) {
    // A store that fails has noted nothing, and is written no more: what follows may be noted here
    // before it is there.
    const std::size_t first = next;
    bool queue_changed = false;
    for (std::uint64_t bytes = 0; next < records.size() && bytes <= kMostBytes; ++next) {
      if (const auto* record = std::get_if<JournalRecord>(&records[next])) {
        take_record(*record, queue_);
        queue_changed = true;
      } else if (const auto* turn = std::get_if<SpoolTurn>(&records[next])) {
        bytes += bytes_of(*turn);
      }
    }
    auto written = store_->write([&](Batch& batch) {
      bool turned = false;
      for (const Record& record : records.subspan(first, next - first)) {
        const auto* turn = std::get_if<SpoolTurn>(&record);
        if (turn != nullptr) note(*turn, batch);
        turned |= turn != nullptr;
      }
      if (turned) note_head(batch);
      if (queue_changed) note_queue(batch);
    });
    if (!written) return written;
  }
  return {};
}

void Spool::note(const SpoolTurn& turn, Batch& batch) {
  for (const SpooledSequence& each : turn.accepted) note_sequence(each, batch);
  for (const SpooledStep& step : turn.steps) put(batch, kSpoolSteps, step.step, pack(step));
  for (const SpooledMark& mark : turn.marks) {
    const wire::SpoolMark values(mark.given, mark.last_step, mark.left ? 1 : 0);
    put(batch, kSpoolMarks, mark.arrival, bytes_of(values));
  }
  for (const LiveGroupChange& group : turn.groups) {
    if (!group.closed && group.gone == 0) {
      batch.erase(kSpoolGroups, group.group);
      continue;
    }
    const std::uint64_t closed = group.closed ? static_cast<std::uint64_t>(*group.closed) + 1 : 0;
    put(batch, kSpoolGroups, group.group,
        bytes_of(wire::SpoolGroup(++group_changes_, group.gone, closed)));
  }
  for (const SpooledProducer& producer : turn.producers) {
    batchwright::note(producer, batch);
    const std::uint64_t forgotten = producer.forgotten_before / kSpoolChunk;
    std::uint64_t& known = first_chunk_[producer.id];
    for (; known < forgotten; ++known) {
      batch.erase(kSpoolOutcomes, spool_chunk_key(producer.id, known * kSpoolChunk));
    }
  }
  for (const std::uint64_t arrival : turn.freed) {
    batch.erase(kSpoolSequences, arrival);
    batch.erase(kSpoolMarks, arrival);
  }
  for (std::uint64_t step = turn.gone_steps_from; step < turn.counts.kept_from; ++step) {
    batch.erase(kSpoolSteps, step);
  }
  if (turn.counts.lanes != lanes_) {
    lanes_ = turn.counts.lanes;
    note_lanes(batch);
  }
  head_.steps = turn.counts.steps;
  head_.arrivals = turn.counts.arrivals;
  head_.first_ahead = turn.counts.first_ahead;
  head_.kept_from = turn.counts.kept_from;
  head_.largest_group = turn.counts.largest_group;
  head_.ended = turn.counts.ended;
  head_.version_current = turn.counts.versions.current;
  head_.version_highest = turn.counts.versions.highest;
  head_.restored_to = turn.counts.versions.restored_to;
  head_.tops = turn.counts.versions.tops;
  head_.mark = turn.counts.mark ? *turn.counts.mark + 1 : 0;
}

void Spool::note_sequence(const SpooledSequence& spooled, Batch& batch) const {
  const PushedSequence& pushed = *spooled.sequence;
  const Sequence sequence{pushed.key, pushed.fields};
  const wire::SpoolOrigin origin(sizeof(wire::SpoolOrigin), spooled.producer, pushed.number,
                                 pushed.version, pushed.version_newest, pushed.group,
                                 pushed.group_size, pushed.weight,
                                 static_cast<std::uint32_t>(spooled.line), 0, pushed.epoch);
  const std::span<std::byte> room =
      batch.reserve(kSpoolSequences, pushed.arrival, sizeof origin + record_bytes(sequence));
  std::memcpy(room.data(), &origin, sizeof origin);
  const std::span<std::byte> record = room.subspan(sizeof origin);
  write_record(sequence, Ordinal{pushed.arrival}, pushed.fields[schema_.primary()].length, record);
  set_record_crc(record, crc32c(room.first(sizeof origin), crc32c(record_crc_range(record))));
}

void Spool::note_head(Batch& batch) const { put(batch, kSpoolHead, 0, pack(head_)); }

void Spool::note_lanes(Batch& batch) const {
  wire::SpoolLanesT packed;
  for (const LivePoolState::Lane& each : lanes_) {
    packed.busy.emplace_back(each.lane, each.next, each.arrival);
  }
  put(batch, kSpoolHead, 2, pack(packed));
}

void Spool::note_queue(Batch& batch) const {
  const WorkQueue::State state = queue_.state();
  wire::SpoolQueueT packed;
  packed.unused = state.unused;
  packed.back = state.back;
  for (const auto& [lease, given] : state.out) {
    packed.out.emplace_back(lease.value, given.index.value, given.owner.value);
  }
  for (const auto& [index, undone] : state.undone) {
    auto& one = packed.undone.emplace_back(std::make_unique<wire::SpoolUndoneT>());
    one->index = index;
    one->times = undone.times;
    for (const QueueOwner owner : undone.by) one->by.push_back(owner.value);
    one->set_aside = undone.set_aside;
  }
  put(batch, kSpoolHead, 1, pack(packed));
}

}  // namespace batchwright
