#include "client/library/memory/batch.h"

#include <fmt/core.h>

#include <algorithm>

#include "client/library/c_values.h"

namespace batchwright {
namespace {

template <class T>
bool aligned(const flatbuffers::Vector<T>* values) {
  // An empty one has no address to speak of: FlatBuffers aligns nothing for it.
  return values == nullptr || values->size() == 0 ||
         reinterpret_cast<std::uintptr_t>(values->data()) % sizeof(T) == 0;
}

template <class T>
bool absent_or(const flatbuffers::Vector<T>* values, std::size_t rows) {
  return values == nullptr || values->size() == rows;
}

/// Whether a payload lies where its batch has 64-byte boundaries. In an arena these are such in
/// memory too; a message begins where ZeroMQ put it.
bool in_line(const flatbuffers::Vector<std::uint8_t>* values, const Payload& batch) {
  return values->size() == 0 ||
         (reinterpret_cast<const std::byte*>(values->data()) - batch.bytes.data()) %
                 static_cast<std::ptrdiff_t>(kTensorAlignment) ==
             0;
}

/// What verify_batch() leaves open: alignment of what is shown as arrays, and the rows of the
/// optional ones. Returns what is wrong, or null.
const char* flaw_in(const wire::Batch& batch, const Payload& payload) {
  const std::size_t rows = batch.lengths()->size();
  if (batch.batch_sequences() != rows) return "its number of rows is wrong";
  if (!absent_or(batch.starts(), rows) || !absent_or(batch.flags(), rows)) {
    return "its rows do not agree";
  }
  if (!aligned(batch.weights())) return "its weights are not aligned";
  if (!aligned(batch.uses())) return "its uses are not aligned";
  if (batch.live() != nullptr && !aligned(batch.live()->producers())) {
    return "what it says of live rows is not aligned";
  }
  if (!aligned(batch.lengths()) || !aligned(batch.ordinals()) || !aligned(batch.starts())) {
    return "its arrays are not aligned";
  }
  for (const wire::Tensor* tensor : *batch.tensors()) {
    if (tensor->shape()->size() > BW_MAX_DIMENSIONS) return "a tensor has too many dimensions";
    if (!in_line(tensor->data(), payload) || !aligned(tensor->lengths())) {
      return "a tensor is not aligned";
    }
  }
  return nullptr;
}

bw_tensor tensor_of(const wire::Batch& batch, const wire::Tensor& tensor) {
  bw_tensor face{};
  face.name = tensor.name()->c_str();
  face.data = tensor.data()->data();
  face.bytes = tensor.data()->size();
  face.dtype = static_cast<bw_dtype>(tensor.dtype());
  face.kind = static_cast<bw_kind>(tensor.kind());
  face.ndim = tensor.shape()->size();
  std::copy(tensor.shape()->begin(), tensor.shape()->end(), face.shape);
  if (tensor.kind() == FieldKind::independent) {
    face.row_lengths = tensor.lengths()->data();
  } else if (tensor.kind() != FieldKind::scalar) {
    face.row_lengths = batch.lengths()->data();
  }
  return face;
}

/// What a live feed says of its rows, whose lists verify_batch() has looked at.
void show_live(bw_batch_header& header, const wire::LiveRows& live) {
  header.versions = live.versions()->data();
  header.versions_newest = live.versions_newest()->data();
  header.groups = live.groups()->data();
  header.producers = live.producers()->data();
  header.numbers = live.numbers()->data();
  header.live_version = live.version();
  header.producer_count = live.producer_names()->size();
  header.zeroed = live.zeroed();
  if (live.epochs() != nullptr) header.epochs = live.epochs()->data();
}

bw_batch_header header_of(const wire::Batch& batch, std::uint64_t bytes) {
  bw_batch_header header{};
  header.feed = batch.feed()->c_str();
  header.fingerprint = to_c(from_wire(*batch.fingerprint()));
  header.epoch = batch.epoch();
  header.step = batch.step();
  header.index = batch.index();
  header.world = batch.world();
  header.layout = static_cast<bw_layout>(batch.layout());
  header.sequences = batch.batch_sequences();
  header.batch_length = batch.batch_length();
  header.frames = batch.batch_frames();
  header.step_sequences = batch.step_sequences();
  header.step_frames = batch.step_frames();
  header.loss_weight = batch.loss_weight();
  header.lengths = batch.lengths()->data();
  header.ordinals = batch.ordinals()->data();
  header.starts = batch.starts() != nullptr ? batch.starts()->data() : nullptr;
  header.flags = batch.flags() != nullptr ? batch.flags()->data() : nullptr;
  header.bytes = bytes;
  header.tensor_count = batch.tensors()->size();
  header.rows_lost = batch.rows_lost();
  if (batch.weights() != nullptr) header.weights = batch.weights()->data();
  if (batch.uses() != nullptr) header.uses = batch.uses()->data();
  if (batch.live() != nullptr) show_live(header, *batch.live());
  return header;
}

std::span<const std::byte> memory_of(const Payload& payload) {
  return payload.memory.empty() ? payload.bytes : payload.memory;
}

}  // namespace

Result<const wire::Batch*> checked_batch(const Payload& payload, const Ticket& ticket) {
  const auto bad = [&ticket](const std::string& what) {
    const std::string place =
        ticket.payload ? ", in a message"
                       : fmt::format(", at byte {} of arena {}", ticket.offset, ticket.arena.value);
    return Error{
        ErrorCode::malformed_message,
        fmt::format("batch {} of epoch {}{}: {}", ticket.index, ticket.epoch, place, what)};
  };
  const auto batch = verify_batch(payload.bytes);
  if (!batch) return bad(batch.error().message);
  if (const char* flaw = flaw_in(**batch, payload); flaw != nullptr) return bad(flaw);
  if ((*batch)->epoch() != ticket.epoch || (*batch)->step() != ticket.step ||
      (*batch)->index() != ticket.index) {
    return bad("another batch lies there");
  }
  return *batch;
}

}  // namespace batchwright

bw_batch::bw_batch(batchwright::Payload payload_, const batchwright::Ticket& ticket,
                   const batchwright::wire::Batch& bytes)
    : payload(std::move(payload_)),
      content(&bytes),
      header(batchwright::header_of(bytes, ticket.size)) {
  header.rehearsal = ticket.rehearsal ? 1 : 0;
  header.attempt = ticket.attempt;
  header.shared = payload.shared ? 1 : 0;
  const auto memory = batchwright::memory_of(payload);
  header.memory = memory.data();
  header.memory_bytes = memory.size();
  for (const auto* tensor : *bytes.tensors()) {
    tensors.push_back(batchwright::tensor_of(bytes, *tensor));
  }
  if (payload.shared) {
    shown = batchwright::FaultTable::of_process().add(payload.bytes, bytes.feed()->string_view(),
                                                      ticket.epoch, ticket.step, ticket.index);
  }
}
