#pragma once

#include "formats/formats.h"
#include "tests/fuzz/fuzz.h"

namespace batchwright::fuzz {

/// A message of this kind, its figures chosen by the input: a kind of control message has its row
/// in messages.cpp, from which come the seeds and what the conversation says.
wire::MessageT make_message(wire::Body kind, Choices& input);

/// Whether the kind is one that this side of the socket sends.
inline bool sends(Sender side, const MessageKind& kind) {
  return kind.sender == side || kind.sender == Sender::either;
}

}  // namespace batchwright::fuzz
