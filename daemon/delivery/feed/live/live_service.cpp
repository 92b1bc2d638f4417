// What clients ask of a live feed.

#include "daemon/delivery/feed/live/live_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace batchwright {
namespace {

/// Clients that wait for a version at a time.
constexpr std::size_t kMostVersionWaits = 4096;

/// Frames that come in parts have so many times the bytes of the pool, together: as areas have.
constexpr std::uint64_t kFramesToPool = 4;

/// When a wait of `timeout_ms` that begins now is over; empty: never.
std::optional<std::uint64_t> until(std::uint64_t now_ms, std::int64_t timeout_ms) {
  if (timeout_ms < 0) return {};
  return now_ms + static_cast<std::uint64_t>(timeout_ms);
}

}  // namespace

LiveService::LiveService(const FeedSettings& settings, std::uint64_t incarnation,
                         std::shared_ptr<LiveSource> source, Time began, const SpooledFeed* spooled)
    : settings_(*settings.live),
      incarnation_(incarnation),
      clock_{began},
      pool_(spooled != nullptr ? LivePool(settings_.pool, spooled->pool, results_)
                               : LivePool(settings_.pool)),
      producers_(std::make_shared<FrameRoom>(settings_.pool.pool_bytes + kMaxControlBytes,
                                             kFramesToPool * settings_.pool.pool_bytes)),
      kept_([this](ProducerId id, const PushedSequence& sequence, bool in_area) {
        freed(id, sequence, in_area);
      }),
      gate_(settings, std::move(source)) {
  if (spooled != nullptr) resume(*spooled, settings.queue_grace);
}

void LiveService::on(const ClientInfo& client, LiveRequest request, Time now) {
  pass_time(now);
  std::visit([&](auto& one) { handle(client, std::move(one)); }, request);
  take_results();
}

void LiveService::session_ended(SessionId session, Time now) {
  pass_time(now);
  for (const ProducerKey& key : producers_.keys_of(session)) close(*producers_.find(key));
  std::erase_if(version_waits_, [session](const auto& each) { return each.session == session; });
  trainers_.session_ended(session);
  take_results();
}

bool LiveService::has_session(SessionId session) const {
  return !producers_.keys_of(session).empty() || trainers_.has_mark(session) ||
         std::any_of(version_waits_.begin(), version_waits_.end(),
                     [session](const auto& each) { return each.session == session; });
}

void LiveService::time_passed(Time now) {
  pass_time(now);
  tell(TimePassed{});
  look_at_versions();
  take_results();
}

void LiveService::adjust(const LiveLimits& limits, Time now) {
  pass_time(now);
  tell(LimitsChanged{limits});
  settings_.pool = pool_.settings();
  take_results();
}

std::optional<LiveService::Time> LiveService::next_deadline() const {
  auto next = pool_.next_deadline();
  for (const VersionWait& wait : version_waits_) {
    if (wait.until_ms && (!next || *wait.until_ms < *next)) next = wait.until_ms;
  }
  const auto kept = spool_ ? spool_->kept_until_ms() : std::nullopt;
  if (kept && (!next || *kept < *next)) next = kept;
  if (!next) return {};
  return clock_.began + std::chrono::milliseconds(*next);
}

std::vector<LiveService::Message> LiveService::take_messages() {
  for (const ProducerId id : producers_.take_freed()) {
    LiveProducer& producer = producers_.at(id);
    if (!producer.key || producer.freed.empty()) continue;
    wire::FreedT freed;
    freed.producer = producer.key->number;
    freed.numbers = std::exchange(producer.freed, {});
    send(producer.key->session, std::move(freed));
  }
  return std::exchange(messages_, {});
}

void LiveService::refuse_all(const Error& why) {
  for (const auto& [key, id] : producers_.connected()) refuse(key.session, key.number, why);
  for (const VersionWait& wait : std::exchange(version_waits_, {})) tell_version(wait, why);
}

/// Null when the client has no such producer; it is told so.
LiveProducer* LiveService::producer_of(const ClientInfo& client, std::uint32_t number) {
  LiveProducer* const found = producers_.find({client.session, number});
  if (found == nullptr) {
    refuse(client.session, number,
           {ErrorCode::not_found, fmt::format("this session has no producer {}", number)});
  }
  return found;
}

