// Which clients may subscribe to a feed, and to what.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "daemon/delivery/feed/core/feed_core.h"

namespace batchwright {
namespace {

/// Subscriptions of one session to one feed; a trainer needs one.
constexpr std::size_t kMaxSubscriptions = 64;

/// The way out for a checkpoint from before sequences were appended, or from before a live feed
/// began again, where the feed has one.
std::string_view about_data(const Fingerprint& expected, const Fingerprint& have,
                            const FeedSettings& settings) {
  if (expected.data == have.data || settings.follow) return "";
  if (settings.live)
    return "; the live feed has begun anew, and a subscription without a position goes on";
  return "; after sequences were appended, a feed with follow = true goes on with the data of the "
         "checkpoint";
}

Result<Share> share_of(std::uint32_t world, const wire::SubscribeT& request) {
  switch (request.mode) {
    case wire::Mode::replica:
    case wire::Mode::queue: return whole_share(world);
    case wire::Mode::sharded: return rank_share(world, request.rank, request.ranks);
    default: break;
  }
  return Error{ErrorCode::unsupported,
               fmt::format("mode {} is not served; allowed: replica (0), sharded (1), queue (2)",
                           static_cast<int>(request.mode))};
}

/// A client beside a job holds a batch as long as it likes: without a slot of its own it would stop
/// the job.
Result<void> check_beside_jobs(const FeedParts& parts) {
  const std::size_t needed = parts.subscriptions.admission().slots_needed_beside_jobs();
  if (needed <= parts.settings.slots) return {};
  return Error{ErrorCode::does_not_fit,
               fmt::format("feed {} has {} slots, and the job that trains on it needs all of them; "
                           "set slots to {} or more, or have the batches sent as messages "
                           "(inline)",
                           parts.settings.name, parts.settings.slots, needed)};
}

/// Ranks that wait for each other at every step hold a batch each, and so may every other client
/// on this host. One more slot has to go round among them: with fewer all could stand still. Remote
/// clients hold none.
Result<void> check_ranks(const FeedParts& parts, const ClientInfo& client,
                         const wire::SubscribeT& request) {
  if (client.inline_batches) return {};
  if (request.mode != wire::Mode::sharded || request.ranks == 1) return check_beside_jobs(parts);
  if (request.ranks_here > request.ranks) {
    return Error{ErrorCode::invalid_argument, fmt::format("{} ranks on this host of {} in all",
                                                          request.ranks_here, request.ranks)};
  }
  const Job job{request.ranks, request.ranks_here};
  const std::size_t needed = parts.subscriptions.slots_needed_with(job, request.rank);
  if (needed <= parts.settings.slots) return {};
  const std::size_t others = parts.subscriptions.admission().loners();
  const std::string beside =
      others == 0 ? "" : fmt::format(" and {} other client{}", others, others == 1 ? "" : "s");
  return Error{
      ErrorCode::does_not_fit,
      fmt::format("rank {} would be one of {} ranks{} here, each of which holds a batch while it "
                  "waits for the others, and feed {} has {} slots; set slots to {} or more",
                  request.rank, needed - 1 - others, beside, parts.settings.name,
                  parts.settings.slots, needed)};
}

Result<void> check_extras(const FeedParts& parts, const wire::SubscribeT& request) {
  if (request.window == 0) {
    return Error{ErrorCode::invalid_argument, "a window of 0 batches; allowed: 1 and up"};
  }
  if (request.worst_first > kMostRehearsals) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("worst_first of {} batches; allowed: 0 to {}", request.worst_first,
                             kMostRehearsals)};
  }
  if (request.mode == wire::Mode::queue && request.worst_first != 0) {
    return Error{ErrorCode::invalid_argument, "worst_first goes with replica and sharded only"};
  }
  if (request.mode == wire::Mode::queue && !parts.desk.is_open()) {
    return Error{ErrorCode::unsupported,
                 fmt::format("feed {} has no queue: its configuration names no journal, without "
                             "which no record would show after a restart what is done",
                             parts.settings.name)};
  }
  return {};
}

/// Whether a client is in this epoch, or holds one of its batches, or the queue is in it, or begins
/// it.
bool is_in_use(const FeedParts& parts, Epoch epoch) {
  return parts.plan_needs().stood_in.contains(epoch) || parts.scheduler.cache().holds_of(epoch) ||
         parts.desk.beginning() == epoch || (parts.desk.is_open() && parts.desk.epoch() == epoch);
}

std::vector<LeaseNumber> leases_of(const std::vector<std::uint64_t>& numbers) {
  std::vector<LeaseNumber> leases;
  for (const std::uint64_t number : numbers) leases.push_back({number});
  return leases;
}

}  // namespace

Result<void> FeedCore::check_subscribe(const ClientInfo& client,
                                       const wire::SubscribeT& request) const {
  if (has_failed()) return *parts_.life.why();
  const SubscriptionKey key{client.session, SubscriptionNumber{request.subscription}};
  if (key.number.value == 0 || parts_.subscriptions.contains(key)) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("subscription {} is taken; numbers start at 1", key.number.value)};
  }
  if (parts_.subscriptions.keys_of(key.session).size() >= kMaxSubscriptions) {
    return Error{ErrorCode::does_not_fit, "a client has at most 64 subscriptions to a feed"};
  }
  if (auto extras = check_extras(parts_, request); !extras) return extras;
  if (parts_.live && request.epoch != 0) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("epoch {} of feed {}, which is live and has one epoch, 0",
                             request.epoch, name())};
  }
  if (auto same = check_fingerprint(request); !same) return same;
  if (const auto share = share_of(parts_.settings.plan.world, request); !share) {
    return share.error();
  }
  return check_ranks(parts_, client, request);
}

