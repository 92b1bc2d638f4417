#include "formats/batch.h"

#include <fmt/core.h>

#include <cstdlib>

#include "formats/aligned_copy.h"
#include "formats/control.h"

namespace batchwright {
namespace {

static_assert(FLATBUFFERS_MAX_ALIGNMENT >= kTensorAlignment,
              "every file is compiled with FLATBUFFERS_MAX_ALIGNMENT=64");

/// Gives a builder the slot and nothing else. The builder lays bytes from the slot's end
/// downwards, so alignment counts from there; its scratch space grows from the slot's start.
class SlotAllocator final : public flatbuffers::Allocator {
 public:
  explicit SlotAllocator(std::span<std::byte> slot) : slot_(slot) {}

  std::uint8_t* allocate(std::size_t size) override {
    // A second call would mean that batch_bytes_bound() is wrong, which is our own bug.
    if (taken_ || size > slot_.size()) std::abort();
    taken_ = true;
    return reinterpret_cast<std::uint8_t*>(slot_.data());
  }
  void deallocate(std::uint8_t*, std::size_t) override {}

 private:
  std::span<std::byte> slot_;
  bool taken_ = false;
};

using Builder = flatbuffers::FlatBufferBuilder;

/// Adds a tensor, whose bytes the caller fills in later: `payload` is their place in the slot.
flatbuffers::Offset<wire::Tensor> lay_out_tensor(Builder& builder, const TensorSpec& tensor,
                                                 std::span<std::byte>& payload) {
  const auto bytes = static_cast<std::size_t>(payload_bytes(tensor));  // the slot has them
  std::uint8_t* start = nullptr;
  // Alignment counts from the buffer's end, which the builder keeps at the end of the slot.
  builder.ForceVectorAlignment(bytes, 1, kTensorAlignment);
  if (bytes == 0) builder.Align(kTensorAlignment);  // FlatBuffers forces nothing for an empty one
  const auto data = builder.CreateUninitializedVector<std::uint8_t>(bytes, &start);
  payload = {reinterpret_cast<std::byte*>(start), bytes};
  // All other kinds have the lengths of the batch's rows.
  const auto lengths =
      tensor.field->kind == FieldKind::independent
          ? builder.CreateVector(tensor.row_lengths.data(), tensor.row_lengths.size())
          : flatbuffers::Offset<flatbuffers::Vector<std::uint32_t>>();
  return wire::CreateTensor(builder, builder.CreateString(tensor.field->name), tensor.field->kind,
                            tensor.field->dtype, builder.CreateVector(tensor.shape), data, lengths);
}

template <class T>
flatbuffers::Offset<flatbuffers::Vector<T>> optional_vector(Builder& builder,
                                                            std::span<const T> values) {
  if (values.empty()) return {};
  return builder.CreateVector(values.data(), values.size());
}

flatbuffers::Offset<wire::LiveRows> lay_out_live(Builder& builder, const LiveRows* live) {
  if (live == nullptr) return {};
  const auto epochs = optional_vector(builder, std::span(live->epochs));
  return wire::CreateLiveRows(
      builder, live->version, builder.CreateVector(live->versions),
      builder.CreateVector(live->versions_newest), builder.CreateVector(live->groups),
      builder.CreateVector(live->producers), builder.CreateVector(live->numbers),
      builder.CreateVectorOfStrings(live->names), live->zeroed, epochs);
}

/// Adds all but the tensors. Names and lists come before the table: FlatBuffers nests nothing.
void lay_out_header(Builder& builder, const BatchSpec& spec,
                    const std::vector<flatbuffers::Offset<wire::Tensor>>& tensors) {
  std::vector<flatbuffers::Offset<flatbuffers::String>> keys;
  keys.reserve(spec.keys.size());
  for (const std::string_view key : spec.keys) {
    keys.push_back(builder.CreateString(key.data(), key.size()));
  }
  const wire::Fingerprint fingerprint = to_wire(spec.fingerprint);
  const auto live = lay_out_live(builder, spec.live);
  const auto rows = static_cast<std::uint32_t>(spec.lengths.size());
  wire::FinishBatchBuffer(
      builder,
      wire::CreateBatch(
          builder, builder.CreateString(spec.feed.data(), spec.feed.size()), spec.epoch.value,
          spec.step.value, spec.index.value, spec.world, &fingerprint, spec.layout,
          spec.batch_length, builder.CreateVector(spec.ordinals.data(), spec.ordinals.size()),
          builder.CreateVector(keys),
          builder.CreateVector(spec.lengths.data(), spec.lengths.size()),
          optional_vector(builder, spec.starts), optional_vector(builder, spec.flags),
          builder.CreateVector(tensors), rows, spec.batch_frames, spec.step_sequences,
          spec.step_frames, loss_weight(spec.batch_frames, spec.step_frames, spec.world),
          spec.rows_lost, live, optional_vector(builder, spec.weights),
          optional_vector(builder, spec.uses)));
}

/// Null: there is none.
const char* flaw_of_live(const wire::LiveRows* live, std::size_t rows) {
  if (live == nullptr) return nullptr;
  for (const auto* numbers : {live->versions(), live->versions_newest(), live->groups(),
                              live->numbers(), live->epochs()}) {
    if (numbers == nullptr) continue;
    if (!is_aligned(numbers)) return "what it says of live rows is not aligned";
    if (numbers->size() != rows) return "what it says of live rows does not agree";
  }
  if (live->producers()->size() != rows) return "what it says of live rows does not agree";
  for (const std::uint32_t producer : *live->producers()) {
    if (producer >= live->producer_names()->size()) return "a row is of a producer without a name";
  }
  return nullptr;
}

}  // namespace

std::uint64_t payload_bytes(const TensorSpec& tensor) {
  std::uint64_t bytes = dtype_bytes(tensor.field->dtype);
  for (const std::uint64_t extent : tensor.shape) bytes *= extent;
  return bytes;
}

double loss_weight(std::uint64_t batch_frames, std::uint64_t step_frames, std::uint32_t world) {
  if (step_frames == 0) return 0.0;
  return static_cast<double>(batch_frames) * world / static_cast<double>(step_frames);
}

std::uint64_t batch_bytes_bound(const BatchBound& bound) {
  // A row: ordinal 8, key offset 4, key length 4, terminator and padding 8, length, start, weight,
  // use and U of each tensor 4, flag 1. A tensor: table, vtable, shape, name and alignment.
  const std::uint64_t rows = bound.rows * (44 + 4 * bound.tensors) + bound.key_bytes;
  const std::uint64_t tensors = bound.tensors * 320 + bound.name_bytes;
  // A row of a live feed: five numbers of 8 bytes, one of 4, and at worst a producer's name with
  // its offset, length, terminator and padding.
  const std::uint64_t live = bound.live ? 512 + bound.rows * (60 + kMostNameBytes) : 0;
  const std::uint64_t bytes = bound.payload_bytes + rows + tensors + live + 2048;
  return (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

std::uint64_t batch_bytes_bound(const BatchSpec& spec) {
  BatchBound bound{spec.lengths.size(), 0, 0, spec.tensors.size(), spec.feed.size()};
  for (const std::string_view key : spec.keys) bound.key_bytes += key.size();
  for (const TensorSpec& tensor : spec.tensors) {
    bound.payload_bytes += payload_bytes(tensor);
    bound.name_bytes += tensor.field->name.size();
  }
  bound.live = spec.live != nullptr;
  return batch_bytes_bound(bound);
}

Result<LaidOutBatch> lay_out_batch(const BatchSpec& spec, std::span<std::byte> slot) {
  // Asked first: a builder that runs out of room asks SlotAllocator again, and that aborts.
  const std::uint64_t needed = batch_bytes_bound(spec);
  if (needed > slot.size() || needed > kMaxBatchBytes) {
    return Error{ErrorCode::does_not_fit,
                 fmt::format("a batch needs {} bytes, the slot has {} and the format allows {}",
                             needed, slot.size(), kMaxBatchBytes)};
  }
  SlotAllocator allocator(slot);
  Builder builder(slot.size(), &allocator, false, kTensorAlignment);
  LaidOutBatch laid_out;
  laid_out.payloads.resize(spec.tensors.size());
  std::vector<flatbuffers::Offset<wire::Tensor>> tensors;
  // Payloads come first, so they lie at the slot's end; names, keys and tables lie below them.
  for (std::size_t i = 0; i < spec.tensors.size(); ++i) {
    tensors.push_back(lay_out_tensor(builder, spec.tensors[i], laid_out.payloads[i]));
  }
  lay_out_header(builder, spec, tensors);
  const auto* start = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  laid_out.offset = static_cast<std::size_t>(start - slot.data());
  laid_out.size = builder.GetSize();
  return laid_out;
}

Result<const wire::Batch*> verify_batch(std::span<const std::byte> bytes) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const auto bad = [](const std::string& what) {
    return Error{ErrorCode::malformed_message, fmt::format("batch: {}", what)};
  };
  // 64-bit numbers are read in place: a frame at any other address has to be copied first.
  if (reinterpret_cast<std::uintptr_t>(data) % 8 != 0) return bad("not 8-byte aligned");
  flatbuffers::Verifier verifier(data, bytes.size(), 64, 1'000'000'000);
  if (!wire::VerifyBatchBuffer(verifier)) return bad("not a batch");
  const wire::Batch* batch = wire::GetBatch(data);
  // The verifier has checked each list by itself; that they belong together is checked here.
  const std::size_t rows = batch->lengths()->size();
  if (!is_aligned(batch->ordinals())) return bad("its ordinals are not aligned");
  if (batch->ordinals()->size() != rows || batch->keys()->size() != rows) {
    return bad("its rows do not agree");
  }
  if (const char* flaw = flaw_of_live(batch->live(), rows)) return bad(flaw);
  if (batch->weights() != nullptr && batch->weights()->size() != rows) {
    return bad("its weights do not agree");
  }
  if (batch->uses() != nullptr && batch->uses()->size() != rows) {
    return bad("its uses do not agree");
  }
  for (const wire::Tensor* tensor : *batch->tensors()) {
    if (!is_aligned(tensor->shape())) return bad("a shape is not aligned");
    std::size_t size = dtype_bytes(tensor->dtype());
    for (const std::uint64_t extent : *tensor->shape()) {
      // A product that wraps around could agree with a short payload.
      if (__builtin_mul_overflow(size, extent, &size)) return bad("a shape overflows");
    }
    if (size == 0 && tensor->data()->size() != 0) return bad("an unknown dtype");
    if (size != tensor->data()->size()) return bad("a payload does not fit its shape");
    if (tensor->kind() == FieldKind::independent &&
        (tensor->lengths() == nullptr || tensor->lengths()->size() != rows)) {
      return bad("the lengths of an independent field are missing");
    }
  }
  return batch;
}

}  // namespace batchwright