void LiveService::refuse(SessionId to, std::uint32_t producer, const Error& error) {
  wire::RefusedT refused;
  refused.code = static_cast<std::uint16_t>(error.code);
  refused.message = error.message;
  refused.producer = producer;
  send(to, std::move(refused));
}

void LiveService::handle(const ClientInfo& client, const ProduceAsked& asked) {
  const wire::ProduceT& request = asked.request;
  const ProducerKey key{client.session, request.producer};
  const auto no = [&](ErrorCode code, std::string why) {
    refuse(client.session, request.producer, {code, std::move(why)});
  };
  if (producers_.find(key) != nullptr) {
    return no(ErrorCode::invalid_argument, fmt::format("producer {} is taken", request.producer));
  }
  if (producers_.keys_of(client.session).size() >= ProducerTable::kMostOfSession) {
    return no(ErrorCode::does_not_fit,
              fmt::format("a session has at most {} producers", ProducerTable::kMostOfSession));
  }
  // A name of its own for one that has none: no program gives one with such a byte.
  const std::string name = request.name.empty()
                               ? fmt::format("\x01{}.{}", client.session.value, request.producer)
                               : request.name;
  const auto found = producers_.named(name);
  if (!found) return no(found.error().code, found.error().message);
  LiveProducer& producer = **found;
  if (producer.key) {
    return no(ErrorCode::busy, fmt::format("producer \"{}\" is connected, by {}: names are one "
                                           "producer's at a time",
                                           utf8(name), describe(producer.client)));
  }
  producers_.connect(producer, key);
  if (spool_) spool_->touched(producer.id);
  producer.client = client;
  producer.area = asked.area;
  wire::ProducedT answer;
  answer.producer = request.producer;
  answer.incarnation = incarnation_;
  answer.next = producer.next;
  answer.version = pool_.version();
  answer.area = asked.area.bytes.empty() ? 0 : asked.number.value;
  answer.area_bytes = asked.area.bytes.size();
  send(client.session, std::move(answer));
}

void LiveService::handle(const ClientInfo& client, PushAsked asked) {
  LiveProducer* const producer = producer_of(client, asked.push.producer);
  if (producer == nullptr) return;
  if (producer->push) {
    return refuse(client.session, asked.push.producer,
                  {ErrorCode::busy, "a Push of this producer is under way"});
  }
  if (asked.push.total_bytes == 0) {
    producer->frame.reset();
  } else if (auto answer = take_part(producer->frame, producers_.frame_room(), asked)) {
    answer->next = producer->next;
    return send(client.session, std::move(*answer));
  }
  PushUnderWay& push = producer->push.emplace();
  push.until_ms = until(clock_.now_ms, asked.push.timeout_ms);
  push.bytes = asked.push.framed ? std::move(asked.frame) : producer->area;
  push.join = std::move(asked.join);
  push.push = std::move(asked.push);
  offer(*producer);
}

void LiveService::handle(const ClientInfo& client, const wire::ClaimT& claim) {
  LiveProducer* const producer = producer_of(client, claim.producer);
  if (producer == nullptr) return;
  if (producer->claim) {
    return refuse(client.session, claim.producer,
                  {ErrorCode::busy, "a Claim of this producer is under way"});
  }
  producer->claim = claim.question;
  if (pool_.has_ended()) {
    LiveAnswer answer;
    answer.kind = LiveAnswer::Kind::ended;
    return answer_claim(*producer, answer);
  }
  LiveClaim event{producer->id, claim.count, {}};
  if (claim.timeout_ms >= 0) event.timeout_ms = static_cast<std::uint64_t>(claim.timeout_ms);
  const std::uint64_t asked = tell(event);
  asked_.emplace(asked, producer->id);
}

void LiveService::answer_claim(LiveProducer& producer, const LiveAnswer& answer) {
  using Kind = LiveAnswer::Kind;
  if (!producer.claim || !producer.key) return;
  wire::ClaimedT claimed;
  claimed.producer = producer.key->number;
  claimed.question = *std::exchange(producer.claim, {});
  claimed.version = answer.value;
  claimed.text = answer.why;
  claimed.ended = answer.kind == Kind::ended;
  if (answer.kind == Kind::timed_out) {
    ++seen_.counts.claims_timed_out;
    claimed.code = static_cast<std::uint16_t>(ErrorCode::timed_out);
  } else if (answer.kind == Kind::refused) {
    claimed.code = static_cast<std::uint16_t>(ErrorCode::does_not_fit);
  }
  send(producer.key->session, std::move(claimed));
}

