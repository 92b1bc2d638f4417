// The part of Feed that knows which clients may subscribe, and to what.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "daemon/delivery/feed/feed.h"
#include "daemon/delivery/feed/feed_terms.h"

namespace batchwright {
namespace {

/// Subscriptions of one session to one feed; a trainer needs one.
constexpr std::size_t kMaxSubscriptions = 64;

/// The way out for a checkpoint from before sequences were appended, where the feed has one.
std::string_view about_growth(const Fingerprint& expected, const Fingerprint& have,
                              const FeedSettings& settings) {
  if (expected.data == have.data || settings.follow) return "";
  return "; after sequences were appended, a feed with follow = true goes on with the data of the "
         "checkpoint";
}

}  // namespace

Result<Share> Feed::share_of(const wire::Subscribe& request) const {
  const std::uint32_t world = parts_.settings.plan.world;
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
  if (failure()) return *failure();
  if (key.number.value == 0 || parts_.subscriptions.contains(key)) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("subscription {} is taken; numbers start at 1", key.number.value)};
  }
  if (parts_.subscriptions.keys_of(key.session).size() >= kMaxSubscriptions) {
    return Error{ErrorCode::does_not_fit, "a client has at most 64 subscriptions to a feed"};
  }
  if (auto extras = check_extras(request); !extras) return extras;
  return check_fingerprint(request);
}

/// Ranks that wait for each other at every step hold a batch each, and so may every other client
/// on this host. One more slot has to go round among them: with fewer all could stand still. Remote
/// clients hold none.
Result<void> Feed::check_ranks(const ClientInfo& client, const wire::Subscribe& request) const {
  if (client.inline_batches) return {};
  if (request.mode() != wire::Mode::sharded || request.ranks() == 1) return check_beside_jobs();
  if (request.ranks_here() > request.ranks()) {
    return Error{ErrorCode::invalid_argument, fmt::format("{} ranks on this host of {} in all",
                                                          request.ranks_here(), request.ranks())};
  }
  const Job job{request.ranks(), request.ranks_here()};
  const std::size_t needed = parts_.subscriptions.slots_needed_with(job, request.rank());
  if (needed <= parts_.settings.slots) return {};
  const std::size_t others = parts_.subscriptions.admission().loners();
  const std::string beside =
      others == 0 ? "" : fmt::format(" and {} other client{}", others, others == 1 ? "" : "s");
  return Error{
      ErrorCode::does_not_fit,
      fmt::format("rank {} would be one of {} ranks{} here, each of which holds a batch while it "
                  "waits for the others, and feed {} has {} slots; set slots to {} or more",
                  request.rank(), needed - 1 - others, beside, name(), parts_.settings.slots,
                  needed)};
}

/// A client beside a job holds a batch as long as it likes: without a slot of its own it would stop
/// the job.
Result<void> Feed::check_beside_jobs() const {
  const std::size_t needed = parts_.subscriptions.admission().slots_needed_beside_jobs();
  if (needed <= parts_.settings.slots) return {};
  return Error{ErrorCode::does_not_fit,
               fmt::format("feed {} has {} slots, and the job that trains on it needs all of them; "
                           "set slots to {} or more, or have the batches sent as messages "
                           "(inline)",
                           name(), parts_.settings.slots, needed)};
}

/// A feed that follows its dataset has the data of an epoch as they were when it was planned, for
/// as long as anybody is in that epoch; at an epoch's start they may as well be newer. A queue is
/// in one epoch, and of that alone data are decided for it.
Result<void> Feed::check_fingerprint(const wire::Subscribe& request) const {
  if (!request.expects_fingerprint() || request.fingerprint() == nullptr) return {};
  const Fingerprint expected = from_wire(*request.fingerprint());
  Fingerprint have = first_epoch().fingerprint;
  if (parts_.settings.follow) {
    const Epoch epoch{request.epoch()};
    const auto decided = parts_.plans.data_of(epoch);
    const bool passed = request.mode() == wire::Mode::queue && queue().epoch() != epoch;
    const bool open = !decided || request.step() == 0 || passed || !is_in_use(epoch);
    have.data = open ? expected.data : *decided;
  }
  if (expected == have) return {};
  const std::string had = request.terms() != nullptr ? request.terms()->str() : "";
  const std::string has =
      terms_text(parts_.settings, row_schema(*data_.snapshot, parts_.settings.recipe.get()));
  std::string changes = describe_change({expected, had}, {have, has});
  if (changes.empty()) return {};  // a fingerprint in its older form
  // Without its terms the fingerprint alone tells that a run began with the first version.
  const auto first = fingerprint_of_first_draws(*data_.snapshot, parts_.settings);
  if (first && first->settings == expected.settings &&
      changes.find(kFirstDraws) == std::string::npos) {
    changes += fmt::format("; {}", kFirstDraws);
  }
  return Error{ErrorCode::fingerprint_mismatch,
               fmt::format("the plan of feed {} has changed: {}{} (expected {}, now {})", name(),
                           changes, about_growth(expected, have, parts_.settings),
                           to_string(expected), to_string(have))};
}

