#include "daemon/delivery/feed.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

namespace batchwright {
namespace {

/// Subscriptions of one session to one feed; a trainer needs one.
constexpr std::size_t kMaxSubscriptions = 64;

std::string mib(std::uint64_t bytes) { return fmt::format("{:.1f} MiB", double(bytes) / 1048576); }

}  // namespace

Feed::Feed(std::uint32_t arena, FeedSettings settings, FeedResources resources, FeedPorts ports)
    : arena_number_(arena),
      settings_(std::move(settings)),
      resources_(std::move(resources)),
      ports_(std::move(ports)),
      style_(std::make_shared<const BatchStyle>(BatchStyle{
          settings_.name, settings_.layout, settings_.padding_value, settings_.on_corrupt})),
      cache_(settings_.slots),
      figures_(settings_.slots) {
  epochs_.planned(resources_.first_epoch);
  counters_.add(FeedCounter::epochs_planned);
}

void Feed::start() {
  const EpochSource& first = first_epoch();
  spdlog::info("feed {}: {} sequences, {} steps an epoch, world {}, fingerprint {}", name(),
               resources_.snapshot->sequences(), first.plan.steps(), first.plan.world(),
               to_string(first.fingerprint));
  spdlog::info("feed {}: arena {}, {} slots of {}, pages {}", name(), mib(arena().bytes()),
               settings_.slots, mib(arena().slot_bytes()), to_string(arena().pinned()));
  prefetch();
}

wire::FeedInfoT Feed::info() const {
  wire::FeedInfoT info;
  info.name = settings_.name;
  info.world = settings_.plan.world;
  info.layout = settings_.layout;
  info.sequences = resources_.snapshot->sequences();
  for (const FieldSpec& field : resources_.snapshot->schema().fields) {
    auto entry = std::make_unique<wire::FieldInfoT>();
    entry->name = field.name;
    entry->kind = field.kind;
    entry->dtype = field.dtype;
    entry->shape = field.shape;
    entry->categories = field.categories;
    info.fields.push_back(std::move(entry));
  }
  return info;
}

Result<Share> Feed::share_of(const wire::Subscribe& request) const {
  const std::uint32_t world = settings_.plan.world;
  switch (request.mode()) {
    case wire::Mode::replica: return whole_share(world);
    case wire::Mode::sharded: return rank_share(world, request.rank(), request.ranks());
    default: break;
  }
  return Error{ErrorCode::unsupported,
               fmt::format("mode {} is not served; allowed: replica (0), sharded (1)",
                           static_cast<int>(request.mode()))};
}

Result<void> Feed::check_subscribe(const SubscriptionKey& key,
                                   const wire::Subscribe& request) const {
  if (failure_) return *failure_;
  if (key.number == 0 || subscriptions_.contains(key)) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("subscription {} is taken; numbers start at 1", key.number)};
  }
  const auto mine = subscriptions_.lower_bound({key.session, 0});
  const auto others = subscriptions_.upper_bound({key.session, UINT32_MAX});
  if (std::distance(mine, others) >= std::ptrdiff_t{kMaxSubscriptions}) {
    return Error{ErrorCode::does_not_fit, "a client has at most 64 subscriptions to a feed"};
  }
  if (request.window() == 0) {
    return Error{ErrorCode::invalid_argument, "a window of 0 batches; allowed: 1 and up"};
  }
  std::set<Epoch> epochs = needed_epochs(false);
  epochs.insert(Epoch{request.epoch()});
  if (epochs.size() > most_epochs()) {
    return Error{ErrorCode::does_not_fit,
                 fmt::format("subscriptions stand in {} different epochs already, and each takes "
                             "a plan of its own; allowed: {}",
                             epochs.size() - 1, most_epochs())};
  }
  if (!request.expects_fingerprint() || request.fingerprint() == nullptr) return {};
  const Fingerprint expected = from_wire(*request.fingerprint());
  if (expected == fingerprint()) return {};
  return Error{ErrorCode::fingerprint_mismatch,
               fmt::format("the plan of feed {} is another: {} changed (expected {}, now {})",
                           name(), describe_difference(expected, fingerprint()),
                           to_string(expected), to_string(fingerprint()))};
}

