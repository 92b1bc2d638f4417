// What rows have: the bytes that producers wrote, and with lanes the parts of sequences. Each lane
// goes through one after the other, and leaves out nothing.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tests/simulation/daemon/live_witness.h"

namespace batchwright::simulation {

/// The key is what its producer gave it, and what lies there is what it wrote.
void LiveWitness::check_bytes(const BatchSource& source, BatchIndex index) const {
  std::vector<Row> rows;
  source.rows(index, rows);
  const auto live = source.live_rows(index);
  const auto reader = source.read(index, rows);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].length == 0) continue;  // a free lane's
    RowBytes row;
    if (auto read = reader->read(r, row); !read) world_.fail(read.error().message);
    const Name name{live->names[live->producers[r]], live->numbers[r]};
    const auto offered = life_->offered.find(name);
    if (offered == life_->offered.end() || offered->second.key != row.key) {
      world_.fail(
          fmt::format("the key of sequence {} of {} is not its own", name.second, name.first));
    }
    const std::span<const std::byte> bytes = row.fields.front().bytes;
    for (const std::size_t at : {std::size_t{0}, bytes.size() - sizeof(std::uint32_t)}) {
      std::uint32_t found = 0;
      std::memcpy(&found, bytes.data() + at, sizeof found);
      if (found == written_for(row.key)) continue;
      world_.fail(fmt::format("sequence {} of {} is read, and its bytes are others'", name.second,
                              name.first));
    }
  }
}

void LiveWitness::check_lanes(const BatchSource& source, std::uint64_t step) {
  const auto of_rank = static_cast<std::size_t>(settings_.step / settings_.world);
  life_->lanes.resize(settings_.step);
  for (std::uint64_t rank = 0; rank < settings_.world; ++rank) {
    const BatchIndex index{step * settings_.world + rank};
    std::vector<Row> rows;
    source.rows(index, rows);
    const auto live = source.live_rows(index);
    if (!live || rows.size() != of_rank) {
      world_.fail(fmt::format("batch {} of step {} has not its lanes", rank, step));
    }
    SeenBatch& seen = life_->batches.emplace_back();
    std::size_t with_frames = 0;
    for (std::size_t r = 0; r < of_rank; ++r) {
      seen.push_back({live->names[live->producers[r]], live->numbers[r], live->versions[r],
                      rows[r].length, rows[r].weight});
      with_frames += rows[r].length != 0 ? 1 : 0;
      check_lane(*live, rows[r], r, life_->lanes[rank * of_rank + r]);
    }
    if (with_frames == 0) world_.fail(fmt::format("batch {} of step {} has no rows", rank, step));
    check_bytes(source, index);
  }
}

/// What was cut and is not in the spool was told to no client, and may be cut otherwise now.
void LiveWitness::go_on(const SpooledFeed& spooled) {
  Life& life = *life_;
  const SpoolCounts& counts = spooled.counts;
  if (!life.batches.empty()) world_.sometimes(Mark::live_spooled);
  for (const SpooledProducer& one : spooled.producers) {
    const std::uint64_t accepted = life.producers[*one.name].accepted;
    if (accepted <= one.next) continue;
    world_.fail(fmt::format("{} was told that {} sequences are accepted, and the spool has {}",
                            *one.name, accepted, one.next));
  }
  if (life.batches.size() < counts.steps * settings_.world) {
    world_.fail(fmt::format("the spool has {} steps, and {} batches were cut", counts.steps,
                            life.batches.size()));
  }
  if (life.batches.size() > counts.steps * settings_.world) world_.sometimes(Mark::live_cut_again);
  life.batches.resize(static_cast<std::size_t>(counts.steps * settings_.world));
  life.is_paced = false;
  life.version = counts.versions.current;
  for (auto& [name, producer] : life.producers) producer.claimed = producer.asked = 0;
  for (auto& [name, offered] : life.offered) {
    offered.deliveries = 0;
    offered.step.reset();
  }
  for (auto& [id, group] : life.groups) group.cut.reset();
  for (std::uint64_t step = 0; step < counts.steps; ++step) {
    std::set<Name> rows;  // without those that fill a rank
    for (std::uint64_t i = step * settings_.world; i < (step + 1) * settings_.world; ++i) {
      for (const SeenRow& row : life.batches[static_cast<std::size_t>(i)]) {
        if (row.length != 0) rows.insert({row.producer, row.number});
      }
    }
    std::map<std::uint64_t, std::set<Name>> groups;
    for (const Name& name : rows) {
      Offered& offered = life.offered.at(name);
      ++offered.deliveries;
      offered.step = step;
      if (offered.group != kNoGroup) groups[offered.group].insert(name);
    }
    for (auto& [id, members] : groups) life.groups.at(id).cut = std::move(members);
  }
  if (settings_.step_unit == StepUnit::lanes) go_on_in_lanes(spooled);
}

