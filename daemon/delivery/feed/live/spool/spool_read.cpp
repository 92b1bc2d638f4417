// What a spool had. What it says of itself is checked against what is there.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "daemon/delivery/feed/live/spool/spool.h"
#include "daemon/delivery/feed/live/spool/spool_values.h"

namespace batchwright {
namespace {

/// Sequences are read into blocks of memory, each of which goes with the last of its sequences.
constexpr std::uint64_t kBlockBytes = std::uint64_t{1} << 20;

/// A value without the checksum behind it; empty: it is another's.
std::optional<std::span<const std::byte>> checked(std::uint64_t key,
                                                  std::span<const std::byte> value) {
  std::uint32_t crc = 0;
  if (value.size() < sizeof crc) return {};
  const auto bytes = value.first(value.size() - sizeof crc);
  std::memcpy(&crc, value.data() + bytes.size(), sizeof crc);
  return crc == spool_crc(key, bytes) ? std::optional(bytes) : std::nullopt;
}

/// Memory for the values of sequences, one behind the other, each at a multiple of 64 bytes.
class Blocks {
 public:
  struct Room {
    std::shared_ptr<const void> block;
    std::span<std::byte> bytes;
  };
  Room take(std::uint64_t bytes) {
    if (!block_ || used_ + bytes > size_) {
      size_ = std::max(kBlockBytes, bytes);
      used_ = 0;
      block_ = std::shared_ptr<std::byte[]>(
          static_cast<std::byte*>(::operator new[](size_, kAlignment)),
          [](std::byte* block) { ::operator delete[](block, kAlignment); });
    }
    const std::span<std::byte> room{block_.get() + used_, static_cast<std::size_t>(bytes)};
    used_ = next_offered_place(used_ + bytes);
    return {block_, room};
  }

