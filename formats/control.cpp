#include "formats/control.h"

#include <fmt/core.h>

#include <iterator>
#include <string>

#include "formats/batch.h"
#include "formats/record.h"

namespace batchwright {
namespace {

constexpr const char* kNotAligned = "a list of leases that is not aligned";

const char* flaw_of_subscribe(const wire::Message& message) {
  const auto& subscribe = *message.body_as_Subscribe();
  return is_aligned(subscribe.held()) && is_aligned(subscribe.released()) ? nullptr : kNotAligned;
}

const char* flaw_of_release(const wire::Message& message) {
  return is_aligned(message.body_as_Release()->leases()) ? nullptr : kNotAligned;
}

const char* flaw_of_epoch_begin(const wire::Message& message) {
  return message.body_as_EpochBegin()->fingerprint() != nullptr
             ? nullptr
             : "an EpochBegin without a fingerprint";
}

const char* flaw_of_list_upcoming(const wire::Message& message) {
  return message.body_as_ListUpcoming()->count() <= kMostUpcoming
             ? nullptr
             : "a ListUpcoming for more than 1024 batches";
}

const char* flaw_of_produce(const wire::Message& message) {
  const auto* name = message.body_as_Produce()->name();
  return name == nullptr || name->size() <= kMostNameBytes
             ? nullptr
             : "a Produce with a name of more than 64 bytes";
}

const char* flaw_of_push(const wire::Message& message) {
  const auto& push = *message.body_as_Push();
  const auto& sequences = *push.sequences();
  if (!is_aligned(&sequences)) return "a Push that is not aligned";
  if (sequences.size() == 0) return "a Push without sequences";
  if (sequences.size() > kMostOffered) return "a Push of more than 4096 sequences";
  std::uint64_t key_bytes = 0;
  for (const wire::OfferedSequence* offered : sequences) {
    if (offered->key_bytes() == 0 || offered->key_bytes() > kMaxKeyBytes) {
      return "a Push with a key that has not 1 to 511 bytes";
    }
    key_bytes += offered->key_bytes();
  }
  if (key_bytes != (push.keys() != nullptr ? push.keys()->size() : 0)) {
    return "a Push whose keys are not as long as it says";
  }
  if (const wire::Of* of = push.of()) {
    if (!is_aligned(of->rows())) return "a Push with rows that are not aligned";
    if (of->rows()->size() != sequences.size()) {
      return "a Push that does not join a row to each of its sequences";
    }
  }
  if (push.epochs() == nullptr) return nullptr;
  if (!is_aligned(push.epochs())) return "a Push that is not aligned";
  if (push.epochs()->size() != sequences.size()) return "a Push without an epoch of each sequence";
  return nullptr;
}

const char* flaw_of_freed(const wire::Message& message) {
  return is_aligned(message.body_as_Freed()->numbers()) ? nullptr : "a Freed that is not aligned";
}

const char* flaw_of_list_outcomes(const wire::Message& message) {
  return message.body_as_ListOutcomes()->count() <= kMostOutcomes
             ? nullptr
             : "a ListOutcomes for more than 65536 numbers";
}

const char* flaw_of_outcomes(const wire::Message& message) {
  const auto& answer = *message.body_as_Outcomes();
  if (!is_aligned(answer.totals())) return "an Outcomes that is not aligned";
  return answer.totals()->size() == kOutcomes ? nullptr : "an Outcomes without a total of each";
}

const char* flaw_of_advance(const wire::Message& message) {
  return message.body_as_Advance()->version() <= kLastVersion ? nullptr
                                                              : "an Advance beyond version 2^62";
}

using Body = wire::Body;

constexpr MessageKind kKinds[] = {
    {Body::Hello, Sender::client},
    {Body::Welcome, Sender::daemon},
    {Body::Subscribe, Sender::client, flaw_of_subscribe},
    {Body::Subscribed, Sender::daemon},
    {Body::Delivery, Sender::daemon},
    {Body::Release, Sender::client, flaw_of_release},
    {Body::EpochEnd, Sender::daemon},
    {Body::Unsubscribe, Sender::client},
    {Body::Bye, Sender::either},
    {Body::Refused, Sender::daemon},
    {Body::EpochBegin, Sender::daemon, flaw_of_epoch_begin},
    {Body::Ask, Sender::client},
    {Body::Waiting, Sender::daemon},
    {Body::Alive, Sender::daemon},
    {Body::Event, Sender::publisher},
    {Body::ListUpcoming, Sender::client, flaw_of_list_upcoming},
    {Body::Upcoming, Sender::daemon},
    {Body::Produce, Sender::client, flaw_of_produce},
    {Body::Produced, Sender::daemon},
    {Body::Claim, Sender::client},
    {Body::Claimed, Sender::daemon},
    {Body::Push, Sender::client, flaw_of_push},
    {Body::Accepted, Sender::daemon},
    {Body::Freed, Sender::daemon, flaw_of_freed},
    {Body::Abandon, Sender::client},
    {Body::CloseProducer, Sender::client},
    {Body::ListOutcomes, Sender::client, flaw_of_list_outcomes},
    {Body::Outcomes, Sender::daemon, flaw_of_outcomes},
    {Body::Advance, Sender::client, flaw_of_advance},
    {Body::AwaitVersion, Sender::client},
    {Body::Version, Sender::daemon},
    {Body::EndFeed, Sender::client},
    {Body::KeepFrom, Sender::client},
};

constexpr bool each_kind_has_its_row() {
  for (std::size_t i = 0; i < std::size(kKinds); ++i) {
    if (static_cast<std::size_t>(kKinds[i].body) != i + 1) return false;
  }
  return std::size(kKinds) == static_cast<std::size_t>(Body::MAX);
}
static_assert(each_kind_has_its_row());

}  // namespace

Result<ControlMessage> ControlMessage::decode(std::span<const std::byte> bytes) {
  // Before the copy: no peer makes this side allocate more.
  if (bytes.size() > kMaxControlBytes) {
    return Error{
        ErrorCode::malformed_message,
        fmt::format("a control message of {} bytes; at most 1 MiB is allowed", bytes.size())};
  }
  AlignedCopy copy(bytes);
  // By its defaults it follows at most 64 levels and a million tables, so no message keeps it long.
  flatbuffers::Verifier verifier(copy.data(), copy.size());
  if (!wire::VerifyMessageBuffer(verifier)) {
    return Error{ErrorCode::malformed_message,
                 fmt::format("{} bytes that are no control message", bytes.size())};
  }
  const wire::Message& message = *wire::GetMessage(copy.data());
  const auto number = static_cast<std::size_t>(message.body_type());
  if (number == 0 || number > std::size(kKinds)) return ControlMessage(std::move(copy));
  const MessageKind& kind = kKinds[number - 1];
  if (const char* flaw = kind.flaw != nullptr ? kind.flaw(message) : nullptr; flaw != nullptr) {
    return Error{ErrorCode::malformed_message, flaw};
  }
  return ControlMessage(std::move(copy));
}

std::span<const MessageKind> message_kinds() { return kKinds; }

flatbuffers::DetachedBuffer encode(const wire::MessageT& message) {
  flatbuffers::FlatBufferBuilder builder(256);
  wire::FinishMessageBuffer(builder, wire::CreateMessage(builder, &message));
  return builder.Release();
}

wire::Fingerprint to_wire(const Fingerprint& fingerprint) {
  return {fingerprint.data, fingerprint.settings, fingerprint.seed};
}

Fingerprint from_wire(const wire::Fingerprint& fingerprint) {
  return {fingerprint.data(), fingerprint.settings(), fingerprint.seed()};
}

std::vector<std::uint64_t> to_wire(const std::vector<LeaseNumber>& leases) {
  std::vector<std::uint64_t> numbers;
  numbers.reserve(leases.size());
  for (const LeaseNumber lease : leases) numbers.push_back(lease.value);
  return numbers;
}

std::vector<LeaseNumber> from_wire(const flatbuffers::Vector<std::uint64_t>* leases) {
  if (leases == nullptr) return {};
  std::vector<LeaseNumber> numbers;
  numbers.reserve(leases->size());
  for (const std::uint64_t lease : *leases) numbers.push_back(LeaseNumber{lease});
  return numbers;
}

}  // namespace batchwright
