#include "tests/simulation/daemon/live_witness.h"

#include <fmt/format.h>

#include <algorithm>

namespace batchwright::simulation {
namespace {

/// Producers that stand still are back before.
constexpr std::uint64_t kLongClaim = 60'000;

std::uint64_t total_of(const LiveProducer& producer, wire::Outcome outcome) {
  return producer.outcomes.totals()[static_cast<std::size_t>(outcome)];
}

}  // namespace

void LiveWitness::begin(std::uint64_t incarnation, const SpooledFeed* spooled) {
  life_ = &lives_[incarnation];
  if (spooled != nullptr) go_on(*spooled);
}

std::optional<std::string> LiveWitness::name_of(const LiveService& desk, const ProducerKey& key) {
  const auto& connected = desk.producers().connected();
  const auto found = connected.find(key);
  if (found == connected.end()) return {};
  return *desk.producers().at(found->second).name;
}

void LiveWitness::asked(const LiveService& desk, SessionId session, const LiveRequest& request) {
  const auto producer = [&](std::uint32_t number) -> const LiveProducer* {
    const auto& connected = desk.producers().connected();
    const auto found = connected.find({session, number});
    return found == connected.end() ? nullptr : &desk.producers().at(found->second);
  };
  if (const auto* push = std::get_if<PushAsked>(&request)) {
    const LiveProducer* const from = producer(push->push.producer);
    if (from != nullptr && !from->push && comes_whole(*from, *push)) {
      pushed(desk, *from, push->push);
    }
    if (push->push.framed) world_.sometimes(Mark::live_framed);
    if (push->push.framed && from != nullptr && !from->area.bytes.empty())
      world_.sometimes(Mark::live_area_full);
  } else if (const auto* claim = std::get_if<wire::ClaimT>(&request)) {
    const LiveProducer* const from = producer(claim->producer);
    if (from != nullptr) life_->producers[*from->name].asked = claim->count;
  } else if (const auto* abandon = std::get_if<wire::AbandonT>(&request)) {
    const LiveProducer* const from = producer(abandon->producer);
    if (from != nullptr) abandoned(*from, *abandon);
  } else if (const auto* advance = std::get_if<wire::AdvanceT>(&request)) {
    advanced(*advance);
  } else if (std::holds_alternative<wire::EndFeedT>(request)) {
    life_->ended = true;
  } else if (const auto* close = std::get_if<wire::CloseProducerT>(&request)) {
    if (producer(close->producer) != nullptr) session_ended(desk, session);
  }
}

/// Whether all of its frame is here.
bool LiveWitness::comes_whole(const LiveProducer& from, const PushAsked& asked) {
  std::uint64_t& here = life_->producers[*from.name].frame_bytes;
  const wire::PushT& push = asked.push;
  here = push.total_bytes == 0 ? 0 : push.part_at + asked.frame.bytes.size();
  if (here < push.total_bytes) return false;
  here = 0;
  return true;
}

void LiveWitness::pushed(const LiveService& /*desk*/, const LiveProducer& from,
                         const wire::PushT& push) {
  const std::string& name = *from.name;
  Producer& own = life_->producers[name];
  std::size_t key_at = 0;
  for (std::size_t i = 0; i < push.sequences.size(); ++i) {
    const wire::OfferedSequence& one = push.sequences[i];
    const auto* key = reinterpret_cast<const char*>(push.keys.data()) + key_at;
    key_at += one.key_bytes();
    const std::uint64_t number = push.first + i;
    if (number < from.next) continue;  // a repeat
    const bool claimed = own.claimed != 0;
    if (claimed) --own.claimed;
    life_->is_paced = life_->is_paced && claimed;
    Offered offered;
    offered.key.assign(key, one.key_bytes());
    offered.length = push.lengths[i];
    offered.version = one.version();
    if (settings_.groups != LiveGroups::none) offered.group = one.group();
    if (offered.group != kNoGroup) {
      Group& group = life_->groups[offered.group];
      group.size = one.group_size();
      if (!group.since) group.since = world_.now();
    }
    life_->offered[{name, number}] = std::move(offered);
  }
}

void LiveWitness::advanced(const wire::AdvanceT& advance) {
  Life& life = *life_;
  if (advance.version <= life.version && !advance.restored) return;
  life.version = advance.version;
  if (!life.granted && life.batches.empty()) {
    life.first_version = advance.version;
    return;
  }
  const std::uint64_t steps = life.batches.size() / settings_.world;
  if (advance.restored || life.version - life.first_version > steps) life.is_paced = false;
}

void LiveWitness::abandoned(const LiveProducer& from, const wire::AbandonT& abandon) {
  Life& life = *life_;
  if (abandon.by_number) {
    const auto found = life.offered.find({*from.name, abandon.number});
    if (found != life.offered.end() && found->second.group != kNoGroup) {
      ++life.groups[found->second.group].abandoned;
    }
    return;
  }
  Producer& own = life.producers[*from.name];
  own.claimed -=
      abandon.count == 0 ? own.claimed : std::min<std::uint64_t>(own.claimed, abandon.count);
  if (abandon.group == kNoGroup) return;
  Group& group = life.groups[abandon.group];
  group.abandoned += abandon.count;
  group.may_lack = group.may_lack || abandon.count == 0;
}

/// What its producers claimed is over, and groups that they alone were in are closed.
void LiveWitness::session_ended(const LiveService& desk, SessionId session) {
  for (const ProducerKey& key : desk.producers().keys_of(session)) {
    const std::string name = *name_of(desk, key);
    life_->producers[name].claimed = 0;
    for (const auto& [whose, offered] : life_->offered) {
      if (whose.first == name && offered.group != kNoGroup) {
        life_->groups[offered.group].may_lack = true;
      }
    }
  }
}

void LiveWitness::sent(const LiveService& desk, SessionId session, const ControlMessage& message) {
  if (const auto* accepted = message.as<wire::Accepted>()) {
    if (const auto name = name_of(desk, {session, accepted->producer()})) {
      std::uint64_t& known = life_->producers[*name].accepted;
      known = std::max(known, accepted->next());
    }
  }
  const auto* claimed = message.as<wire::Claimed>();
  if (claimed == nullptr || claimed->code() != 0 || claimed->ended()) return;
  const auto name = name_of(desk, {session, claimed->producer()});
  if (!name) return;  // it is gone, and so is the claim
  Producer& own = life_->producers[*name];
  own.claimed += std::exchange(own.asked, 0);
  life_->granted = true;
}

void LiveWitness::check(const LiveService& desk, const BatchSource& source) {
  const EpochOutline outline = source.outline();
  if (outline.batches % settings_.world != 0) world_.fail("a step lacks batches");
  const std::uint64_t seen = life_->batches.size();
  for (std::uint64_t step = seen / settings_.world; step < outline.steps(); ++step) {
    check_step(desk, source, step);
  }
  check_producers(desk);
}

void LiveWitness::check_step(const LiveService& desk, const BatchSource& source,
                             std::uint64_t step) {
  if (settings_.step_unit == StepUnit::lanes) return check_lanes(source, step);
  std::map<std::uint64_t, std::set<Name>> groups;
  std::map<Name, std::uint32_t> fillers = fillers_of(source, step);
  std::uint64_t rows_of_step = 0;
  std::uint64_t frames_of_step = 0;
  for (std::uint64_t rank = 0; rank < settings_.world; ++rank) {
    const BatchIndex index{step * settings_.world + rank};
    std::vector<Row> rows;
    source.rows(index, rows);
    const auto live = source.live_rows(index);
    if (!live || rows.empty()) {
      world_.fail(fmt::format("batch {} of step {} has no rows", rank, step));
    }
    std::set<std::uint64_t> here;
    life_->batches.emplace_back();
    rows_of_step += rows.size();
    for (std::size_t r = 0; r < rows.size(); ++r) {
      frames_of_step += rows[r].length;
      const Name name{live->names[live->producers[r]], live->numbers[r]};
      const bool is_filler = rows[r].weight == 0 && fillers[name] != 0;
      if (is_filler) --fillers[name];
      check_row(desk, source, index, *live, rows[r], r, is_filler);
      if (is_filler) continue;
      const std::uint64_t group = life_->offered.at(name).group;
      if (group == kNoGroup) continue;
      if (settings_.groups == LiveGroups::batch && here.insert(group).second &&
          !groups[group].empty()) {
        world_.fail(fmt::format("group {} is in two batches of step {}", group, step));
      }
      groups[group].insert(name);
    }
    check_bytes(source, index);
  }
  const bool in_frames = settings_.step_unit == StepUnit::frames;
  const std::uint64_t had = in_frames ? frames_of_step : rows_of_step;
  if (had < settings_.step && !life_->ended) world_.sometimes(Mark::live_step_short);
  const bool is_counted =
      settings_.step_unit == StepUnit::sequences && settings_.groups == LiveGroups::none;
  if (is_counted && rows_of_step > std::max(settings_.step, settings_.world)) {
    world_.fail(
        fmt::format("step {} has {} rows, and a budget of {}", step, rows_of_step, settings_.step));
  }
  for (const auto& [group, members] : groups) check_group(group, members);
}

void LiveWitness::check_row(const LiveService& desk, const BatchSource& source, BatchIndex index,
                            const LiveRows& live, const Row& row, std::size_t r, bool is_filler) {
  const std::uint64_t step = index.value / source.outline().world;
  const Name name{live.names[live.producers[r]], live.numbers[r]};
  const auto fail = [&](const std::string& what) {
    world_.fail(fmt::format("step {}: sequence {} of {} {}", step, name.second, name.first, what));
  };
  const auto found = life_->offered.find(name);
  if (found == life_->offered.end()) fail("was never pushed");
  Offered& offered = found->second;
  if (offered.length != row.length || offered.version != live.versions[r] ||
      (settings_.groups != LiveGroups::none && offered.group != live.groups[r])) {
    fail("is not what was pushed");
  }
  const auto producer = std::find_if(
      desk.producers().connected().begin(), desk.producers().connected().end(),
      [&](const auto& each) { return *desk.producers().at(each.second).name == name.first; });
  if (producer != desk.producers().connected().end() &&
      name.second >= desk.producers().at(producer->second).next) {
    fail("is in a step, and was not accepted");
  }
  life_->batches.back().push_back(
      {name.first, name.second, live.versions[r], row.length, row.weight});
  if (is_filler && may_fill()) return world_.sometimes(Mark::live_filler);
  if (offered.step == step) fail("is in it twice");
  offered.step = step;
  if (++offered.deliveries > 1) world_.sometimes(Mark::live_reused);
  if (settings_.reuse != 0 && offered.deliveries > settings_.reuse) {
    fail(fmt::format("is delivered for the {}. time", offered.deliveries));
  }
  const auto [same, is_new] = life_->keys.emplace(offered.key, name);
  if (!is_new && same->second != name) fail(fmt::format("is item {} again", offered.key));
  check_staleness(live, row, r);
}

/// How many rows of weight 0 repeat a row of the step.
std::map<LiveWitness::Name, std::uint32_t> LiveWitness::fillers_of(const BatchSource& source,
                                                                   std::uint64_t step) const {
  std::map<Name, std::uint32_t> more;
  for (std::uint64_t rank = 0; rank < settings_.world; ++rank) {
    const auto live = source.live_rows(BatchIndex{step * settings_.world + rank});
    for (std::size_t r = 0; live && r < live->numbers.size(); ++r) {
      const auto [name, is_new] =
          more.try_emplace({live->names[live->producers[r]], live->numbers[r]}, 0);
      if (!is_new) ++name->second;
    }
  }
  return more;
}

/// Whether a rank without a row may have another's: at the end, or where a step of so many groups
/// has fewer rows than there are ranks.
bool LiveWitness::may_fill() const {
  return life_->ended || settings_.step_unit == StepUnit::groups;
}

/// By the version alone: one of a line that a restore has ended is no fresher.
void LiveWitness::check_staleness(const LiveRows& live, const Row& row, std::size_t r) {
  const std::uint64_t version = live.versions[r];
  const std::uint64_t staleness = live.version - std::min(live.version, version);
  if (row.weight == 0) world_.sometimes(Mark::live_rows_zeroed);
  if (!settings_.max_staleness || staleness <= *settings_.max_staleness) return;
  if (settings_.stale == StalePolicy::zero && row.weight == 0) return;
  world_.fail(fmt::format("sequence {} of {} has version {} in a step of version {}, above {}",
                          live.numbers[r], live.names[live.producers[r]], version, live.version,
                          *settings_.max_staleness));
}

void LiveWitness::check_group(std::uint64_t id, const std::set<Name>& members) {
  Group& group = life_->groups.at(id);
  if (group.cut && (*group.cut != members || settings_.reuse == 1)) {
    world_.fail(fmt::format("group {} is torn: members are in two steps", id));
  }
  group.cut = members;
  if (members.size() > group.size) world_.fail(fmt::format("group {} has too many members", id));
  if (members.size() == group.size) return world_.sometimes(Mark::live_group_whole);
  const auto waited = world_.now() - *group.since;
  const bool late = waited > std::chrono::milliseconds(settings_.group_timeout_ms -
                                                       2);  // the pool's clock is coarse
  const std::uint64_t absent = group.size - members.size();
  if (absent > group.abandoned && !group.may_lack && !late && !life_->ended) {
    world_.fail(fmt::format("group {} is cut with {} of {} members, and {} were abandoned", id,
                            members.size(), group.size, group.abandoned));
  }
  world_.sometimes(Mark::live_group_short);
}

void LiveWitness::check_producers(const LiveService& desk) {
  std::uint64_t waiting = 0;
  const bool is_drop_free = settings_.paced() && life_->is_paced && !has_several_loops_ &&
                            settings_.claim_timeout_ms >= kLongClaim;
  for (ProducerId id = 0; id < desk.producers().size(); ++id) {
    const LiveProducer& one = desk.producers().at(id);
    waiting += total_of(one, wire::Outcome::waiting);
    const std::uint64_t dropped = total_of(one, wire::Outcome::dropped_stale);
    if (dropped != 0) world_.sometimes(Mark::live_dropped_stale);
    if (total_of(one, wire::Outcome::abandoned) != 0) world_.sometimes(Mark::live_abandoned);
    if (!is_drop_free) continue;
    if (dropped != 0) {
      world_.fail(fmt::format("all was claimed, and {} of {} were dropped", dropped, *one.name));
    }
    if (life_->version > life_->first_version) world_.sometimes(Mark::live_paced);
  }
  if (waiting > settings_.pool_sequences) {
    world_.fail(
        fmt::format("{} sequences wait in a pool for {}", waiting, settings_.pool_sequences));
  }
}

void LiveWitness::check(const Holding& batch) const {
  const wire::Batch& content = *batch.content;
  const auto life = lives_.find(batch.data);
  if (life == lives_.end()) world_.fail("a batch is of a feed that never was");
  const wire::LiveRows* const live = content.live();
  const auto& batches = life->second.batches;
  const bool same_place = content.epoch() == batch.epoch && content.index() == batch.index;
  if (!same_place || live == nullptr || batch.index >= batches.size()) {
    world_.fail(
        fmt::format("the batch {} has the bytes of batch {}", batch.index, content.index()));
  }
  const SeenBatch& rows = batches[static_cast<std::size_t>(batch.index)];
  bool same = rows.size() == live->numbers()->size();
  for (std::uint32_t r = 0; same && r < live->numbers()->size(); ++r) {
    const SeenRow& row = rows[r];
    const auto* name = live->producer_names()->Get(live->producers()->Get(r));
    same = row.number == live->numbers()->Get(r) && row.producer == name->string_view() &&
           row.version == live->versions()->Get(r) && row.length == content.lengths()->Get(r) &&
           row.weight == content.weights()->Get(r);
  }
  if (!same) world_.fail(fmt::format("batch {} has other rows than were cut", batch.index));
}

std::uint64_t LiveWitness::steps(std::uint64_t incarnation) const {
  const auto life = lives_.find(incarnation);
  return life == lives_.end() ? 0 : life->second.batches.size() / settings_.world;
}

void LiveWitness::check_all_done(const LiveService& desk) const {
  for (ProducerId id = 0; id < desk.producers().size(); ++id) {
    const LiveProducer& one = desk.producers().at(id);
    const std::uint64_t settled = total_of(one, wire::Outcome::done) +
                                  total_of(one, wire::Outcome::dropped_stale) +
                                  total_of(one, wire::Outcome::abandoned);
    if (settled == one.next) continue;
    world_.fail(fmt::format("{} of the {} sequences of {} are settled, and all has ended", settled,
                            one.next, *one.name));
  }
}

}  // namespace batchwright::simulation
