#include "tests/fuzz/seeds/messages.h"

#include <iterator>
#include <memory>
#include <utility>
#include <vector>

namespace batchwright::fuzz {
namespace {

using Body = wire::Body;

/// Most often a figure below 8.
template <class Number>
Number small_or_any(Choices& input) {
  const std::uint8_t choice = input.byte();
  return choice < 250 ? static_cast<Number>(choice % 8) : input.number<Number>();
}

std::uint32_t any_subscription(Choices& input) { return input.byte() % 4; }

std::uint16_t this_protocol_or_any(Choices& input) {
  return input.byte() % 4 == 0 ? input.number<std::uint16_t>() : kProtocolVersion;
}

std::vector<std::uint64_t> leases(Choices& input) {
  std::vector<std::uint64_t> numbers;
  for (int count = input.byte() % 8; count > 0; --count) {
    numbers.push_back(small_or_any<std::uint64_t>(input));
  }
  return numbers;
}

std::unique_ptr<wire::Fingerprint> fingerprint(Choices& input) {
  const auto settings = small_or_any<std::uint64_t>(input);
  return std::make_unique<wire::Fingerprint>(1, settings, 3);
}

void fill(wire::HelloT& hello, Choices& input) {
  hello.protocol = this_protocol_or_any(input);
  hello.client = "fuzz";
  hello.abilities = input.byte();
}

void fill(wire::WelcomeT& welcome, Choices& input) {
  welcome.protocol = this_protocol_or_any(input);
  welcome.version = "1";
  welcome.arena_socket = "/s";
  welcome.abilities = input.byte();
  auto feed = std::make_unique<wire::FeedInfoT>();
  feed->name = "train";
  auto field = std::make_unique<wire::FieldInfoT>();
  field->name = "speaker";
  field->shape = {3, small_or_any<std::uint32_t>(input)};
  field->categories = {"ann", "bob"};
  feed->fields.push_back(std::move(field));
  welcome.feeds.push_back(std::move(feed));
  auto absent = std::make_unique<wire::AbsentFeedT>();
  absent->name = "dev";
  absent->why = "no disk";
  welcome.absent.push_back(std::move(absent));
}

void fill(wire::SubscribeT& request, Choices& input) {
  request.subscription = any_subscription(input);
  request.feed = input.byte() % 8 == 0 ? "other" : "train";
  request.mode = static_cast<wire::Mode>(input.byte() % 4);
  request.ranks = small_or_any<std::uint32_t>(input);
  request.rank = small_or_any<std::uint32_t>(input);
  request.window = small_or_any<std::uint32_t>(input);
  request.epoch = small_or_any<std::uint64_t>(input);
  request.step = small_or_any<std::uint64_t>(input);
  request.epochs = small_or_any<std::uint64_t>(input);
  request.worst_first = small_or_any<std::uint32_t>(input);
  if (input.byte() % 4 != 1) return;
  request.fingerprint = fingerprint(input);
  request.held = leases(input);
  request.released = leases(input);
  request.until_epoch = small_or_any<std::uint64_t>(input);
}

void fill(wire::SubscribedT& answer, Choices& input) {
  answer.subscription = any_subscription(input);
  answer.fingerprint = fingerprint(input);
  answer.steps = small_or_any<std::uint64_t>(input);
  answer.batches_per_step = small_or_any<std::uint32_t>(input);
  answer.world = small_or_any<std::uint32_t>(input);
  answer.window = small_or_any<std::uint32_t>(input);
}

void fill(wire::DeliveryT& ticket, Choices& input) {
  ticket.subscription = any_subscription(input);
  ticket.lease = small_or_any<std::uint64_t>(input);
  ticket.size = 64 * small_or_any<std::uint64_t>(input);
  ticket.may_join = input.byte() % 2 != 0;
  ticket.attempt = small_or_any<std::uint32_t>(input);
}

void fill(wire::ReleaseT& release, Choices& input) {
  release.subscription = any_subscription(input);
  release.leases = leases(input);
  release.undone = input.byte() % 4 == 0;
}

void fill(wire::EpochEndT& ended, Choices& input) {
  ended.subscription = any_subscription(input);
  ended.steps = small_or_any<std::uint64_t>(input);
  ended.last = input.byte() % 4 == 0;
}

void fill(wire::EpochBeginT& begun, Choices& input) {
  begun.subscription = any_subscription(input);
  begun.epoch = small_or_any<std::uint64_t>(input);
  begun.steps = small_or_any<std::uint64_t>(input);
  begun.fingerprint = fingerprint(input);
}

void fill(wire::UnsubscribeT& request, Choices& input) {
  request.subscription = small_or_any<std::uint32_t>(input);
}

void fill(wire::ByeT& /*bye*/, Choices& /*input*/) {}

void fill(wire::RefusedT& refused, Choices& input) {
  refused.code = small_or_any<std::uint16_t>(input);
  refused.message = "no";
  refused.subscription = any_subscription(input);
}

void fill(wire::AskT& question, Choices& input) {
  question.subscription = any_subscription(input);
  question.quiet = input.byte() % 2 == 0;
  question.holds = small_or_any<std::uint32_t>(input);
}

void fill(wire::WaitingT& waiting, Choices& input) {
  waiting.subscription = any_subscription(input);
  waiting.reason = "a slot";
}

void fill(wire::AliveT& /*alive*/, Choices& /*input*/) {}

void fill(wire::EventT& event, Choices& input) {
  event.kind = static_cast<wire::EventKind>(input.byte() % 8);
  event.feed = "train";
  event.text = "why";
}

void fill(wire::ListUpcomingT& question, Choices& input) {
  question.subscription = any_subscription(input);
  question.question = small_or_any<std::uint32_t>(input);
  question.count = small_or_any<std::uint32_t>(input) % (kMostUpcoming + 1);
}

void fill(wire::UpcomingT& upcoming, Choices& input) {
  upcoming.subscription = any_subscription(input);
  upcoming.question = small_or_any<std::uint32_t>(input);
  for (int count = input.byte() % 4; count > 0; --count) {
    const auto index = small_or_any<std::uint64_t>(input);
    upcoming.batches.emplace_back(0, index, index, 5, 2, 3, false);
  }
}

std::uint32_t any_producer(Choices& input) { return input.byte() % 4; }

std::int64_t any_timeout(Choices& input) { return input.byte() % 4 == 0 ? 5 : -1; }

void fill(wire::ProduceT& request, Choices& input) {
  request.producer = any_producer(input);
  request.feed = input.byte() % 8 == 0 ? "train" : "live";
  if (input.byte() % 2 == 0) request.name = "actor";
  request.area_bytes = 4096 * small_or_any<std::uint64_t>(input);
}

void fill(wire::ProducedT& answer, Choices& input) {
  answer.producer = any_producer(input);
  answer.incarnation = small_or_any<std::uint64_t>(input);
  answer.next = small_or_any<std::uint64_t>(input);
  answer.area = small_or_any<std::uint32_t>(input);
  answer.area_bytes = 4096 * small_or_any<std::uint64_t>(input);
}

void fill(wire::ClaimT& claim, Choices& input) {
  claim.producer = any_producer(input);
  claim.question = small_or_any<std::uint32_t>(input);
  claim.count = small_or_any<std::uint32_t>(input);
  claim.timeout_ms = any_timeout(input);
}

void fill(wire::ClaimedT& answer, Choices& input) {
  answer.producer = any_producer(input);
  answer.question = small_or_any<std::uint32_t>(input);
  answer.code = small_or_any<std::uint16_t>(input);
  answer.version = small_or_any<std::uint64_t>(input);
  answer.text = "staleness";
}

void fill(wire::PushT& push, Choices& input) {
  push.producer = any_producer(input);
  push.question = small_or_any<std::uint32_t>(input);
  push.first = small_or_any<std::uint64_t>(input);
  push.framed = input.byte() % 4 != 0;
  push.timeout_ms = any_timeout(input);
  if (input.byte() % 4 == 0) {
    push.total_bytes = small_or_any<std::uint64_t>(input);
    push.part_at = small_or_any<std::uint64_t>(input);
  }
  for (int count = 1 + input.byte() % 4; count > 0; --count) {
    const auto offset = 64 * small_or_any<std::uint64_t>(input);
    const auto version = small_or_any<std::uint64_t>(input);
    const auto group = input.byte() % 2 == 0 ? kNoGroup : small_or_any<std::uint64_t>(input);
    push.sequences.emplace_back(offset, version, version, group, small_or_any<std::uint32_t>(input),
                                1, 1.0F);
    push.lengths.push_back(small_or_any<std::uint32_t>(input));
    push.keys.push_back('k');
  }
  if (input.byte() % 4 == 0) push.epochs.assign(push.sequences.size(), input.byte());
  if (input.byte() % 2 == 0) return;
  push.of = std::make_unique<wire::OfT>();
  push.of->feed = "train";
  push.of->fingerprint = std::make_unique<wire::Fingerprint>(1, 2, 3);
  for (std::size_t i = 0; i < push.sequences.size(); ++i) {
    push.of->rows.emplace_back(
        small_or_any<std::uint64_t>(input), small_or_any<std::uint64_t>(input),
        small_or_any<std::uint32_t>(input), small_or_any<std::uint32_t>(input));
  }
}

void fill(wire::AcceptedT& answer, Choices& input) {
  answer.producer = any_producer(input);
  answer.question = small_or_any<std::uint32_t>(input);
  answer.next = small_or_any<std::uint64_t>(input);
  if (input.byte() % 4 == 0) answer.taken = small_or_any<std::uint64_t>(input);
  answer.code = small_or_any<std::uint16_t>(input);
  answer.text = "no";
}

void fill(wire::FreedT& freed, Choices& input) {
  freed.producer = any_producer(input);
  freed.numbers = leases(input);
}

void fill(wire::AbandonT& abandon, Choices& input) {
  abandon.producer = any_producer(input);
  abandon.group = small_or_any<std::uint64_t>(input);
  abandon.count = small_or_any<std::uint32_t>(input);
  abandon.number = small_or_any<std::uint64_t>(input);
  abandon.by_number = input.byte() % 2 == 0;
}

void fill(wire::CloseProducerT& close, Choices& input) { close.producer = any_producer(input); }

void fill(wire::ListOutcomesT& question, Choices& input) {
  question.producer = any_producer(input);
  question.question = small_or_any<std::uint32_t>(input);
  question.first = small_or_any<std::uint64_t>(input);
  question.count = small_or_any<std::uint32_t>(input) % (kMostOutcomes + 1);
}

void fill(wire::OutcomesT& answer, Choices& input) {
  answer.producer = any_producer(input);
  answer.question = small_or_any<std::uint32_t>(input);
  answer.first = small_or_any<std::uint64_t>(input);
  answer.outcomes = {wire::Outcome::done, wire::Outcome::dropped_stale};
  answer.totals.assign(kOutcomes, 1);
}

void fill(wire::AdvanceT& advance, Choices& input) {
  advance.feed = input.byte() % 8 == 0 ? "train" : "live";
  advance.question = small_or_any<std::uint32_t>(input);
  advance.version = small_or_any<std::uint64_t>(input) % (kLastVersion + 1);
  advance.restored = input.byte() % 4 == 0;
  advance.replays = input.byte() % 4 == 0;
}

void fill(wire::AwaitVersionT& question, Choices& input) {
  question.feed = input.byte() % 8 == 0 ? "train" : "live";
  question.question = small_or_any<std::uint32_t>(input);
  question.above = small_or_any<std::uint64_t>(input);
  question.timeout_ms = any_timeout(input);
}

void fill(wire::VersionT& answer, Choices& input) {
  answer.question = small_or_any<std::uint32_t>(input);
  answer.version = small_or_any<std::uint64_t>(input);
  answer.code = small_or_any<std::uint16_t>(input);
}

void fill(wire::EndFeedT& end, Choices& input) {
  end.feed = input.byte() % 8 == 0 ? "train" : "live";
  end.question = small_or_any<std::uint32_t>(input);
}

void fill(wire::KeepFromT& mark, Choices& input) {
  mark.feed = input.byte() % 8 == 0 ? "train" : "live";
  mark.step = small_or_any<std::uint64_t>(input);
}

template <class TableT>
wire::MessageT filled(Choices& input) {
  TableT body;
  fill(body, input);
  wire::MessageT message;
  message.body.Set(std::move(body));
  return message;
}

struct Row {
  Body kind;
  wire::MessageT (*make)(Choices& input);
};

constexpr Row kRows[] = {
    {Body::Hello, filled<wire::HelloT>},
    {Body::Welcome, filled<wire::WelcomeT>},
    {Body::Subscribe, filled<wire::SubscribeT>},
    {Body::Subscribed, filled<wire::SubscribedT>},
    {Body::Delivery, filled<wire::DeliveryT>},
    {Body::Release, filled<wire::ReleaseT>},
    {Body::EpochEnd, filled<wire::EpochEndT>},
    {Body::Unsubscribe, filled<wire::UnsubscribeT>},
    {Body::Bye, filled<wire::ByeT>},
    {Body::Refused, filled<wire::RefusedT>},
    {Body::EpochBegin, filled<wire::EpochBeginT>},
    {Body::Ask, filled<wire::AskT>},
    {Body::Waiting, filled<wire::WaitingT>},
    {Body::Alive, filled<wire::AliveT>},
    {Body::Event, filled<wire::EventT>},
    {Body::ListUpcoming, filled<wire::ListUpcomingT>},
    {Body::Upcoming, filled<wire::UpcomingT>},
    {Body::Produce, filled<wire::ProduceT>},
    {Body::Produced, filled<wire::ProducedT>},
    {Body::Claim, filled<wire::ClaimT>},
    {Body::Claimed, filled<wire::ClaimedT>},
    {Body::Push, filled<wire::PushT>},
    {Body::Accepted, filled<wire::AcceptedT>},
    {Body::Freed, filled<wire::FreedT>},
    {Body::Abandon, filled<wire::AbandonT>},
    {Body::CloseProducer, filled<wire::CloseProducerT>},
    {Body::ListOutcomes, filled<wire::ListOutcomesT>},
    {Body::Outcomes, filled<wire::OutcomesT>},
    {Body::Advance, filled<wire::AdvanceT>},
    {Body::AwaitVersion, filled<wire::AwaitVersionT>},
    {Body::Version, filled<wire::VersionT>},
    {Body::EndFeed, filled<wire::EndFeedT>},
    {Body::KeepFrom, filled<wire::KeepFromT>},
};
static_assert(std::size(kRows) == static_cast<std::size_t>(Body::MAX), "each kind has its row");

}  // namespace

wire::MessageT make_message(wire::Body kind, Choices& input) {
  const Row& row = kRows[static_cast<std::size_t>(kind) - 1];
  require(row.kind == kind, "rows are in the order of their kinds' numbers");
  return row.make(input);
}

}  // namespace batchwright::fuzz
