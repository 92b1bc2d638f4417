#include "tests/integration/seen.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "tests/support/full_dataset.h"

namespace batchwright::test {
namespace {

/// Compares all elements of a tensor with `expect(row, frame, dim)`, which gives padding too.
template <class T, class Expect>
void check_tensor(const bw_batch* batch, const char* name, std::uint64_t frames,
                  const Expect& expect) {
  const bw_batch_header& header = *bw_batch_get_header(batch);
  const bw_tensor* tensor = bw_batch_tensor_named(batch, name);
  REQUIRE_MESSAGE(tensor != nullptr, name);
  const std::uint64_t rows = header.sequences;
  if (tensor->kind != BW_SCALAR) {
    const bool time_major = header.layout == BW_TIME_MAJOR;
    REQUIRE(tensor->shape[time_major ? 1 : 0] == rows);
    REQUIRE(tensor->shape[time_major ? 0 : 1] == frames);
  }
  const std::uint64_t elements = tensor->bytes / sizeof(T);
  const std::uint64_t dims = rows * frames == 0 ? 0 : elements / (rows * frames);
  REQUIRE(tensor->bytes == rows * frames * dims * sizeof(T));
  const auto* values = static_cast<const T*>(tensor->data);
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < elements; ++i) {
    const std::uint64_t place = i / dims;
    const bool frames_first = header.layout == BW_TIME_MAJOR && tensor->kind != BW_SCALAR;
    const std::uint64_t row = frames_first ? place % rows : place / frames;
    const std::uint64_t frame = frames_first ? place / rows : place % frames;
    wrong += values[i] != expect(row, frame, i % dims);
  }
  CHECK_MESSAGE(wrong == 0, name, " of batch ", header.index);
}

/// Keys, lengths and sums of a batch against its rows.
void check_header(const bw_batch* batch, const std::vector<SeenRow>& rows) {
  const bw_batch_header& header = *bw_batch_get_header(batch);
  std::uint64_t frames = 0;
  std::uint32_t longest = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string key = rows[i].length == 0 ? "" : "seq-" + std::to_string(rows[i].ordinal);
    CHECK(bw_batch_key(batch, i, nullptr) == key);
    frames += rows[i].length;
    longest = std::max(longest, rows[i].length);
  }
  CHECK(header.batch_length == longest);
  CHECK(header.frames == frames);
  const double weight = static_cast<double>(frames * header.world);
  CHECK(header.loss_weight == doctest::Approx(weight / static_cast<double>(header.step_frames)));
}

}  // namespace

SeenBatch seen(const bw_batch* batch) {
  const bw_batch_header& header = *bw_batch_get_header(batch);
  SeenBatch kept{header.epoch, header.step, header.index, {}};
  for (std::size_t i = 0; i < header.sequences; ++i) {
    const std::uint8_t flags = header.flags == nullptr ? 3 : header.flags[i];
    kept.rows.push_back({header.ordinals[i], header.starts == nullptr ? 0 : header.starts[i],
                         header.lengths[i], (flags & 1) != 0, (flags & 2) != 0});
  }
  return kept;
}

void subscribe(Trainer& trainer, const Wish& wish) {
  trainer.subscribe([&wish](bw_subscribe_options& options) {
    options.epochs = wish.epochs;
    options.epoch = wish.epoch;
    options.step = wish.step;
    if (wish.ranks == 0) return;
    options.mode = BW_SHARDED;
    options.rank = wish.rank;
    options.ranks = wish.ranks;
  });
}

std::vector<SeenBatch> take(const std::string& endpoint, const Wish& wish, const Look& look) {
  Trainer trainer(endpoint);
  subscribe(trainer, wish);
  std::vector<SeenBatch> batches;
  bw_status status = BW_OK;
  while ((status = trainer.next()) == BW_OK) {
    if (look) look(trainer.batch());
    batches.push_back(seen(trainer.batch()));
  }
  if (status != BW_END) throw std::runtime_error(bw_error_message());
  return batches;
}

std::vector<SeenBatch> take_job(const std::vector<std::string>& endpoints, const Wish& wish,
                                std::uint64_t steps) {
  std::vector<std::unique_ptr<Trainer>> ranks;
  for (std::int32_t rank = 0; rank < wish.ranks; ++rank) {
    Wish own = wish;
    own.rank = rank;
    ranks.push_back(
        std::make_unique<Trainer>(endpoints[static_cast<std::size_t>(rank) % endpoints.size()]));
    subscribe(*ranks.back(), own);
  }
  std::vector<SeenBatch> batches;
  for (std::uint64_t step = 0; step < steps; ++step) {
    std::size_t ended = 0;
    for (const auto& trainer : ranks) {
      for (std::uint32_t i = 0; i < trainer->grant().batches_per_step; ++i) {
        const bw_status status = trainer->next();
        if (status > BW_OK) throw std::runtime_error(bw_error_message());
        if (status == BW_OK) batches.push_back(seen(trainer->batch()));
        if (status == BW_END) {
          ++ended;
          break;
        }
      }
    }
    if (ended == ranks.size()) break;
    if (ended != 0) throw std::runtime_error("some ranks have fewer steps than others");
  }
  return batches;
}

void check_full_batch(const bw_batch* batch) {
  const std::vector<SeenRow> rows = seen(batch).rows;
  check_header(batch, rows);
  const std::uint32_t length = bw_batch_get_header(batch)->batch_length;
  check_tensor<float>(batch, "features", length, [&rows](auto row, auto frame, auto dim) {
    const SeenRow& r = rows[row];
    return frame < r.length ? small_value(r.ordinal, r.start + frame, dim) : 0.0F;
  });
  check_tensor<std::int32_t>(batch, "targets", length, [&rows](auto row, auto frame, auto dim) {
    const SeenRow& r = rows[row];
    return frame < r.length ? target_value(r.ordinal, r.start + frame, dim) : 0;
  });
  // A row of length 0 is of no sequence.
  const auto tokens_of = [](const SeenRow& r) {
    return r.length == 0 ? 0 : token_count(r.ordinal);
  };
  std::uint32_t most = 0;
  for (const SeenRow& row : rows) most = std::max(most, tokens_of(row));
  const auto token = [&](auto row, auto place, auto) {
    const bool real = place < tokens_of(rows[row]);
    return real ? token_value(rows[row].ordinal, place) : std::int16_t{0};
  };
  check_tensor<std::int16_t>(batch, "tokens", most, token);
  const std::uint32_t* counts = bw_batch_tensor_named(batch, "tokens")->row_lengths;
  for (std::size_t i = 0; i < rows.size(); ++i) CHECK(counts[i] == tokens_of(rows[i]));
  check_tensor<std::int64_t>(batch, "speaker", 1, [&rows](auto row, auto, auto) {
    return rows[row].length == 0 ? 0 : speaker_value(rows[row].ordinal);
  });
}

std::vector<std::uint64_t> sorted_ordinals(const std::vector<SeenBatch>& batches) {
  std::vector<std::uint64_t> ordinals;
  for (const SeenBatch& batch : batches) {
    for (const SeenRow& row : batch.rows) ordinals.push_back(row.ordinal);
  }
  std::sort(ordinals.begin(), ordinals.end());
  return ordinals;
}

}  // namespace batchwright::test
