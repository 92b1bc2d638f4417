// A batch as it lies in the arena: checked as the client checks it, then read through the C ABI's
// structs as a trainer reads it.

#include "client/library/memory/batch.h"
#include "formats/formats.h"
#include "tests/fuzz/fuzz.h"

using namespace batchwright;
using namespace batchwright::fuzz;

namespace {

template <class T>
void touch_rows(const T* values, std::size_t rows) {
  if (values != nullptr) touch(std::span(values, rows));
}

void read_as_trainer(const bw_batch& batch) {
  const std::size_t rows = batch.header.sequences;
  touch(std::string_view(batch.header.feed));
  touch_rows(batch.header.lengths, rows);
  touch_rows(batch.header.ordinals, rows);
  touch_rows(batch.header.starts, rows);
  touch_rows(batch.header.flags, rows);
  for (std::size_t row = 0; row < rows; ++row) {
    touch(batch.content->keys()->Get(static_cast<flatbuffers::uoffset_t>(row))->string_view());
  }
  for (const bw_tensor& tensor : batch.tensors) {
    touch(std::string_view(tensor.name));
    touch(std::span(static_cast<const std::byte*>(tensor.data), tensor.bytes));
    touch_rows(tensor.row_lengths, rows);
    std::uint64_t bytes = dtype_bytes(static_cast<DType>(tensor.dtype));
    for (const std::uint64_t extent : std::span(tensor.shape, tensor.ndim)) bytes *= extent;
    require(bytes == tensor.bytes, "a tensor has the bytes of its shape");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = std::make_shared<AlignedInput>(std::as_bytes(std::span(data, size)));
  const Payload payload{input, input->bytes()};
  const auto batch = verify_batch(payload.bytes);
  Ticket ticket;
  ticket.size = size;
  if (batch) {
    ticket.epoch = (*batch)->epoch();
    ticket.step = (*batch)->step();
    ticket.index = (*batch)->index();
  }
  const auto checked = checked_batch(payload, ticket);
  require(batch || !checked, "what is no batch is refused");
  if (checked) read_as_trainer(bw_batch(payload, ticket, **checked));
  ticket.index += 1;
  require(!checked_batch(payload, ticket), "another batch than the ticket's is refused");
  return 0;
}