void LiveService::handle(const ClientInfo& client, const wire::AbandonT& abandon) {
  LiveProducer* const producer = producer_of(client, abandon.producer);
  if (producer == nullptr) return;
  if (abandon.by_number) {
    tell(AbandonNumber{producer->id, abandon.number});
    return;
  }
  AbandonGroup event{producer->id, {}, abandon.count};
  if (abandon.group != kNoGroup) event.group = abandon.group;
  const bool all_claimed = !event.group && abandon.count == 0;
  if (all_claimed) event.count = std::numeric_limits<std::uint64_t>::max();
  tell(event);
}

void LiveService::handle(const ClientInfo& client, const wire::CloseProducerT& request) {
  if (LiveProducer* const producer = producer_of(client, request.producer)) close(*producer);
}

/// Claims and pushes that wait end with it.
void LiveService::close(LiveProducer& producer) {
  producer.frame.reset();
  const auto is_its = [&producer](const auto& entry) { return entry.second == producer.id; };
  std::erase_if(asked_, is_its);
  producers_.disconnect(producer);
  if (spool_) spool_->touched(producer.id);
  tell(ProducerGone{producer.id});
}

void LiveService::handle(const ClientInfo& client, const wire::ListOutcomesT& question) {
  const LiveProducer* const producer = producer_of(client, question.producer);
  if (producer == nullptr) return;
  const Outcomes& outcomes = producer->outcomes;
  wire::OutcomesT answer;
  answer.producer = question.producer;
  answer.question = question.question;
  answer.first = question.first;
  answer.outcomes = outcomes.list(answer.first, question.count);
  answer.totals.assign(outcomes.totals().begin(), outcomes.totals().end());
  answer.refused_full = outcomes.refused_full();
  answer.duplicates = outcomes.duplicates();
  send(client.session, std::move(answer));
}

void LiveService::handle(const ClientInfo& client, const wire::AdvanceT& advance) {
  tell(LiveAdvance{advance.version, advance.restored, advance.replays});
  if (spool_) spool_->counted();
  seen_.advanced_ms = clock_.now_ms;
  tell_version({client.session, advance.question, 0, {}}, {});
  look_at_versions();
}

void LiveService::handle(const ClientInfo& client, const wire::AwaitVersionT& question) {
  const VersionWait wait{client.session, question.question, question.above,
                         until(clock_.now_ms, question.timeout_ms)};
  if (version_waits_.size() >= kMostVersionWaits) {
    return tell_version(
        wait, Error{ErrorCode::does_not_fit,
                    fmt::format("{} clients wait for a version, no more can", kMostVersionWaits)});
  }
  version_waits_.push_back(wait);
  look_at_versions();
}

void LiveService::handle(const ClientInfo& client, const wire::EndFeedT& request) {
  if (!pool_.has_ended()) end();
  if (request.question != 0) tell_version({client.session, request.question, 0, {}}, {});
}

void LiveService::end() {
  tell(LiveEnd{});
  if (spool_) spool_->counted();
  for (const auto& [key, id] : producers_.connected()) {
    const LiveProducer& producer = producers_.at(id);
    if (producer.push) continue;  // the answer to it says so
    wire::AcceptedT told;         // it may wait for room in its area
    told.producer = key.number;
    told.next = producer.next;
    told.ended = true;
    send(key.session, std::move(told));
  }
}

void LiveService::handle(const ClientInfo& client, const wire::KeepFromT& mark) {
  trainers_.mark(client.session, Step{mark.step});
  if (spool_) spool_->counted();
}

void LiveService::tell_version(const VersionWait& to, const std::optional<Error>& error) {
  wire::VersionT answer;
  answer.question = to.question;
  answer.version = pool_.version();
  if (error) {
    answer.code = static_cast<std::uint16_t>(error->code);
    answer.text = error->message;
  }
  send(to.session, std::move(answer));
}

void LiveService::look_at_versions() {
  const std::uint64_t version = pool_.version();
  std::erase_if(version_waits_, [&](const VersionWait& wait) {
    const bool over = wait.until_ms && *wait.until_ms <= clock_.now_ms;
    if (version <= wait.above && !over) return false;
    std::optional<Error> error;
    if (version <= wait.above) {
      error = {ErrorCode::timed_out, fmt::format("no version above {} was announced", wait.above)};
    }
    tell_version(wait, error);
    return true;
  });
}

}  // namespace batchwright
