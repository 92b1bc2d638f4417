#include "client/library/produce/conversation.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "client/library/reach.h"

namespace batchwright {
namespace {

/// Parts of a frame that are sent ahead of the daemon's answer: it closes a connection of which
/// more than 4 MiB lie unread.
constexpr std::size_t kPartsUnderWay = 2;

ConnectSettings as_producer(ConnectSettings settings) {
  settings.produces = true;
  return settings;
}

ErrorCode error_code(std::uint16_t code) {
  // 0 would be no error.
  return code != 0 ? static_cast<ErrorCode>(code) : ErrorCode::malformed_message;
}

}  // namespace

constexpr Conversation::Handler Conversation::kHandlers[] = {
    {wire::Body::Accepted, &Conversation::on_accepted},
    {wire::Body::Freed, &Conversation::on_freed},
    {wire::Body::Claimed, &Conversation::on_claimed},
    {wire::Body::Outcomes, &Conversation::on_outcomes},
    {wire::Body::Welcome, &Conversation::on_welcome},
    {wire::Body::Produced, &Conversation::on_produced},
    {wire::Body::Refused, &Conversation::on_refused},
    {wire::Body::Bye, &Conversation::on_bye},
    {wire::Body::Alive, nullptr},  // that it came is noted by the link
};

bool Conversation::handles(wire::Body kind) {
  return std::any_of(std::begin(kHandlers), std::end(kHandlers),
                     [kind](const Handler& handler) { return handler.kind == kind; });
}

Conversation::Conversation(std::string endpoint, ConnectSettings settings,
                           std::unique_ptr<Transport> transport, Wanted wanted)
    : link_(std::move(endpoint), as_producer(std::move(settings)), std::move(transport)),
      wanted_(std::move(wanted)) {}

Result<void> Conversation::open() {
  if (auto sound = link_.check(); !sound) return sound.error();
  const auto limit = link_.settings().limit;
  const Deadline deadline = after(limit);
  const auto is_there = [this] { return is_producing(); };
  if (!pump_until(is_there, after(std::min(limit, DaemonLink::kOpensItsSocket)))) {
    if (const auto error = diagnose_endpoint(link_.endpoint())) return *error;
  }
  const bool in_time = pump_until(is_there, deadline);
  if (failure_) return *failure_;
  if (in_time) return {};
  if (!link_.has_met()) return link_.no_welcome();
  return Error{
      ErrorCode::timed_out,
      fmt::format("no answer to Produce for feed \"{}\" within {} ms from the daemon at {}",
                  wanted_.feed, limit.count(), link_.endpoint())};
}

void Conversation::ask_claim(std::uint32_t count, const Deadline& deadline) {
  claim_.emplace(Claim{{deadline, ++last_question_}, count});
}

void Conversation::ask_push(Offer offer, const Deadline& deadline) {
  push_.emplace(Push{{deadline, ++last_question_}, std::move(offer)});
  push_->offer.number(numbers_.next);
}

void Conversation::ask_outcomes(std::uint64_t first, std::uint32_t count,
                                const Deadline& deadline) {
  listing_.emplace(Listing{{deadline, ++last_question_}, first, count});
}

void Conversation::forget_claim() {
  if (!claim_) return;
  claim_->forgotten = true;
  if (!claim_->sent) claim_.reset();
}

void Conversation::forget_push() {
  if (!push_) return;
  if (push_->answer) return push_.reset();
  push_->forgotten = true;
  if (push_->sent) return push_->offer.keep_room();
  push_->offer.settle(push_->offer.first());
  push_.reset();
}

bool Conversation::pump_until(const std::function<bool()>& done, const Deadline& deadline) {
  while (true) {
    pump(deadline);
    if (failure_ || done()) return true;
    if (deadline.passed(link_.now())) return false;
    if (auto waited = link_.wait(deadline); !waited) fail(waited.error());
  }
}

/// Takes in all that has come, does what is due, and asks what is to be asked.
void Conversation::pump(const Deadline& deadline) {
  if (failure_) return;
  if (stopped_) return fail({ErrorCode::disconnected, "bw_producer_close ended the producer"});
  if (auto tended = link_.tend(); !tended) return fail(tended.error());
  while (!failure_ && link_.is_linked()) {
    const auto incoming = link_.receive();
    if (!incoming) return fail(incoming.error());
    if (!incoming->has_value()) break;
    dispatch((*incoming)->control);
  }
  if (!failure_ && link_.is_welcomed() && !link_.is_up()) arrive(deadline);
  if (failure_ || !link_.is_linked()) return;
  if (const char* how = link_.loss()) return lose(how);
  if (is_producing()) ask_what_is_due();
}

void Conversation::dispatch(const ControlMessage& message) {
  const wire::Body kind = message.kind();
  const auto* handler = std::find_if(std::begin(kHandlers), std::end(kHandlers),
                                     [kind](const Handler& each) { return each.kind == kind; });
  if (handler == std::end(kHandlers)) {
    return fail(
        {ErrorCode::malformed_message,
         fmt::format("a message that no daemon sends a producer: {}", wire::EnumNameBody(kind))});
  }
  if (handler->handle != nullptr) (this->*handler->handle)(message);
}

void Conversation::on_welcome(const ControlMessage& message) {
  if (auto taken = link_.welcome(*message.as<wire::Welcome>()); !taken) fail(taken.error());
}

/// Welcome has come: binds the arenas' connection, over which the area will come.
void Conversation::arrive(const Deadline& deadline) {
  if (!link_.has(Ability::live)) {
    return fail({ErrorCode::unsupported,
                 fmt::format("the daemon at {} is too old for live feeds", link_.endpoint())});
  }
  if (auto up = link_.come_up(deadline); !up) return area_trouble(up.error());
  produce();
}

void Conversation::produce() {
  wire::ProduceT wanted;
  wanted.producer = ++producer_;
  wanted.feed = wanted_.feed;
  wanted.name = wanted_.name;
  wanted.area_bytes = link_.is_inline() ? 0 : wanted_.area_bytes;
  state_ = State::asked;
  send(encode(std::move(wanted)));
}

void Conversation::on_produced(const ControlMessage& message) {
  const auto& produced = *message.as<wire::Produced>();
  if (state_ != State::asked || produced.producer() != producer_) return;
  if (link_.feeds().find_live(wanted_.feed) == nullptr && link_.reconnects_at_all()) {
    return meet_again();
  }
  if (produced.area() != 0) {
    auto store = fetch_area(produced.area());
    if (!store) return area_trouble(store.error());
    store_ = std::move(*store);
  }
  const bool is_known = was_produced_ && produced.incarnation() == numbers_.incarnation;
  numbers_ = {produced.incarnation(), produced.next(), produced.version()};
  state_ = State::producing;
  ended_ = false;
  was_produced_ = true;
  patience_.reset();
  resume(is_known);
}

/// The feed was opened since Welcome, and only another Welcome says what its sequences are.
void Conversation::meet_again() {
  was_produced_ = true;  // until that session is over, our name is in use
  link_.say_goodbye();
  link_.forget_feeds();
  lose("opened the feed meanwhile");
  lost();
}

Result<std::shared_ptr<AreaStore>> Conversation::fetch_area(std::uint32_t number) {
  auto area = link_.area(ArenaNumber{number}, after(link_.settings().limit));
  if (!area) return area.error();
  return std::make_shared<AreaStore>(std::move(*area), number);
}

/// What is under way is offered to this daemon, too, except for what it has. One that knows nothing
/// of earlier numbers has none of it, whatever the last one had.
void Conversation::resume(bool is_known) {
  if (!push_ || push_->answer) return;
  Offer& offer = push_->offer;
  if (is_known && numbers_.next >= offer.first() + offer.size()) {
    offer.settle(numbers_.next);
    push_->answer.emplace().next = numbers_.next;
    return;
  }
  if (!is_known) offer.number(numbers_.next);
  offer.move_to(store_, numbers_.next);
}

/// The first time, and once more to each daemon that comes back.
void Conversation::ask_what_is_due() {
  const Time now = link_.now();
  if (claim_ && !claim_->sent && !claim_->answer) {
    wire::ClaimT claim;
    claim.producer = producer_;
    claim.question = claim_->question;
    claim.count = claim_->count;
    claim.timeout_ms = claim_->deadline.remaining(now).count();
    claim_->sent = true;
    send(encode(std::move(claim)));
  }
  if (push_ && !push_->sent && !push_->answer) {
    push_->sent = push_->was_sent = true;
    send_push();
  }
  if (listing_ && !listing_->sent && !listing_->answer) {
    wire::ListOutcomesT list;
    list.producer = producer_;
    list.question = listing_->question;
    list.first = listing_->first;
    list.count = listing_->count;
    listing_->sent = true;
    send(encode(std::move(list)));
  }
}

void Conversation::send_push() {
  Offer& offer = push_->offer;
  push_->sent_bytes = 0;
  if (!offer.travels_in_parts(wanted_.part_bytes)) {
    const auto limit = push_->deadline.remaining(link_.now());
    return send(offer.message({producer_, push_->question, limit}), offer.frame());
  }
  if (!link_.has(Ability::push_parts)) {
    offer.settle(offer.first());
    wire::AcceptedT& answer = push_->answer.emplace();
    answer.next = offer.first();
    answer.code = static_cast<std::uint16_t>(ErrorCode::does_not_fit);
    answer.text =
        fmt::format("{} bytes in a message; the daemon at {} is older, and takes at most {}",
                    offer.frame().bytes.size(), link_.endpoint(), kMostFrameBytes);
    return;
  }
  for (std::size_t i = 0; i < kPartsUnderWay; ++i) send_part();
}

/// The next part of the frame, if there is one.
void Conversation::send_part() {
  Offer& offer = push_->offer;
  const std::uint64_t at = push_->sent_bytes;
  if (at == offer.frame().bytes.size()) return;
  const Payload part = offer.part(at, wanted_.part_bytes);
  push_->sent_bytes += part.bytes.size();
  const auto limit = push_->deadline.remaining(link_.now());
  send(offer.part_message({producer_, push_->question, limit}, at), part);
}

void Conversation::on_claimed(const ControlMessage& message) {
  const auto& claimed = *message.as<wire::Claimed>();
  if (!claim_ || claimed.producer() != producer_ || claim_->question != claimed.question()) return;
  if (claimed.code() == 0 && !claimed.ended()) {
    numbers_.version = std::max(numbers_.version, claimed.version());
  }
  if (!claim_->forgotten) {
    claimed.UnPackTo(&claim_->answer.emplace());
    return;
  }
  if (claimed.code() == 0 && !claimed.ended()) {
    wire::AbandonT unused;
    unused.group = kNoGroup;
    unused.count = claim_->count;
    abandon(unused);
  }
  claim_.reset();
}

void Conversation::on_accepted(const ControlMessage& message) {
  const auto& accepted = *message.as<wire::Accepted>();
  if (accepted.producer() != producer_) return;
  if (accepted.ended()) ended_ = true;
  if (!push_ || push_->question != accepted.question()) return;
  // Where a part was refused, the answer to the one that was under way then says nothing new.
  if (push_->answer) return;
  if (accepted.taken() != 0) {  // a part
    if (!push_->forgotten) return send_part();
    // Without the rest nothing of it is accepted.
    if (push_->sent_bytes < push_->offer.frame().bytes.size()) push_.reset();
    return;
  }
  numbers_.next = accepted.next();
  push_->offer.settle(accepted.next());
  if (push_->forgotten) {
    push_.reset();
  } else {
    accepted.UnPackTo(&push_->answer.emplace());
  }
}

void Conversation::on_freed(const ControlMessage& message) {
  const auto& freed = *message.as<wire::Freed>();
  if (!store_ || freed.producer() != producer_) return;
  for (const std::uint64_t number : *freed.numbers()) store_->freed(number);
}

void Conversation::on_outcomes(const ControlMessage& message) {
  const auto& outcomes = *message.as<wire::Outcomes>();
  if (!listing_ || listing_->question != outcomes.question()) return;
  outcomes.UnPackTo(&listing_->answer.emplace());
}

void Conversation::on_refused(const ControlMessage& message) {
  const auto& refusal = *message.as<wire::Refused>();
  const Error error{error_code(refusal.code()), refusal.message()->str()};
  const bool is_forgotten = error.code == ErrorCode::disconnected;
  if (refusal.producer() == 0) {
    if (!is_forgotten) return fail(error);
    return lose(fmt::format("does not know this session: {}", error.message));
  }
  if (refusal.producer() != producer_) return;  // of a feed that was replaced meanwhile
  // A feed that was replaced knows nothing of its producers.
  if (is_forgotten && link_.reconnects_at_all()) {
    lost();
    return produce();
  }
  // The daemon has not noticed yet that our last session is over.
  if (error.code == ErrorCode::busy && was_produced_ && link_.reconnects_at_all()) {
    if (!patience_) patience_ = after(link_.settings().reconnect);
    if (!patience_->passed(link_.now())) return lose(error.message);
  }
  fail(error);
}

void Conversation::on_bye(const ControlMessage& /*message*/) { lose("shut down"); }

void Conversation::abandon(const wire::AbandonT& what) {
  wire::AbandonT message = what;
  message.producer = producer_;
  send(encode(std::move(message)));
}

/// Where no area can be had, sequences travel in frames.
void Conversation::area_trouble(const Error& error) {
  switch (link_.meaning_of(error)) {
    case DaemonLink::Trouble::daemon_gone: return lose(error.message);
    case DaemonLink::Trouble::fatal: return fail(error);
    case DaemonLink::Trouble::no_memory: break;
  }
  if (link_.go_inline(error.message, false)) lost();
}

void Conversation::lose(const std::string& how) {
  if (failure_) return;
  if (link_.has_met() && (!link_.reconnects_at_all() || stopped_)) return fail(link_.gone(how));
  if (link_.lose(how)) lost();
}

/// The session with a daemon is over: with it go its area, its claims, and what no call waits for.
void Conversation::lost() {
  state_ = State::away;
  store_.reset();
  if (claim_ && claim_->forgotten) claim_.reset();
  if (push_ && push_->forgotten) push_.reset();
  if (claim_) claim_->sent = false;
  if (push_) push_->sent = false;
  if (listing_) listing_->sent = false;
}

void Conversation::fail(const Error& error) {
  if (!failure_) failure_ = error;
}

void Conversation::send(const flatbuffers::DetachedBuffer& message, const Payload& frame) {
  if (auto sent = link_.send(message, frame); !sent) fail(sent.error());
}

void Conversation::close() {
  if (is_producing() && link_.is_up()) {
    wire::CloseProducerT end;
    end.producer = producer_;
    send(encode(std::move(end)));
  }
  link_.say_goodbye();
  fail({ErrorCode::disconnected, "the producer is closed"});
}

void Conversation::stop() {
  stopped_ = true;
  link_.wake();
}

}  // namespace batchwright