Result<void> Feed::subscribe(const ClientInfo& client, const wire::Subscribe& request) {
  const SubscriptionKey key{client.session, request.subscription()};
  if (auto checked = check_subscribe(key, request); !checked) return checked;
  const auto share = share_of(request);
  if (!share) return share.error();
  const std::uint32_t most = std::max(1U, std::min(settings_.max_window, settings_.slots / 2));
  Subscription subscription(client, Cursor(*share, Epoch{request.epoch()}, Step{0}));
  subscription.mode = request.mode();
  subscription.rank = request.rank();
  subscription.ranks = request.ranks();
  subscription.window = std::min(request.window(), most);
  subscription.epochs_left = request.epochs();
  subscription.first_step = Step{request.step()};
  had_subscriber_ = true;
  subscriptions_.emplace(key, std::move(subscription));
  pump();
  return {};
}

void Feed::unsubscribe(SessionId session, std::uint32_t number) {
  const auto found = subscriptions_.find({session, number});
  if (found == subscriptions_.end()) return;
  for (const auto& [lease, slot] : found->second.leases) give_back(slot);
  subscriptions_.erase(found);
  forget_epochs();
  pump();
}

void Feed::release(SessionId session, const wire::Release& release) {
  const auto found = subscriptions_.find({session, release.subscription()});
  for (const std::uint64_t lease : *release.leases()) {
    const bool known = found != subscriptions_.end() && found->second.leases.contains(lease);
    counters_.add(known ? FeedCounter::releases : FeedCounter::releases_unknown);
    if (!known) continue;
    give_back(found->second.leases.at(lease));
    found->second.leases.erase(lease);
  }
  if (found == subscriptions_.end() || failure_) return;
  serve(found->first, found->second);
  pump_soon();
}

void Feed::drop_session(SessionId session) {
  const auto first = subscriptions_.lower_bound({session, 0});
  const auto last = subscriptions_.upper_bound({session, UINT32_MAX});
  if (first == last) return;
  for (auto it = first; it != last; ++it) {
    for (const auto& [lease, slot] : it->second.leases) give_back(slot);
  }
  subscriptions_.erase(first, last);
  forget_epochs();
  pump();
}

void Feed::give_back(SlotIndex slot) {
  if (!cache_.release(slot) || !settings_.poison) return;
  cache_.retire(slot);
  ports_.assembler.poison(arena().slot(slot), [this, slot] {
    boost::asio::post(ports_.loop, [this, slot] {
      cache_.abandon(slot);
      pump();
    });
  });
}

/// Hands out what is ready, to everyone, each time beginning with another; only then assembles
/// what is waited for, and then what comes next. The other way round, one who waits could take
/// the slot of a batch that is ready for the next in line, and be robbed in turn, without end.
void Feed::pump() {
  if (failure_) return;
  std::vector<SubscriptionKey> keys;
  keys.reserve(subscriptions_.size());
  for (const auto& [key, subscription] : subscriptions_) keys.push_back(key);
  if (!keys.empty()) {
    std::rotate(keys.begin(), keys.begin() + long(turn_++ % keys.size()), keys.end());
  }
  for (const SubscriptionKey& key : keys) {
    serve(key, subscriptions_.at(key));
    if (failure_) return;
  }
  request_plan();
  for (const SubscriptionKey& key : keys) {
    if (const auto id = demand_of(subscriptions_.at(key))) assemble(*id, 0);
  }
  prefetch();
}

/// Once for all that happens in this turn of the loop.
void Feed::pump_soon() {
  if (std::exchange(pump_posted_, true)) return;
  boost::asio::post(ports_.loop, [this] {
    pump_posted_ = false;
    pump();
  });
}

void Feed::serve(const SubscriptionKey& key, Subscription& subscription) {
  while (!subscription.finished && serve_next(key, subscription)) {
  }
}

