#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "control_generated.h"
#include "formats/aligned_copy.h"
#include "formats/base/base.h"
#include "formats/ids.h"

namespace batchwright {

/// The protocol this code speaks. A peer of another version is refused with both versions named.
inline constexpr std::uint16_t kProtocolVersion = 1;

/// No control message is larger; a larger frame is malformed.
inline constexpr std::size_t kMaxControlBytes = 1 << 20;

/// The most of a Push's frame that one message carries: encryption adds to it on the way.
inline constexpr std::size_t kMostFrameBytes = kMaxControlBytes - (std::size_t{64} << 10);

/// What a peer can do beyond the protocol's first version: a bit each, in `abilities` of Hello and
/// Welcome. Numbers are part of the protocol: append, never renumber.
enum class Ability : std::uint64_t {
  returns = 1 << 0,     ///< A queue's batch can be given back undone.
  parts = 1 << 1,       ///< A large batch travels in parts.
  waits = 1 << 2,       ///< The client says whenever its program waits, and how long it did.
  upcoming = 1 << 3,    ///< The daemon tells which batches come next.
  live = 1 << 4,        ///< A client can push sequences to live feeds, and announce versions.
  push_parts = 1 << 5,  ///< The frame of a Push can come in parts.
  ends = 1 << 6,        ///< The daemon answers EndFeed.
  keep_from = 1 << 7,   ///< Steps of a live feed are kept for a trainer that begins again.
};

/// The abilities that one side names, or that both have named: only those are used. A peer that is
/// older than all of them names none.
class Abilities {
 public:
  constexpr Abilities() = default;
  constexpr explicit Abilities(std::uint64_t bits) : bits_(bits) {}
  constexpr Abilities(std::initializer_list<Ability> named) {
    for (const Ability each : named) bits_ |= static_cast<std::uint64_t>(each);
  }

  constexpr std::uint64_t bits() const { return bits_; }
  constexpr bool has(Ability ability) const {
    return (bits_ & static_cast<std::uint64_t>(ability)) != 0;
  }
  /// Those that both have.
  friend constexpr Abilities operator&(Abilities one, Abilities other) {
    return Abilities(one.bits_ & other.bits_);
  }
  friend constexpr bool operator==(Abilities one, Abilities other) = default;

 private:
  std::uint64_t bits_ = 0;
};

/// What this code can do, as a daemon and as a client.
inline constexpr Abilities kAbilities{Ability::returns,  Ability::parts,    Ability::waits,
                                      Ability::upcoming, Ability::live,     Ability::push_parts,
                                      Ability::ends,     Ability::keep_from};

/// Most batches that one ListUpcoming asks for.
inline constexpr std::uint32_t kMostUpcoming = 1024;

/// Most sequences that one Push offers, and most numbers that one ListOutcomes asks for.
inline constexpr std::uint32_t kMostOffered = 4096;
inline constexpr std::uint32_t kMostOutcomes = 65'536;

/// How many states wire::Outcome has.
inline constexpr std::size_t kOutcomes = static_cast<std::size_t>(wire::Outcome::MAX) + 1;

/// In place of a group: the sequence is in none.
inline constexpr std::uint64_t kNoGroup = UINT64_MAX;

/// The highest version that can be announced.
inline constexpr std::uint64_t kLastVersion = std::uint64_t{1} << 62;

/// The sides of a conversation, and the PUB socket's.
enum class Sender : std::uint8_t { client, daemon, either, publisher };

/// A kind of control message, as both sides know it. Beside the schema it has this row, and each
/// side that takes it a row with its handler.
struct MessageKind {
  wire::Body body;
  Sender sender;
  /// What the schema cannot say: why the body must not be read, or null. Null: nothing is left to
  /// check.
  const char* (*flaw)(const wire::Message&) = nullptr;
};

/// All kinds, in the order of their numbers.
std::span<const MessageKind> message_kinds();

/// A received control message, verified and kept at an aligned address.
class ControlMessage {
 public:
  /// Reads nothing outside `bytes`. Errors: malformed_message.
  static Result<ControlMessage> decode(std::span<const std::byte> bytes);

  wire::Body kind() const { return root().body_type(); }

  /// The body, or null when the message is of another kind. Valid as long as this object.
  template <class Table>
  const Table* as() const {
    return root().body_as<Table>();
  }

 private:
  explicit ControlMessage(AlignedCopy copy) : copy_(std::move(copy)) {}
  const wire::Message& root() const { return *wire::GetMessage(copy_.data()); }

  AlignedCopy copy_;
};

/// A control message as bytes.
flatbuffers::DetachedBuffer encode(const wire::MessageT& message);

/// A control message as bytes, from a body such as wire::HelloT.
template <class TableT>
requires(!std::is_same_v<std::remove_cvref_t<TableT>, wire::MessageT>) flatbuffers::DetachedBuffer
    encode(TableT&& body) {
  wire::MessageT message;
  message.body.Set(std::forward<TableT>(body));
  return encode(std::as_const(message));
}

/// The fingerprint as it travels, and back.
wire::Fingerprint to_wire(const Fingerprint& fingerprint);
Fingerprint from_wire(const wire::Fingerprint& fingerprint);

/// Lease numbers as they travel, and back. Null: there are none.
std::vector<std::uint64_t> to_wire(const std::vector<LeaseNumber>& leases);
std::vector<LeaseNumber> from_wire(const flatbuffers::Vector<std::uint64_t>* leases);

/// A client's request on the arena socket: once with arena 0 right after Welcome, to bind the
/// connection to its session, then once for each arena that it wants to map.
struct ArenaRequest {
  std::uint32_t magic = kMagic;
  std::uint32_t arena = 0;
  std::uint64_t session = 0;
  static constexpr std::uint32_t kMagic = 0x31415742;  ///< "BWA1", little-endian.
};

/// The daemon's answer; the descriptor of the arena comes with it (SCM_RIGHTS) when `code` is 0
/// and an arena was asked for.
struct ArenaReply {
  std::uint32_t magic = ArenaRequest::kMagic;
  std::uint32_t code = 0;  ///< 0, or an ErrorCode.
  std::uint32_t arena = 0;
  std::uint32_t reserved = 0;
  std::uint64_t bytes = 0;
};

}  // namespace batchwright
