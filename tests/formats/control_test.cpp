#include <doctest/doctest.h>

#include <cstring>

#include "formats/formats.h"

using namespace batchwright;

namespace {

std::span<const std::byte> bytes_of(const flatbuffers::DetachedBuffer& buffer) {
  return {reinterpret_cast<const std::byte*>(buffer.data()), buffer.size()};
}

}  // namespace

TEST_CASE("formats: a control message survives the way, at an odd address too") {
  wire::DeliveryT delivery;
  delivery.lease = 77;
  delivery.size = 1 << 20;
  const auto buffer = encode(std::move(delivery));
  std::vector<std::byte> shifted(buffer.size() + 1);
  std::memcpy(shifted.data() + 1, buffer.data(), buffer.size());
  const auto message = ControlMessage::decode(std::span(shifted).subspan(1));
  REQUIRE(message);
  REQUIRE(message->as<wire::Delivery>() != nullptr);
  CHECK(message->as<wire::Delivery>()->lease() == 77);
  CHECK(message->as<wire::Hello>() == nullptr);
}

TEST_CASE("formats: an ability is used only where both peers name it") {
  const Abilities none;
  const Abilities some{Ability::returns};
  const Abilities unknown(std::uint64_t{1} << 63 | 1);  // of a peer that is newer than we are
  CHECK((some & some).has(Ability::returns));
  CHECK((some & unknown) == some);
  CHECK_FALSE((some & none).has(Ability::returns));
  CHECK_FALSE((none & some).has(Ability::returns));
  CHECK_FALSE((none & none).has(Ability::returns));
  CHECK_FALSE((some & Abilities{Ability::parts}).has(Ability::parts));
}

TEST_CASE("formats: a Hello and a Welcome without abilities have none") {
  const auto hello = ControlMessage::decode(bytes_of(encode(wire::HelloT{})));
  REQUIRE(hello);
  CHECK(Abilities(hello->as<wire::Hello>()->abilities()) == Abilities());
  wire::WelcomeT able;
  able.abilities = Abilities{Ability::parts}.bits();
  const auto welcome = ControlMessage::decode(bytes_of(encode(std::move(able))));
  REQUIRE(welcome);
  CHECK(Abilities(welcome->as<wire::Welcome>()->abilities()).has(Ability::parts));
}

TEST_CASE("formats: an arena that takes another one's place is the same feed's, and is greater") {
  constexpr ArenaNumber first{7};
  constexpr ArenaNumber second = *first.next();
  CHECK(second > first);
  CHECK(second.feed() == first.feed());
  CHECK(second.value == 0x1'0007);
  CHECK(ArenaNumber{ArenaNumber::kMostFeeds}.next()->feed() == ArenaNumber::kMostFeeds);
  ArenaNumber last = first;
  std::uint32_t replacements = 0;
  while (const auto next = last.next()) {
    REQUIRE(*next > last);  // it never comes again
    last = *next;
    ++replacements;
  }
  CHECK(replacements == 0x7FFF);
}

TEST_CASE("formats: bytes that are no control message are refused") {
  wire::HelloT hello;
  hello.client = "a trainer";
  const auto buffer = encode(std::move(hello));
  for (std::size_t size = 0; size + 8 < buffer.size(); ++size) {
    const auto cut = bytes_of(buffer).first(size);
    CHECK_FALSE(ControlMessage::decode({cut.begin(), cut.end()}));
  }
  CHECK_FALSE(ControlMessage::decode(std::vector<std::byte>(100, std::byte{0xA5})));
  CHECK_FALSE(ControlMessage::decode(std::vector<std::byte>(kMaxControlBytes + 1)));
}

TEST_CASE("formats: each kind of message has a row, and what its schema cannot say is checked") {
  const auto kinds = message_kinds();
  REQUIRE(kinds.size() == static_cast<std::size_t>(wire::Body::MAX));
  CHECK(kinds[static_cast<std::size_t>(wire::Body::Delivery) - 1].sender == Sender::daemon);
  const auto begin = ControlMessage::decode(bytes_of(encode(wire::EpochBeginT{})));
  REQUIRE_FALSE(begin);
  CHECK(begin.error().message == "an EpochBegin without a fingerprint");
}

TEST_CASE("formats: a ListUpcoming asks for at most 1024 batches") {
  wire::ListUpcomingT question;
  question.count = kMostUpcoming;
  CHECK(ControlMessage::decode(bytes_of(encode(wire::ListUpcomingT(question)))));
  ++question.count;
  const auto refused = ControlMessage::decode(bytes_of(encode(std::move(question))));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "a ListUpcoming for more than 1024 batches");
}

TEST_CASE("formats: of a live feed's messages what the schema cannot say is checked") {
  const auto flaw = [](auto body) -> std::string {
    const auto message = ControlMessage::decode(bytes_of(encode(std::move(body))));
    return message ? "" : message.error().message;
  };
  wire::PushT push;
  CHECK(flaw(push) == "a Push without sequences");
  push.sequences.assign(kMostOffered, {0, 0, 0, kNoGroup, 0, 1, 1.0F});
  CHECK(flaw(push) == "a Push whose keys are not as long as it says");
  push.keys.assign(kMostOffered, 'k');
  CHECK(flaw(push).empty());
  push.sequences.push_back(push.sequences.back());
  push.keys.push_back('k');
  CHECK(flaw(push) == "a Push of more than 4096 sequences");
  for (const std::uint32_t key_bytes : {0U, 512U, UINT32_MAX}) {
    push.sequences.assign(1, {0, 0, 0, kNoGroup, 0, key_bytes, 1.0F});
    push.keys.assign(key_bytes % 1024, 'k');
    CHECK(flaw(push) == "a Push with a key that has not 1 to 511 bytes");
  }
  push.sequences.assign(2, {0, 0, 0, kNoGroup, 0, 1, 1.0F});
  push.keys.assign(2, 'k');
  push.of = std::make_unique<wire::OfT>();
  push.of->feed = "train";
  push.of->fingerprint = std::make_unique<wire::Fingerprint>(1, 2, 3);
  push.of->rows.assign(2, {0, 1, 0, 0});
  CHECK(flaw(push).empty());
  push.of->rows.pop_back();
  CHECK(flaw(push) == "a Push that does not join a row to each of its sequences");
  wire::ListOutcomesT question;
  question.count = kMostOutcomes;
  CHECK(flaw(question).empty());
  ++question.count;
  CHECK(flaw(question) == "a ListOutcomes for more than 65536 numbers");
  wire::OutcomesT answer;
  for (std::size_t totals = 0; totals < 2 * kOutcomes; ++totals) {
    answer.totals.assign(totals, 0);
    CHECK(flaw(answer).empty() == (totals == kOutcomes));
  }
  wire::AdvanceT advance;
  advance.version = kLastVersion;
  CHECK(flaw(advance).empty());
  ++advance.version;
  CHECK(flaw(advance) == "an Advance beyond version 2^62");
  wire::ProduceT produce;
  produce.name = std::string(kMostNameBytes, 'n');
  CHECK(flaw(produce).empty());
  produce.name += 'n';
  CHECK(flaw(produce) == "a Produce with a name of more than 64 bytes");
}