/// One event for one subscription; false when it has to wait.
bool Feed::serve_next(const SubscriptionKey& key, Subscription& subscription) {
  const auto epoch = epochs_.find(subscription.cursor.epoch());
  if (!epoch) {
    const auto unplannable = unplannable_.find(subscription.cursor.epoch());
    if (unplannable != unplannable_.end()) refuse(key, subscription, unplannable->second);
    return false;
  }
  if (!subscription.accepted) {
    accept(key, subscription, *epoch);
    return true;
  }
  if (subscription.cursor.at_end(epoch->plan.steps())) {
    end_epoch(key, subscription, epoch->plan.steps());
    return true;
  }
  const BatchId id = subscription.cursor.next();
  if (!subscription.has_credit() || !may_take(subscription, id)) return false;
  if (const auto broken = broken_.find(id); broken != broken_.end()) {
    fail(Error(broken->second));
    return false;
  }
  const auto slot = cache_.find(id);
  if (!slot || cache_.state(*slot) != SlotState::ready) return false;
  deliver(key, subscription, *slot);
  return true;
}

void Feed::accept(const SubscriptionKey& key, Subscription& subscription,
                  const EpochSource& epoch) {
  const std::uint64_t steps = epoch.plan.steps();
  const Step first = subscription.first_step;
  if (first.value > steps) {
    return refuse(
        key, subscription,
        {ErrorCode::invalid_argument, fmt::format("step {} of epoch {}, which has {} steps",
                                                  first.value, epoch.epoch.value, steps)});
  }
  subscription.cursor = Cursor(subscription.cursor.share(), epoch.epoch, first);
  subscription.accepted = true;
  wire::SubscribedT answer;
  answer.subscription = key.number;
  answer.fingerprint = std::make_unique<wire::Fingerprint>(to_wire(epoch.fingerprint));
  answer.epoch = epoch.epoch.value;
  answer.step = first.value;
  answer.steps = steps;
  answer.batches_per_step = subscription.cursor.share().count;
  answer.world = epoch.plan.world();
  answer.window = subscription.window;
  answer.arena = arena_number_;
  answer.arena_bytes = arena().bytes();
  ports_.send(key.session, encode(std::move(answer)));
  spdlog::info(
      "feed {}: session {:x} subscribes at epoch {} step {}, {} of {} batches a step, window {}",
      name(), key.session.value, epoch.epoch.value, first.value, subscription.cursor.share().count,
      epoch.plan.world(), subscription.window);
}

void Feed::end_epoch(const SubscriptionKey& key, Subscription& subscription, std::uint64_t steps) {
  wire::EpochEndT end;
  end.subscription = key.number;
  end.epoch = subscription.cursor.epoch().value;
  end.steps = steps;
  end.last = subscription.epochs_left == 1;
  subscription.finished = end.last;
  if (subscription.epochs_left > 1) --subscription.epochs_left;
  ports_.send(key.session, encode(std::move(end)));
  subscription.cursor.begin_next_epoch();
  forget_epochs();
}

void Feed::deliver(const SubscriptionKey& key, Subscription& subscription, SlotIndex slot) {
  const BatchId id = subscription.cursor.next();
  const Extent& extent = cache_.extent(slot);
  const std::uint64_t lease = next_lease_++;
  cache_.hold(slot);
  subscription.leases.emplace(lease, slot);
  ++subscription.delivered;

  wire::DeliveryT ticket;
  ticket.subscription = key.number;
  ticket.lease = lease;
  ticket.arena = arena_number_;
  ticket.slot = slot.value;
  ticket.offset = extent.offset;
  ticket.size = extent.size;
  ticket.epoch = id.epoch.value;
  ticket.step = subscription.cursor.step().value;
  ticket.index = id.index.value;
  subscription.cursor.advance();

  DeliveredFigures& figures = figures_[slot.value];
  counters_.add(FeedCounter::batches_delivered);
  counters_.add(FeedCounter::bytes_delivered, extent.size);
  counters_.add(FeedCounter::sequences_delivered, figures.rows);
  counters_.add(FeedCounter::frames_delivered, figures.frames);
  counters_.add(FeedCounter::padded_frames_delivered, figures.padded_frames);
  if (figures.deliveries++ > 0) counters_.add(FeedCounter::batches_shared);
  ports_.send(key.session, encode(std::move(ticket)));
}

}  // namespace batchwright
