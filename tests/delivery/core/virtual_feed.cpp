#include "tests/delivery/core/virtual_feed.h"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <variant>

#include "tests/delivery/talk.h"

namespace batchwright::test {
namespace {

constexpr std::size_t kBatchBytes = 64;

DataFacts facts_of(std::uint64_t sequences) {
  DataFacts facts;
  facts.sequences = sequences;
  return facts;
}

FeedParts parts_of(const FeedSettings& settings, std::uint64_t sequences) {
  auto slots = std::make_shared<SlotGeneration>(
      ArenaNumber{1}, *Arena::create(settings.slots, 4096), std::make_shared<MemoryBudget>());
  std::optional<JournalState> journal;
  if (!settings.journal.empty()) journal = JournalState{settings.journal.string(), {}, {1}};
  std::optional<std::string> ledger;
  if (!settings.ledger.empty()) ledger = settings.name;
  QueueService desk({}, std::move(journal), std::move(ledger), {1});
  const SchedulerLimits limits{settings.assembly_threads, settings.patience};
  return {settings, std::move(slots), limits, std::move(desk), Epoch{0}, sequences};
}

}  // namespace

VirtualFeed::VirtualFeed(FeedSettings settings, std::uint64_t sequences)
    : settings_(std::move(settings)) {
  if (settings_.slots == 0) settings_.slots = suited_slots(settings_.plan.world);
  for (std::uint64_t i = 0; i < sequences; ++i) {
    lengths_.push_back(static_cast<std::uint32_t>(i * 7919 % 5 + 1));
  }
  core_ = std::make_unique<FeedCore>(parts_of(settings_, sequences), plan(Epoch{0}),
                                     facts_of(sequences));
  tell(Started{});
}

PlannedEpoch VirtualFeed::plan(Epoch epoch) const {
  auto planned = plan_epoch(lengths_, settings_.plan, epoch);
  if (!planned) throw std::runtime_error(planned.error().message);
  const auto source =
      std::make_shared<const EpochSource>(epoch, Fingerprint{}, nullptr, std::move(*planned));
  const BatchIndex last{source->plan.batches() - 1};  // in order of length, it has the most frames
  return {source, source, {}, {last}, 0.0};
}

void VirtualFeed::tell(FeedEvent event) { core_->on(std::move(event), now_); }

/// Answers one thing that the core asked for and that is done by now; false when there is none.
bool VirtualFeed::answer() {
  if (!writing_.empty()) {
    written_ += writing_.front();
    writing_.pop_front();
    tell(Written{written_, {}});
    return true;
  }
  if (!planning_.empty()) {
    const Epoch epoch = planning_.front();
    planning_.pop_front();
    tell(PlanReady{plan(epoch), {}, {}, {}});
    return true;
  }
  if (!assembling_.empty() && assembling_.front().first <= now_) {
    const Assemble done = std::move(assembling_.front().second);
    assembling_.pop_front();
    tell(BatchReady{done.assignment, done.data, 0,
                    AssembledBatch{0, kBatchBytes, settings_.plan.size, 1, 1, 0, {}}});
    return true;
  }
  const auto timer = next_timer();
  if (timer == timers_.end() || timer->second > now_) return false;
  const FeedTimer due = timer->first;
  timers_.erase(timer);
  tell(TimerDue{due});
  return true;
}

std::map<FeedTimer, VirtualFeed::Time>::iterator VirtualFeed::next_timer() {
  return std::min_element(timers_.begin(), timers_.end(), [](const auto& one, const auto& other) {
    return one.second < other.second;
  });
}

bool VirtualFeed::step(Time deadline) {
  if (answer()) return true;
  if (core_->has_work()) {
    std::vector<FeedAction> actions;
    core_->decide(now_, actions);
    for (const FeedAction& action : actions) {
      std::visit([this](const auto& one) { carry_out(one); }, action);
    }
    now_ += kTurn;
    return true;
  }
  std::optional<Time> next;
  if (!assembling_.empty()) next = assembling_.front().first;
  if (const auto timer = next_timer(); timer != timers_.end()) {
    next = std::min(next.value_or(Time::max()), timer->second);
  }
  if (!next || *next > deadline) {
    now_ = std::max(now_, deadline);
    return false;
  }
  now_ = std::max(now_, *next);
  return true;
}

void VirtualFeed::carry_out(const SetTimer& action) { timers_[action.timer] = action.when; }

void VirtualFeed::carry_out(const Send& action) { deliver(action.session, action.message); }

void VirtualFeed::carry_out(const SendBatch& action) {
  deliver(action.session, action.ticket);
  tell(BatchSent{action.slot});
}

void VirtualFeed::deliver(SessionId session, const flatbuffers::DetachedBuffer& message) {
  auto read =
      ControlMessage::decode({reinterpret_cast<const std::byte*>(message.data()), message.size()});
  if (!read) throw std::runtime_error(read.error().message);
  sent_[session].push_back(std::move(*read));
}

VirtualClient::VirtualClient(VirtualFeed& feed, std::string program, Abilities abilities,
                             std::uint64_t token)
    : feed_(feed) {
  info_.session = feed.new_session();
  info_.token = token;
  info_.program = std::move(program);
  info_.abilities = abilities;
}

void VirtualClient::send(wire::SubscribeT subscribe) {
  const std::uint32_t number = subscribe.subscription;
  look_on(std::move(subscribe));
  say_waiting(number);
}

void VirtualClient::look_on(wire::SubscribeT subscribe) {
  const auto can = feed_.core().check_subscribe(info_, subscribe);
  if (can) return feed_.tell(SubscribeRequested{info_, std::move(subscribe)});
  wire::RefusedT refused;
  refused.code = static_cast<std::uint16_t>(can.error().code);
  refused.message = can.error().message;
  const auto bytes = encode(std::move(refused));
  feed_.sent_to(info_.session)
      .push_back(*ControlMessage::decode(
          {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}));
}

void VirtualClient::send(const wire::ReleaseT& release) {
  Released event{{info_.session, SubscriptionNumber{release.subscription}},
                 {},
                 release.undone,
                 release.keeps,
                 std::chrono::microseconds(release.waited_us)};
  for (const std::uint64_t lease : release.leases) event.leases.push_back({lease});
  feed_.tell(std::move(event));
}

void VirtualClient::send(const wire::AskT& question) {
  const SubscriptionKey key{info_.session, SubscriptionNumber{question.subscription}};
  if (question.quiet) return feed_.tell(ProgramWaits{key, question.holds});
  feed_.tell(ReasonAsked{key, question.holds, {}});
}

void VirtualClient::say_waiting(std::uint32_t subscription, std::uint32_t holds) {
  feed_.tell(ProgramWaits{{info_.session, SubscriptionNumber{subscription}}, holds});
}

void VirtualClient::die() { feed_.tell(SessionEnded{info_.session, {false, false, true}}); }

std::optional<ControlMessage> VirtualClient::receive_within(VirtualFeed::Time::duration most) {
  auto& sent = feed_.sent_to(info_.session);
  if (!feed_.eventually([&sent] { return !sent.empty(); }, most)) return {};
  auto message = std::move(sent.front());
  sent.pop_front();
  return message;
}

std::optional<ControlMessage> VirtualClient::receive() {
  return receive_within(std::chrono::seconds(10));
}

bool VirtualClient::silent() { return !receive_within(std::chrono::milliseconds(500)); }

bool join(VirtualClient& client, wire::SubscribeT subscribe) {
  client.send(std::move(subscribe));
  return read_until<wire::Subscribed>(client).has_value();
}

}  // namespace batchwright::test