 private:
  static constexpr std::align_val_t kAlignment{kTensorAlignment};
  std::shared_ptr<std::byte[]> block_;
  std::uint64_t used_ = 0, size_ = 0;
};

std::shared_ptr<PushedSequence> copy_of(const RecordView& record, Blocks& blocks) {
  std::uint64_t bytes = 0;
  for (std::size_t f = 0; f < record.fields(); ++f) {
    bytes = next_offered_place(bytes) + record.field(f).bytes.size();
  }
  Blocks::Room room = blocks.take(bytes);
  auto sequence = std::make_shared<PushedSequence>();
  sequence->key = record.key();
  sequence->memory = std::move(room.block);
  sequence->fields.reserve(record.fields());
  std::uint64_t at = 0;
  for (std::size_t f = 0; f < record.fields(); ++f) {
    const FieldValue value = record.field(f);
    at = next_offered_place(at);
    const auto place = room.bytes.subspan(static_cast<std::size_t>(at), value.bytes.size());
    if (!value.bytes.empty()) std::memcpy(place.data(), value.bytes.data(), value.bytes.size());
    sequence->fields.push_back({place, value.length});
    at += value.bytes.size();
  }
  return sequence;
}

SpooledStep step_of(std::uint64_t number, const wire::SpoolStepT& packed) {
  SpooledStep step{number, packed.version, {}};
  for (const auto& batch : packed.batches) {
    auto& rows = step.batches.emplace_back();
    for (const wire::SpoolRow& row : batch->rows) {
      const auto has = [&row](std::uint32_t flag) { return (row.flags() & flag) != 0; };
      rows.push_back({row.arrival(), row.weight(), has(kSpoolZeroed), has(kSpoolFiller),
                      has(kSpoolLeaves), row.start(), row.frames(), has(kSpoolReset),
                      has(kSpoolLast)});
    }
  }
  return step;
}

/// Null: it is not there. They lie in the order of their arrival.
LivePoolState::Sequence* find(std::vector<LivePoolState::Sequence>& sequences,
                              std::uint64_t arrival) {
  const auto found =
      std::ranges::lower_bound(sequences, arrival, {}, &LivePoolState::Sequence::arrival);
  return found != sequences.end() && found->arrival == arrival ? &*found : nullptr;
}

/// What a producer was told to be waiting or delivered, and is kept no more: its last release was
/// not noted. What was only waiting is lost, which nothing but a damaged store can bring about.
void settle_outcomes(SpooledProducer& producer, const std::vector<std::uint64_t>& kept) {
  const auto settled = [](std::uint8_t outcome) {
    if (outcome == static_cast<std::uint8_t>(wire::Outcome::delivered)) return wire::Outcome::done;
    if (outcome == static_cast<std::uint8_t>(wire::Outcome::waiting)) return wire::Outcome::lost;
    return static_cast<wire::Outcome>(outcome);
  };
  for (std::size_t i = 0; i < producer.outcomes.size(); ++i) {
    if (std::ranges::binary_search(kept, producer.first + i)) continue;
    const wire::Outcome now = settled(producer.outcomes[i]);
    if (static_cast<std::uint8_t>(now) == producer.outcomes[i]) continue;
    std::uint64_t& before = producer.totals[producer.outcomes[i]];
    before -= std::min<std::uint64_t>(before, 1);
    ++producer.totals[static_cast<std::size_t>(now)];
    producer.outcomes[i] = static_cast<std::uint8_t>(now);
    producer.is_settled = true;
  }
}

}  // namespace

/// The values of a table whose checksums are right.
Result<void> Spool::read_table(std::size_t table, const KeyedStore::Take& take) const {
  return store_->read(table, [&](std::uint64_t key, std::span<const std::byte> value) {
    const auto bytes = checked(key, value);
    if (bytes) return take(key, *bytes);
    return Result<void>(damaged_spool(
        name(), fmt::format("{} {}: its checksum is another", kSpoolTables[table], key)));
  });
}

Result<void> Spool::read(SpooledFeed& feed) {
  feed.counts = {head_.steps,
                 head_.arrivals,
                 head_.first_ahead,
                 head_.kept_from,
                 head_.largest_group,
                 head_.ended,
                 {head_.version_current, head_.version_highest, head_.restored_to, head_.tops}};
  if (head_.mark != 0) feed.counts.mark = head_.mark - 1;
  LivePoolState& pool = feed.pool;
  pool.versions = feed.counts.versions;
  pool.arrivals = head_.arrivals;
  pool.steps = head_.steps;
  pool.first_ahead = head_.first_ahead;
  pool.largest_group = head_.largest_group;
  pool.ended = head_.ended;
  if (auto done = read_producers(feed); !done) return done;
  if (auto done = read_sequences(feed); !done) return done;
  if (auto done = read_marks(feed); !done) return done;
  if (auto done = read_steps(feed); !done) return done;
  if (auto done = settle(feed); !done) return done;
  return read_groups(feed);
}

Result<void> Spool::read_producers(SpooledFeed& feed) {
  auto done = read_table(kSpoolProducers, [&](std::uint64_t id, std::span<const std::byte> value) {
    auto packed = unpack<wire::SpoolProducer>(value);
    if (!packed || id != feed.producers.size() || packed->name.empty()) {
      return Result<void>(damaged_spool(name(), fmt::format("producer {} makes no sense", id)));
    }
    SpooledProducer producer{static_cast<ProducerId>(id),
                             std::make_shared<const std::string>(std::move(packed->name)),
                             packed->next,
                             std::move(packed->totals),
                             packed->refused_full,
                             packed->duplicates,
                             packed->first};
    producer.totals.resize(kOutcomes);
    producer.forgotten_before = packed->first;
    first_chunk_[producer.id] = packed->first / kSpoolChunk;
    feed.pool.accepted.push_back(packed->next);
    feed.producers.push_back(std::move(producer));
    return Result<void>();
  });
  if (!done) return done;
  return read_table(kSpoolOutcomes, [&](std::uint64_t key, std::span<const std::byte> value) {
    const ProducerId id = producer_of_chunk(key);
    if (id >= feed.producers.size())
      return Result<void>(damaged_spool(name(), "outcomes of no producer"));
    SpooledProducer& producer = feed.producers[id];
    for (std::size_t i = 0; i < value.size(); ++i) {
      const std::uint64_t number = first_of_chunk(key) + i;
      const bool follows = number == producer.first + producer.outcomes.size();
      if (number < producer.first || number >= producer.next || !follows) continue;
      producer.outcomes.push_back(std::to_integer<std::uint8_t>(value[i]));
    }
    return Result<void>();
  });
}

Result<void> Spool::read_sequences(SpooledFeed& feed) const {
  Blocks blocks;
  return store_->read(
      kSpoolSequences,
      [&](std::uint64_t arrival, std::span<const std::byte> value) -> Result<void> {
        const auto bad = [&](const std::string& what) {
          return damaged_spool(name(), fmt::format("sequence {}: {}", arrival, what));
        };
        const auto origin = unpack_struct<wire::SpoolOrigin>(value);
        if (!origin || origin->bytes() < sizeof *origin || origin->bytes() > value.size() ||
            arrival >= head_.arrivals || origin->producer() >= feed.producers.size() ||
            origin->line() > head_.restored_to.size()) {
          return bad("what comes before its record makes no sense");
        }
        const auto bytes = value.subspan(origin->bytes());
        const auto record = RecordView::parse(schema_, bytes);
        if (!record) return bad(record.error().message);
        const std::uint32_t crc =
            crc32c(value.first(origin->bytes()), crc32c(record_crc_range(bytes)));
        if (record_crc(bytes) != crc || record->ordinal().value != arrival) {
          return bad("its checksum is another");
        }
        auto sequence = copy_of(*record, blocks);
        sequence->producer = feed.producers[origin->producer()].name;
        sequence->number = origin->number();
        sequence->arrival = arrival;
        sequence->version = origin->version();
        sequence->version_newest = origin->version_newest();
        sequence->group = origin->group();
        sequence->group_size = origin->group_size();
        sequence->weight = origin->weight();
        sequence->epoch = origin->epoch();
        LivePoolState::Sequence& known = feed.pool.sequences.emplace_back();
        known.arrival = arrival;
        known.line = origin->line();
        known.push.producer = origin->producer();
        known.push.number = origin->number();
        known.push.length = record->length();
        known.push.bytes = sequence->bytes();
        known.push.version = origin->version();
        known.push.version_newest = origin->version_newest();
        if (origin->group() != kNoGroup) known.push.group = origin->group();
        known.push.group_size = origin->group_size();
        known.push.weight = origin->weight();
        feed.sequences.push_back(std::move(sequence));
        return {};
      });
}

Result<void> Spool::read_marks(SpooledFeed& feed) const {
  std::size_t at = 0;
  return read_table(kSpoolMarks, [&](std::uint64_t arrival, std::span<const std::byte> value) {
    const auto mark = unpack_struct<wire::SpoolMark>(value);
    auto& all = feed.pool.sequences;
    while (at < all.size() && all[at].arrival < arrival) ++at;
    if (!mark || at == all.size() || all[at].arrival != arrival) {
      return Result<void>(damaged_spool(name(), fmt::format("a mark of sequence {}", arrival)));
    }
    all[at].given = mark->given();
    all[at].last_step = mark->last_step();
    all[at].left = mark->left() != 0;
    return Result<void>();
  });
}

Result<void> Spool::read_steps(SpooledFeed& feed) const {
  auto done = read_table(
      kSpoolSteps, [&](std::uint64_t number, std::span<const std::byte> value) -> Result<void> {
        const auto packed = unpack<wire::SpoolStep>(value);
        if (!packed || packed->batches.size() != head_.world ||
            number != head_.kept_from + feed.steps.size()) {
          return damaged_spool(name(), fmt::format("step {} makes no sense", number));
        }
        feed.steps.push_back(step_of(number, *packed));
        return {};
      });
  if (!done) return done;
  if (head_.kept_from + feed.steps.size() == head_.steps) return {};
  return damaged_spool(name(), fmt::format("{} steps of {} to {} are there", feed.steps.size(),
                                           head_.kept_from, head_.steps));
}

/// Which sequences the kept steps and lanes have, and which of all are in the pool. One that has
/// left it and is in no step is of no use.
Result<void> Spool::settle(SpooledFeed& feed) {
  std::vector<bool> used(feed.pool.sequences.size());
  for (const SpooledStep& step : feed.steps) {
    if (auto settled = settle_step(step, used, feed); !settled) return settled;
  }
  for (const LivePoolState::Lane& lane : lanes_) {
    const LivePoolState::Sequence* const at = find(feed.pool.sequences, lane.arrival);
    if (at == nullptr || at->left || lane.next == 0 || lane.next >= at->push.length) {
      return damaged_spool(name(), fmt::format("lane {} makes no sense", lane.lane));
    }
  }
  feed.pool.lanes = lanes_;
  auto dropped = drop_useless(used, feed);
  std::vector<std::vector<std::uint64_t>> numbers(feed.producers.size());
  for (const LivePoolState::Sequence& sequence : feed.pool.sequences) {
    numbers[sequence.push.producer].push_back(sequence.push.number);
  }
  for (SpooledProducer& producer : feed.producers) {
    std::ranges::sort(numbers[producer.id]);
    settle_outcomes(producer, numbers[producer.id]);
  }
  return dropped;
}

Result<void> Spool::settle_step(const SpooledStep& step, std::vector<bool>& used,
                                SpooledFeed& feed) const {
  LivePoolState::Step& open = feed.pool.open.emplace_back();
  open.step = step.step;
  for (const auto& rows : step.batches) {
    if (rows.empty()) {
      return damaged_spool(name(), fmt::format("step {} has an empty batch", step.step));
    }
    for (const SpooledRow& row : rows) {
      if (row.frames == 0) continue;
      LivePoolState::Sequence* const sequence = find(feed.pool.sequences, row.arrival);
      if (sequence == nullptr) {
        return damaged_spool(name(), fmt::format("step {} has sequence {}, which is not there",
                                                 step.step, row.arrival));
      }
      used[static_cast<std::size_t>(sequence - feed.pool.sequences.data())] = true;
      sequence->left = sequence->left || row.leaves;
      open.arrivals.push_back(row.arrival);
    }
  }
  std::ranges::sort(open.arrivals);
  open.arrivals.erase(std::unique(open.arrivals.begin(), open.arrivals.end()), open.arrivals.end());
  return {};
}

Result<void> Spool::drop_useless(const std::vector<bool>& used, SpooledFeed& feed) {
  std::vector<std::uint64_t> useless;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < feed.sequences.size(); ++i) {
    if (feed.pool.sequences[i].left && !used[i]) {
      useless.push_back(feed.sequences[i]->arrival);
      continue;
    }
    if (i != kept) {
      feed.sequences[kept] = std::move(feed.sequences[i]);
      feed.pool.sequences[kept] = std::move(feed.pool.sequences[i]);
    }
    ++kept;
  }
  feed.sequences.resize(kept);
  feed.pool.sequences.resize(kept);
  if (useless.empty()) return {};
  return store_->write([&useless](Batch& batch) {
    for (const std::uint64_t arrival : useless) {
      batch.erase(kSpoolSequences, arrival);
      batch.erase(kSpoolMarks, arrival);
    }
  });
}

Result<void> Spool::read_groups(SpooledFeed& feed) {
  std::vector<std::pair<std::uint64_t, LiveGroupChange>> all;
  auto done = read_table(kSpoolGroups, [&](std::uint64_t id, std::span<const std::byte> value) {
    const auto group = unpack_struct<wire::SpoolGroup>(value);
    constexpr auto kStates = static_cast<std::uint64_t>(SequenceState::abandoned) + 1;
    if (!group || group->closed() > kStates) {
      return Result<void>(damaged_spool(name(), fmt::format("group {} makes no sense", id)));
    }
    LiveGroupChange change{id, group->gone(), {}};
    if (group->closed() != 0) change.closed = static_cast<SequenceState>(group->closed() - 1);
    all.emplace_back(group->order(), change);
    group_changes_ = std::max(group_changes_, group->order());
    return Result<void>();
  });
  if (!done) return done;
  std::ranges::sort(all, {}, &std::pair<std::uint64_t, LiveGroupChange>::first);
  for (const auto& [order, change] : all) feed.pool.groups.push_back(change);
  return {};
}

}  // namespace batchwright
