#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "client/library/batchwright/client.hpp"

namespace batchwright {

/// Calls `visit` with the bytes of the tensor's real frames, row after row, in as few pieces as
/// its layout allows. Padding is left out.
void visit_real(const client::Batch& batch, const client::Tensor& tensor,
                const std::function<void(std::span<const std::byte>)>& visit);

/// Bytes of the real frames of all tensors. Reads lengths only, no payload.
std::uint64_t real_bytes(const client::Batch& batch);

/// CRC-32C of the tensor's real frames, row after row.
std::uint32_t checksum(const client::Batch& batch, const client::Tensor& tensor);

}  // namespace batchwright