/// A client that goes on within an epoch says which data it has; then no client gets others. The
/// epoch may be under way on the planning thread, from other data: then it is planned again. True
/// when the subscription takes these data or none.
bool Feed::keep_data(const wire::Subscribe& request) {
  if (!parts_.settings.follow || !request.expects_fingerprint() ||
      request.fingerprint() == nullptr) {
    return false;
  }
  const Epoch epoch{request.epoch()};
  const std::uint64_t data = from_wire(*request.fingerprint()).data;
  const bool decided = parts_.plans.decide(epoch, data);
  if (request.step() == 0) return false;
  if (decided) return true;
  parts_.plans.decide_anew(epoch, data);
  parts_.note_plans();
  parts_.scheduler.cache().forget_epoch(epoch);
  return true;
}

/// Whether a client is in this epoch, or holds one of its batches, or the queue is in it, or begins
/// it.
bool Feed::is_in_use(Epoch epoch) const {
  return parts_.plan_needs().stood_in.contains(epoch) || parts_.scheduler.cache().holds_of(epoch) ||
         parts_.desk.beginning() == epoch ||
         (parts_.desk.is_open() && parts_.desk.epoch() == epoch);
}

bool Feed::has_in_queue(SessionId session) const {
  const std::vector<SubscriptionKey> keys = parts_.subscriptions.keys_of(session);
  return std::any_of(keys.begin(), keys.end(), [this](const SubscriptionKey& key) {
    return parts_.subscriptions.at(key).in_queue();
  });
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
  if (request.mode() == wire::Mode::queue && !parts_.desk.is_open()) {
    return Error{ErrorCode::unsupported,
                 fmt::format("feed {} has no queue: its configuration names no journal, without "
                             "which no record would show after a restart what is done",
                             name())};
  }
  return {};
}

Result<void> Feed::subscribe(const ClientInfo& client, const wire::Subscribe& request) {
  const SubscriptionKey key{client.session, SubscriptionNumber{request.subscription()}};
  if (auto checked = check_subscribe(key, request); !checked) return checked;
  const auto share = share_of(request);
  if (!share) return share.error();
  if (auto ranks = check_ranks(client, request); !ranks) return ranks;
  // A loop holds one batch while it waits for the next: a window of one would stop it.
  const std::uint32_t half =
      std::max(parts_.settings.slots / 2, std::min(parts_.settings.slots, 2U));
  const std::uint32_t most = std::min(parts_.settings.max_window, half);
  const bool in_queue = request.mode() == wire::Mode::queue;
  const Epoch start = in_queue ? queue().epoch() : Epoch{request.epoch()};
  Subscription subscription(client, key.number, Cursor(*share, start, Step{0}));
  SubscriptionTerms& terms = subscription.terms;
  terms.mode = request.mode();
  terms.rank = request.rank();
  terms.ranks = request.ranks();
  terms.ranks_here = request.ranks_here();
  terms.window = std::min(request.window(), most);
  terms.worst_first = request.worst_first();
  subscription.epochs_left = request.epochs();
  if (in_queue) {
    terms.until_epoch = request.until_epoch();
    if (auto claimed = claim(subscription, request); !claimed) return claimed;
  } else {
    terms.first_step = Step{request.step()};
    terms.resumes = keep_data(request);
  }
  parts_.life.come();
  const auto now = WaitingTimes::Time::clock::now();
  subscription.waiting = WaitingTimes(now);
  parts_.last_subscribed = now;
  parts_.subscriptions.add(std::move(subscription));
  due_.plans = true;
  watch();
  if (in_queue) {
    pump();  // what it released may be what others wait for
  } else {
    serve(key);
    settle();
  }
  return {};
}

/// What the client released before its session ended is done; what it holds stays with it.
Result<void> Feed::claim(Subscription& subscription, const wire::Subscribe& request) {
  const std::vector<LeaseNumber> held = from_wire(request.held());
  const auto claimed =
      parts_.desk.claim(holder_of(subscription), from_wire(request.released()), held);
  if (!written(claimed)) return *failure();
  const auto now = WaitingTimes::Time::clock::now();
  for (const LeaseNumber lease : *claimed) {
    subscription.leases.emplace(lease, HeldBatch{{}, now});
  }
  advance_queue();
  return failure() ? Result<void>(*failure()) : Result<void>();
}

}  // namespace batchwright