/// What was in a step is through, unless a lane has it.
void LiveWitness::go_on_in_lanes(const SpooledFeed& spooled) {
  for (auto& [name, offered] : life_->offered) {
    offered.next = offered.deliveries != 0 ? offered.length : 0;
    offered.deliveries = std::min(offered.deliveries, 1U);
  }
  life_->lanes.assign(static_cast<std::size_t>(settings_.step), std::nullopt);
  for (const LivePoolState::Lane& lane : spooled.pool.lanes) {
    const auto& all = spooled.pool.sequences;
    const auto found = std::ranges::find(all, lane.arrival, &LivePoolState::Sequence::arrival);
    if (found == all.end() || lane.lane >= life_->lanes.size()) {
      world_.fail(fmt::format("lane {} of the spool has no sequence", lane.lane));
    }
    const Name name{*spooled.producers.at(found->push.producer).name, found->push.number};
    life_->lanes[lane.lane] = name;
    life_->offered.at(name).next = lane.next;
  }
}

void LiveWitness::check_lane(const LiveRows& live, const Row& row, std::size_t r,
                             std::optional<Name>& lane) {
  const Name name{live.names[live.producers[r]], live.numbers[r]};
  const auto fail = [&](const std::string& what) {
    world_.fail(fmt::format("lane {}: sequence {} of {} {}", r, name.second, name.first, what));
  };
  // Where a step would serve no one, all lanes let go of what they have.
  const bool may_let_go = settings_.stale == StalePolicy::zero && row.start == 0;
  if (row.length == 0) {
    if (lane && !may_let_go) fail("came before, and its lane is free");
    lane.reset();
    return world_.sometimes(Mark::live_lane_free);
  }
  const auto found = life_->offered.find(name);
  if (found == life_->offered.end()) return fail("was never pushed");
  Offered& offered = found->second;
  const bool is_anothers = offered.deliveries != 0 && lane != name;
  if (row.weight == 0 && life_->ended && r == 0 && is_anothers && (!lane || may_let_go)) {
    lane.reset();
    return world_.sometimes(Mark::live_filler);
  }
  if (row.start == 0) {
    if (lane && !may_let_go) fail("comes into a lane that has another");
    if (++offered.deliveries != 1) fail("is taken twice");
    offered.next = 0;
    check_staleness(live, row, r);
  } else {
    if (lane != name) fail("goes on in another lane");
    world_.sometimes(Mark::live_lane_goes_on);
  }
  const std::uint32_t frames =
      std::min(static_cast<std::uint32_t>(settings_.unroll), offered.length - offered.next);
  if (row.start != offered.next || row.length != frames || live.versions[r] != offered.version) {
    fail("is not given in its parts");
  }
  offered.next += frames;
  const bool is_last = offered.next == offered.length;
  if (row.flags != ((row.start == 0 ? kRowReset : 0) | (is_last ? kRowLast : 0))) {
    fail("has other flags");
  }
  lane = is_last ? std::nullopt : std::optional(name);
}

}  // namespace batchwright::simulation
