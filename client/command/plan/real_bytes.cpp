#include "client/command/plan/real_bytes.h"

#include <algorithm>
#include <numeric>

#include "storage/dataset/dataset.h"

namespace batchwright {
namespace {

/// Bytes of one frame of one row; of the whole value for a scalar.
std::size_t frame_bytes_of(const client::Tensor& tensor) {
  const bool scalar = tensor.kind() == BW_SCALAR;
  // The first two dimensions are rows and time, in one order or the other; a scalar has no time.
  const auto inner =
      tensor.shape().subspan(std::min<std::size_t>(scalar ? 1 : 2, tensor.shape().size()));
  return std::accumulate(inner.begin(), inner.end(), bw_dtype_bytes(tensor.dtype()),
                         std::multiplies<std::size_t>());
}

}  // namespace

void visit_real(const client::Batch& batch, const client::Tensor& tensor,
                const std::function<void(std::span<const std::byte>)>& visit) {
  const auto bytes = tensor.bytes();
  const auto shape = tensor.shape();
  const std::size_t rows = batch.header().sequences;
  const std::size_t frame = frame_bytes_of(tensor);
  // Scalars lie side by side in either layout, and have no padding between them.
  if (tensor.kind() == BW_SCALAR) return visit(bytes.first(rows * frame));
  const std::uint32_t* lengths = tensor.raw().row_lengths;
  const bool time_major = batch.header().layout == BW_TIME_MAJOR;
  for (std::size_t b = 0; b < rows; ++b) {
    // Row after row, a row's frames lie in one piece; in time-major they lie a step apart.
    if (!time_major) {
      visit(bytes.subspan(b * shape[1] * frame, lengths[b] * frame));
      continue;
    }
    for (std::size_t t = 0; t < lengths[b]; ++t) {
      visit(bytes.subspan((t * shape[1] + b) * frame, frame));
    }
  }
}

std::uint64_t real_bytes(const client::Batch& batch) {
  std::uint64_t bytes = 0;
  const std::size_t rows = batch.header().sequences;
  for (std::size_t i = 0; i < batch.tensors(); ++i) {
    const client::Tensor tensor = batch[i];
    const std::uint32_t* lengths = tensor.raw().row_lengths;
    // A scalar has no lengths, and one value a row.
    const std::uint64_t frames =
        lengths == nullptr ? rows : std::accumulate(lengths, lengths + rows, std::uint64_t{0});
    bytes += frames * frame_bytes_of(tensor);
  }
  return bytes;
}

std::uint32_t checksum(const client::Batch& batch, const client::Tensor& tensor) {
  // Carried from piece to piece, so both layouts of a batch have the same checksum.
  std::uint32_t crc = 0;
  visit_real(batch, tensor, [&crc](std::span<const std::byte> part) { crc = crc32c(part, crc); });
  return crc;
}

}  // namespace batchwright
