#include "formats/control.h"

#include <fmt/core.h>

#include <string>

namespace batchwright {
namespace {

/// Whether the lists of 64-bit numbers are aligned.
bool lists_are_aligned(const wire::Message& message) {
  if (const auto* subscribe = message.body_as_Subscribe()) {
    return is_aligned(subscribe->held()) && is_aligned(subscribe->released());
  }
  const auto* release = message.body_as_Release();
  return release == nullptr || is_aligned(release->leases());
}

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
  if (!wire::VerifyMessageBuffer(verifier) || !lists_are_aligned(*wire::GetMessage(copy.data()))) {
    return Error{ErrorCode::malformed_message,
                 fmt::format("{} bytes that are no control message", bytes.size())};
  }
  return ControlMessage(std::move(copy));
}

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
