// Control messages as they come from anyone: decoded, every member read, and written again.

#include "formats/formats.h"
#include "tests/fuzz/fuzz.h"

using namespace batchwright;
using namespace batchwright::fuzz;

namespace {

void touch_list(const flatbuffers::Vector<std::uint64_t>* values) {
  if (values != nullptr) touch(std::span(values->data(), values->size()));
}

void touch_text(const flatbuffers::String* text) {
  if (text != nullptr) touch(text->string_view());
}

/// What the daemon reads of a client's messages, in place.
void read_as_daemon(const ControlMessage& message) {
  if (const auto* hello = message.as<wire::Hello>()) touch_text(hello->client());
  if (const auto* release = message.as<wire::Release>()) touch_list(release->leases());
  if (const auto* subscribe = message.as<wire::Subscribe>()) {
    touch(subscribe->feed()->string_view());
    touch_list(subscribe->held());
    touch_list(subscribe->released());
    if (subscribe->fingerprint() != nullptr) {
      const Fingerprint plan = from_wire(*subscribe->fingerprint());
      require(plan == from_wire(to_wire(plan)), "a fingerprint travels unchanged");
      touch(to_string(plan));
    }
  }
}

/// A message with every member in it, as bytes.
flatbuffers::DetachedBuffer written_again(std::span<const std::byte> bytes) {
  const AlignedInput aligned(bytes);
  wire::MessageT message;
  wire::GetMessage(aligned.bytes().data())->UnPackTo(&message);
  return encode(message);
}

void read_whole(std::span<const std::byte> bytes) {
  const auto once = written_again(bytes);
  const std::span copy(reinterpret_cast<const std::byte*>(once.data()), once.size());
  // Texts that share their bytes in the input do not in the copy, which may be too large then.
  const auto again = ControlMessage::decode(copy);
  require(again || copy.size() > kMaxControlBytes, "what was written can be read");
  if (!again) return;
  const auto twice = written_again(copy);
  require(once.size() == twice.size() && std::memcmp(once.data(), twice.data(), once.size()) == 0,
          "what was read is what was written");
}

bool is_known(wire::Body kind) {
  return kind != wire::Body::NONE && static_cast<std::size_t>(kind) <= message_kinds().size();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto message = ControlMessage::decode(bytes);
  if (!message) {
    require(message.error().code == ErrorCode::malformed_message, "the error is malformed_message");
    return 0;
  }
  read_as_daemon(*message);
  if (is_known(message->kind())) read_whole(bytes);
  return 0;
}