/// A feed that follows its dataset has the data of an epoch as they were when it was planned, for
/// as long as anybody is in that epoch; at an epoch's start they may as well be newer. A queue is
/// in one epoch, and of that alone data are decided for it.
Result<void> FeedCore::check_fingerprint(const wire::SubscribeT& request) const {
  if (!request.expects_fingerprint || !request.fingerprint) return {};
  const Fingerprint expected = from_wire(*request.fingerprint);
  Fingerprint have = facts_.fingerprint;
  if (parts_.live && request.step == 0) have.data = expected.data;  // it had nothing of the other
  if (parts_.settings.follow) {
    const Epoch epoch{request.epoch};
    const auto decided = parts_.plans.data_of(epoch);
    const bool passed = request.mode == wire::Mode::queue && parts_.desk.queue().epoch() != epoch;
    const bool open = !decided || request.step == 0 || passed || !is_in_use(parts_, epoch);
    have.data = open ? expected.data : *decided;
  }
  if (expected == have) return {};
  std::string changes = describe_change({expected, request.terms}, {have, facts_.terms});
  if (changes.empty()) return {};  // a fingerprint in its older form
  // Without its terms the fingerprint alone tells that a run began with the first version.
  const auto& first = facts_.first_draws;
  if (first && first->settings == expected.settings &&
      changes.find(kFirstDraws) == std::string::npos) {
    changes += fmt::format("; {}", kFirstDraws);
  }
  return Error{ErrorCode::fingerprint_mismatch,
               fmt::format("the plan of feed {} has changed: {}{} (expected {}, now {})", name(),
                           changes, about_data(expected, have, parts_.settings),
                           to_string(expected), to_string(have))};
}

/// A client that goes on within an epoch says which data it has; then no client gets others. The
/// epoch may be under way on the planning thread, from other data: then it is planned again. True
/// when the subscription takes these data or none.
bool FeedCore::keep_data(const wire::SubscribeT& request) {
  if (!parts_.settings.follow || !request.expects_fingerprint || !request.fingerprint) {
    return false;
  }
  const Epoch epoch{request.epoch};
  const std::uint64_t data = from_wire(*request.fingerprint).data;
  const bool decided = parts_.plans.decide(epoch, data);
  if (request.step == 0) return false;
  if (decided) return true;
  parts_.plans.decide_again(epoch, data);
  parts_.note_plans();
  parts_.scheduler.cache().forget_epoch(epoch);
  return true;
}

void FeedCore::take(SubscribeRequested event) {
  const wire::SubscribeT& request = event.request;
  const SubscriptionKey key{event.client.session, SubscriptionNumber{request.subscription}};
  const auto share = share_of(parts_.settings.plan.world, request);
  must(share && !parts_.subscriptions.contains(key), "a subscription was checked before it came");
  if (has_failed() || !share) return;
  // A loop holds one batch while it waits for the next: a window of one would stop it.
  const std::uint32_t slots = parts_.settings.slots;
  const std::uint32_t half = std::max(slots / 2, std::min(slots, 2U));
  const bool in_queue = request.mode == wire::Mode::queue;
  const Epoch start = in_queue ? parts_.desk.epoch() : Epoch{request.epoch};
  Subscription subscription(std::move(event.client), key.number, Cursor(*share, start, Step{0}));
  SubscriptionTerms& terms = subscription.terms;
  terms.mode = request.mode;
  terms.rank = request.rank;
  terms.ranks = request.ranks;
  terms.ranks_here = request.ranks_here;
  terms.window = std::min({request.window, parts_.settings.max_window, half});
  terms.worst_first = request.worst_first;
  subscription.epochs_left = parts_.live ? 1 : request.epochs;
  if (in_queue) {
    terms.until_epoch = request.until_epoch;
    claim(subscription, request);
  } else {
    terms.first_step = Step{request.step};
    terms.anywhere = parts_.live && request.step == 0;
    terms.resumes = keep_data(request);
  }
  parts_.life.come();
  subscription.waiting = WaitingTimes(now_);
  parts_.last_subscribed = now_;
  parts_.subscriptions.add(std::move(subscription));
  due_.plans = true;
  due_.keys.push_back(key);
  if (!is_set(FeedTimer::long_waits)) set_timer(FeedTimer::long_waits, now_ + LongWait::kLook);
  if (!in_queue) return;
  due_.all = true;  // what it released may be what others wait for
  advance_queue();
}

/// What the client released before its session ended is done; what it holds stays with it.
void FeedCore::claim(Subscription& subscription, const wire::SubscribeT& request) {
  const std::vector<LeaseNumber> held = leases_of(request.held);
  const auto claimed =
      parts_.desk.claim(holder_of(subscription), leases_of(request.released), held);
  for (const LeaseNumber lease : claimed) {
    subscription.leases.emplace(lease, HeldBatch{{}, now_});
  }
}

}  // namespace batchwright
