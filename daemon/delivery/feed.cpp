#include "daemon/delivery/feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>

namespace batchwright {
namespace {

/// Subscriptions of one session to one feed; a trainer needs one.
constexpr std::size_t kMaxSubscriptions = 64;

std::string mib(std::uint64_t bytes) { return fmt::format("{:.1f} MiB", double(bytes) / 1048576); }

std::vector<std::uint64_t> leases_in(const flatbuffers::Vector<std::uint64_t>* leases) {
  if (leases == nullptr) return {};
  return {leases->begin(), leases->end()};
}

/// Leases count from the microseconds since 1970 at which the daemon began: above those of every
/// daemon before it, also of one whose journal a power cut has shortened.
std::uint64_t first_lease() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

}  // namespace

Feed::Feed(std::uint32_t number, FeedSettings settings, FeedResources resources, FeedPorts ports)
    : number_(number),
      settings_(std::move(settings)),
      resources_(std::move(resources)),
      ports_(std::move(ports)),
      style_(make_style()),
      slots_(std::make_shared<SlotGeneration>(number, std::move(resources_.arena), ports_.memory)),
      generations_{slots_},
      plan_seconds_(resources_.first_epoch.seconds),
      grace_(ports_.loop),
      patience_(ports_.loop),
      next_lease_(first_lease()) {
  if (resources_.journal) next_lease_ = std::max(next_lease_, resources_.journal->next_lease());
  contents_[first_epoch().epoch] = first_epoch().fingerprint.data;
  if (resources_.journal) contents_[queue().epoch()] = resources_.journal->fingerprint().data;
  epochs_.planned(resources_.first_epoch);
  counters_.add(FeedCounter::epochs_planned);
}

FeedState Feed::state() const {
  if (failure_) return FeedState::failed;
  return has_first_batch_ ? FeedState::serving : FeedState::starting;
}

std::shared_ptr<const BatchStyle> Feed::make_style() const {
  return std::make_shared<const BatchStyle>(BatchStyle{
      settings_.name, settings_.layout, settings_.padding_value, settings_.on_corrupt, times_});
}

void Feed::start() {
  const EpochSource& first = first_epoch();
  ports_.log.note<Event::feed_opened>(name(), resources_.snapshot->sequences(), first.plan.steps(),
                                      first.plan.world(), to_string(first.fingerprint));
  ports_.log.note<Event::arena_reserved>(name(), mib(arena().bytes()), settings_.slots,
                                         mib(arena().slot_bytes()), to_string(arena().pinned()));
  if (resources_.journal) {
    ports_.log.note<Event::queue_resumed>(name(), queue().epoch().value, queue().done_count(),
                                          queue().out().size());
    work().keep_all(WorkQueue::Time::clock::now() + settings_.queue_grace);
    await_returns();
  }
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

const Arena* Feed::find_arena(std::uint32_t number) const {
  for (const auto& generation : generations_) {
    const auto there = generation.lock();
    if (there && there->number == number) return there->arena.get();
  }
  return nullptr;
}

Result<Share> Feed::share_of(const wire::Subscribe& request) const {
  const std::uint32_t world = settings_.plan.world;
  switch (request.mode()) {
    case wire::Mode::replica:
    case wire::Mode::queue: return whole_share(world);
    case wire::Mode::sharded: return rank_share(world, request.rank(), request.ranks());
    default: break;
  }
  return Error{ErrorCode::unsupported,
               fmt::format("mode {} is not served; allowed: replica (0), sharded (1), queue (2)",
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
  if (auto extras = check_extras(request); !extras) return extras;
  std::set<Epoch> epochs = needed_epochs(false);
  epochs.insert(Epoch{request.epoch()});
  if (epochs.size() > most_epochs()) {
    return Error{ErrorCode::does_not_fit,
                 fmt::format("subscriptions stand in {} different epochs already, and each takes "
                             "a plan of its own; allowed: {}",
                             epochs.size() - 1, most_epochs())};
  }
  return check_fingerprint(request);
}

/// A feed that follows its dataset has the data of an epoch as they were when it was planned, for
/// as long as anybody is in that epoch; at an epoch's start they may as well be newer.
Result<void> Feed::check_fingerprint(const wire::Subscribe& request) const {
  if (!request.expects_fingerprint() || request.fingerprint() == nullptr) return {};
  const Fingerprint expected = from_wire(*request.fingerprint());
  Fingerprint have = fingerprint();
  if (settings_.follow) {
    const Epoch epoch{request.epoch()};
    const auto decided = contents_.find(epoch);
    const bool open = decided == contents_.end() || request.step() == 0 || !is_in_use(epoch);
    have.data = open ? expected.data : decided->second;
  }
  if (expected == have) return {};
  return Error{
      ErrorCode::fingerprint_mismatch,
      fmt::format("the plan of feed {} is another: {} changed (expected {}, now {})", name(),
                  describe_difference(expected, have), to_string(expected), to_string(have))};
}

/// Who goes on within an epoch says which data it has; then nobody gets others.
void Feed::keep_data(const wire::Subscribe& request) {
  if (!settings_.follow || !request.expects_fingerprint() || request.fingerprint() == nullptr) {
    return;
  }
  const Epoch epoch{request.epoch()};
  const std::uint64_t data = from_wire(*request.fingerprint()).data;
  const auto [decided, is_new] = contents_.emplace(epoch, data);
  if (is_new || decided->second == data || request.step() == 0) return;
  decided->second = data;
  epochs_.forget(epoch);
  slots_->cache.forget_epoch(epoch);
}

/// Whether somebody is in this epoch, or holds one of its batches.
bool Feed::is_in_use(Epoch epoch) const {
  return needed_epochs(false).contains(epoch) || slots_->cache.holds_of(epoch) ||
         (resources_.journal && queue().epoch() == epoch);
}

bool Feed::has_in_queue(SessionId session) const {
  const auto first = subscriptions_.lower_bound({session, 0});
  const auto last = subscriptions_.upper_bound({session, UINT32_MAX});
  return std::any_of(first, last, [](const auto& entry) { return entry.second.in_queue(); });
}

Result<void> Feed::check_extras(const wire::Subscribe& request) const {
  if (request.window() == 0) {
    return Error{ErrorCode::invalid_argument, "a window of 0 batches; allowed: 1 and up"};
  }
  if (request.worst_first() > kMostRehearsals) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("worst_first of {} batches; allowed: 0 to {}", request.worst_first(),
                             kMostRehearsals)};
  }
  if (request.mode() == wire::Mode::queue && request.worst_first() != 0) {
    return Error{ErrorCode::invalid_argument, "worst_first goes with replica and sharded only"};
  }
  if (request.mode() == wire::Mode::queue && !resources_.journal) {
    return Error{ErrorCode::unsupported,
                 fmt::format("feed {} has no queue: its configuration names no journal, without "
                             "which nobody would know after a restart what is done",
                             name())};
  }
  return {};
}

Result<void> Feed::subscribe(const ClientInfo& client, const wire::Subscribe& request) {
  const SubscriptionKey key{client.session, request.subscription()};
  if (auto checked = check_subscribe(key, request); !checked) return checked;
  const auto share = share_of(request);
  if (!share) return share.error();
  const std::uint32_t most = std::max(1U, std::min(settings_.max_window, settings_.slots / 2));
  const bool in_queue = request.mode() == wire::Mode::queue;
  const Epoch start = in_queue ? queue().epoch() : Epoch{request.epoch()};
  Subscription subscription(client, key.number, Cursor(*share, start, Step{0}));
  subscription.mode = request.mode();
  subscription.rank = request.rank();
  subscription.ranks = request.ranks();
  subscription.window = std::min(request.window(), most);
  subscription.epochs_left = request.epochs();
  subscription.worst_first = request.worst_first();
  if (in_queue) {
    if (auto claimed = claim(subscription, request); !claimed) return claimed;
  } else {
    subscription.first_step = Step{request.step()};
    keep_data(request);
  }
  had_subscriber_ = true;
  subscriptions_.emplace(key, std::move(subscription));
  needy_.reset();
  pump();
  return {};
}

/// What the client released before its session ended is done; what it holds stays with it.
Result<void> Feed::claim(Subscription& subscription, const wire::Subscribe& request) {
  const QueueOwner owner = subscription.owner();
  for (const std::uint64_t lease : leases_in(request.released())) {
    if (!work().done(lease, owner)) continue;
    if (!written(note_done(subscription.client, lease, owner))) return *failure_;
  }
  const std::vector<std::uint64_t> held = leases_in(request.held());
  for (const std::uint64_t lease : work().claim(owner, held)) subscription.leases[lease] = {};
  advance_queue();
  return failure_ ? Result<void>(*failure_) : Result<void>();
}

/// Nowhere once the feed has failed: then the batch stays given, and is given once more to whoever
/// comes after its client.
Result<void> Feed::note_done(const ClientInfo& client, std::uint64_t lease, QueueOwner owner) {
  if (!resources_.journal) return {};
  if (auto noted = resources_.journal->done(lease, owner); !noted) return noted;
  return resources_.ledger ? resources_.ledger->released(client, lease, true) : Result<void>{};
}

void Feed::unsubscribe(SessionId session, std::uint32_t number) {
  const auto found = subscriptions_.find({session, number});
  if (found == subscriptions_.end()) return;
  leave(found->second, false);
  subscriptions_.erase(found);
  after_leaving();
}

void Feed::drop_session(SessionId session, bool may_return) {
  const auto first = subscriptions_.lower_bound({session, 0});
  const auto last = subscriptions_.upper_bound({session, UINT32_MAX});
  if (first == last) return;
  for (auto it = first; it != last; ++it) leave(it->second, may_return);
  subscriptions_.erase(first, last);
  after_leaving();
}

void Feed::leave(Subscription& subscription, bool may_return) {
  keep_waited(subscription);
  for (const auto& [lease, slot] : subscription.leases) {
    if (slot) give_back(*slot);
    if (subscription.in_queue() && !may_return) work().come_back(lease);
  }
  subscription.leases.clear();
  if (!subscription.in_queue() || !may_return) return;
  work().keep(subscription.owner(), WorkQueue::Time::clock::now() + settings_.queue_grace);
  await_returns();
}

void Feed::after_leaving() {
  needy_.reset();
  forget_epochs();
  pump();
}

/// Batches of a client that may come back are not given to others at once: it may have done them.
void Feed::await_returns() {
  if (retired_) return;
  const auto next = work().next_return();
  if (!next) return;
  grace_.expires_at(*next);
  grace_.async_wait([this, alive = std::weak_ptr(alive_)](const auto& error) {
    if (error || alive.expired()) return;
    if (work().end_keeping(grace_.expiry())) pump();
    await_returns();
  });
}

void Feed::release(SessionId session, const wire::Release& release) {
  const auto found = subscriptions_.find({session, release.subscription()});
  for (const std::uint64_t lease : *release.leases()) {
    const bool known = found != subscriptions_.end() && found->second.leases.contains(lease);
    counters_.add(known ? FeedCounter::releases : FeedCounter::releases_unknown);
    if (known) release_lease(found->second, lease);
  }
  if (found != subscriptions_.end() && found->second.leases.empty()) found->second.had_none = true;
  needy_.reset();
  if (found == subscriptions_.end() || failure_) return;
  if (found->second.in_queue()) advance_queue();
  serve(found->first, found->second);
  pump_soon();
}

void Feed::release_lease(Subscription& subscription, std::uint64_t lease) {
  const auto held = subscription.leases.find(lease);
  if (held->second) give_back(*held->second);
  subscription.leases.erase(held);
  const QueueOwner owner = subscription.owner();
  if (subscription.in_queue() && work().done(lease, owner)) {
    written(note_done(subscription.client, lease, owner));
  } else if (resources_.ledger) {
    written(resources_.ledger->released(subscription.client, lease, false));
  }
}

/// A journal or ledger with a gap would be worse than none.
bool Feed::written(const Result<void>& result) {
  if (!result) fail(result.error());
  return static_cast<bool>(result);
}

void Feed::give_back(const SlotRef& slot) {
  needy_.reset();
  if (!slot.of->cache.release(slot.index) || !settings_.poison) return;
  slot.of->cache.retire(slot.index);
  ++under_way_;
  ports_.assembler.poison(slot.of->arena->slot(slot.index), [this, slot] {
    boost::asio::post(ports_.loop, [this, slot] {
      --under_way_;
      slot.of->cache.abandon(slot.index);
      pump();
    });
  });
}

}  // namespace batchwright
