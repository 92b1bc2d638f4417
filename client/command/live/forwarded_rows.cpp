#include "client/command/live/forwarded_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "client/command/plan/real_bytes.h"
#include "client/command/watch/feeds.h"

namespace batchwright {
namespace {

bool is_same(const bw_field& have, const bw_field& wanted) {
  return std::string_view(have.name) == wanted.name && have.kind == wanted.kind &&
         have.dtype == wanted.dtype && have.ndim == wanted.ndim &&
         std::equal(have.shape, have.shape + have.ndim, wanted.shape);
}

}  // namespace

ForwardedRows::ForwardedRows(const bw_feed& from, const bw_feed& to) {
  const auto* const begin = from.fields;
  const auto* const end = begin + from.field_count;
  for (std::size_t i = 0; i < to.field_count; ++i) {
    const bw_field& wanted = *to.fields[i];
    if (std::none_of(begin, end, [&](const bw_field* have) { return is_same(*have, wanted); })) {
      std::vector<std::string> all;
      std::transform(begin, end, std::back_inserter(all),
                     [](const bw_field* have) { return field_text(*have); });
      throw client::Error(BW_SCHEMA_MISMATCH,
                          fmt::format("feed \"{}\" takes {}; feed \"{}\" has {}", to.name,
                                      field_text(wanted), from.name, fmt::join(all, "; ")));
    }
    fields_.emplace_back(wanted.name);
  }
  gathered_.resize(fields_.size());
}

void ForwardedRows::take(const client::Batch& batch) {
  batch_ = &batch;
  rows_ = batch.header().sequences;
  values_.assign(rows_ * fields_.size(), {});
  const auto lengths = batch.lengths();
  const auto empty = std::find(lengths.begin(), lengths.end(), 0U);
  if (empty != lengths.end()) {
    throw client::Error(
        BW_UNSUPPORTED,
        fmt::format("row {} of epoch {}, batch {} has no frames, as lanes that ran out and parts "
                    "of corrupt records have none: forward a feed of whole sequences",
                    empty - lengths.begin(), batch.header().epoch, batch.header().index));
  }
  for (std::size_t i = 0; i < fields_.size(); ++i) take_field(batch, i);
}

void ForwardedRows::take_field(const client::Batch& batch, std::size_t field) {
  const client::Tensor tensor = batch[fields_[field].c_str()];
  const auto value = [&](std::size_t row) -> bw_value& {
    return values_[row * fields_.size() + field];
  };
  if (rows_ == 0) return;
  if (tensor.kind() == BW_SCALAR) {
    const std::size_t each = tensor.bytes().size() / rows_;
    for (std::size_t row = 0; row < rows_; ++row) {
      value(row) = {tensor.bytes().data() + row * each, each, 1};
    }
    return;
  }
  const std::uint32_t* const lengths = tensor.raw().row_lengths;
  const std::uint64_t cells = tensor.shape()[0] * tensor.shape()[1];
  const std::size_t frame = cells == 0 ? 0 : tensor.bytes().size() / cells;
  const std::byte* from = tensor.bytes().data();
  std::size_t stride = cells == 0 ? 0 : tensor.bytes().size() / rows_;
  if (batch.header().layout == BW_TIME_MAJOR) {
    // Frames of a row lie apart: they are brought together.
    std::vector<std::byte>& gathered = gathered_[field];
    gathered.clear();
    visit_real(batch, tensor, [&gathered](std::span<const std::byte> part) {
      gathered.insert(gathered.end(), part.begin(), part.end());
    });
    from = gathered.data();
    stride = 0;
  }
  for (std::size_t row = 0; row < rows_; ++row) {
    const std::size_t bytes = lengths[row] * frame;
    value(row) = {from, bytes, lengths[row]};
    from += stride != 0 ? stride : bytes;
  }
}

bw_sequence ForwardedRows::sequence(std::size_t row) const {
  const std::string_view key = batch_->key(row);
  return {key.data(), key.size(), values_.data() + row * fields_.size(), fields_.size()};
}

float ForwardedRows::weight(std::size_t row) const {
  const auto weights = batch_->weights();
  return weights.empty() ? 1.0F : weights[row];
}

std::uint64_t ForwardedRows::bytes(std::size_t row) const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    sum += values_[row * fields_.size() + i].bytes;
  }
  return sum;
}

}  // namespace batchwright
