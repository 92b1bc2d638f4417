#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "batch_generated.h"
#include "formats/ids.h"
#include "formats/schema.h"

namespace batchwright {

/// Every tensor starts at a multiple of this, in the arena and in a remote client's copy alike.
inline constexpr std::size_t kTensorAlignment = 64;

/// FlatBuffers' own limit on one buffer, and so on one batch.
inline constexpr std::size_t kMaxBatchBytes = (std::size_t{1} << 31) - kTensorAlignment;

/// Bits of Batch.flags.
inline constexpr std::uint8_t kRowReset = 1;  ///< The row starts its sequence: reset the state.
inline constexpr std::uint8_t kRowLast = 2;   ///< The row ends its sequence.

/// One tensor that a batch will hold.
struct TensorSpec {
  const FieldSpec* field = nullptr;            ///< Name, kind, dtype. Outlives the call.
  std::vector<std::uint64_t> shape;            ///< Shape as laid out, rows included.
  std::span<const std::uint32_t> row_lengths;  ///< Per row; for an independent field only.
};

/// Bytes of a tensor's payload. In 64 bits on every machine: it may be more than an address holds.
std::uint64_t payload_bytes(const TensorSpec& tensor);

/// A producer's name has 1 to so many bytes.
inline constexpr std::size_t kMostNameBytes = 64;

/// What a live feed says of a batch's rows, one entry each, in the order of the rows.
struct LiveRows {
  std::uint64_t version = 0;  ///< That was announced last when the step was cut.
  std::vector<std::uint64_t> versions;
  std::vector<std::uint64_t> versions_newest;
  std::vector<std::uint64_t> groups;     ///< kNoGroup: the row is in none.
  std::vector<std::uint32_t> producers;  ///< Places in `names`.
  std::vector<std::uint64_t> numbers;
  std::vector<std::string> names;     ///< Of producers.
  std::uint32_t zeroed = 0;           ///< Rows of weight 0, since they are stale.
  std::vector<std::uint64_t> epochs;  ///< Of the plans they were forwarded from; empty: all 0.
};

/// All that a batch says beside its payload. What it points to outlives the call.
struct BatchSpec {
  std::string_view feed;
  Epoch epoch;
  Step step;
  BatchIndex index;
  std::uint32_t world = 1;
  Fingerprint fingerprint;
  Layout layout = Layout::batch_major;
  std::uint32_t batch_length = 0;
  std::span<const std::uint64_t> ordinals;
  std::span<const std::string_view> keys;
  std::span<const std::uint32_t> lengths;
  std::span<const std::uint32_t> starts;  ///< Empty: all zero.
  std::span<const std::uint8_t> flags;    ///< Empty: whole sequences.
  std::uint64_t batch_frames = 0;
  std::uint32_t step_sequences = 0;
  std::uint64_t step_frames = 0;
  std::vector<TensorSpec> tensors;
  std::uint32_t rows_lost = 0;     ///< Planned rows whose record is corrupt.
  const LiveRows* live = nullptr;  ///< Null: the feed has a dataset.
  std::span<const float> weights;  ///< Of the rows; empty: all are 1.
  /// How often the rows came before in the epoch; empty: never.
  std::span<const std::uint32_t> uses;
};

/// Weight of a batch's mean loss per frame, so that the mean of weighted losses over the batches
/// of a global step is the step's true mean per frame: batch_frames * world / step_frames.
double loss_weight(std::uint64_t batch_frames, std::uint64_t step_frames, std::uint32_t world);

/// Figures a slot's size follows from.
struct BatchBound {
  std::uint64_t rows = 0;
  std::uint64_t key_bytes = 0;      ///< Bytes of all keys together.
  std::uint64_t payload_bytes = 0;  ///< Bytes of all tensors together, unpadded.
  std::uint64_t tensors = 0;
  std::uint64_t name_bytes = 0;  ///< Bytes of the feed's and all tensors' names.
  bool live = false;             ///< The rows have what a live feed says of them.
};

/// Bytes that surely hold a batch of these figures; a multiple of kTensorAlignment. It exceeds
/// the true size by at most 4 KiB and some bytes a row and tensor.
std::uint64_t batch_bytes_bound(const BatchBound& bound);

/// The same bound for a batch whose spec is at hand.
std::uint64_t batch_bytes_bound(const BatchSpec& spec);

/// A batch whose FlatBuffer is finished except for the tensors' payload.
struct LaidOutBatch {
  std::size_t offset = 0;  ///< Place of its first byte in the slot; a multiple of kTensorAlignment.
  std::size_t size = 0;    ///< Bytes of the FlatBuffer.
  std::vector<std::span<std::byte>>
      payloads;  ///< Payload of each tensor in the slot, uninitialised.
};

/// Lays the finished FlatBuffer (batch.fbs) into `slot`, whose start and size are multiples of
/// kTensorAlignment. Payload bytes are not written: that is the caller's one copy.
/// Errors: does_not_fit, with the bytes needed.
Result<LaidOutBatch> lay_out_batch(const BatchSpec& spec, std::span<std::byte> slot);

/// A verified batch, read in place.
/// Errors: malformed_message. Reads nothing outside `bytes`, whose start is a multiple of 8.
Result<const wire::Batch*> verify_batch(std::span<const std::byte> bytes);

}  // namespace batchwright
