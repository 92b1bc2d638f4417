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
};
static_assert(std::size(kRows) == static_cast<std::size_t>(Body::MAX), "each kind has its row");

}  // namespace

wire::MessageT make_message(wire::Body kind, Choices& input) {
  const Row& row = kRows[static_cast<std::size_t>(kind) - 1];
  require(row.kind == kind, "rows are in the order of their kinds' numbers");
  return row.make(input);
}

}  // namespace batchwright::fuzz
