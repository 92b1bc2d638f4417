#include <doctest/doctest.h>

#include <array>
#include <cstring>

#include "formats/formats.h"

using namespace batchwright;

namespace {

/// A slot with the alignment of a page.
struct Slot {
  explicit Slot(std::size_t size) : storage(size + 4096), bytes(aligned(size)) {}
  std::span<std::byte> aligned(std::size_t size) {
    const auto address = reinterpret_cast<std::uintptr_t>(storage.data());
    return std::span(storage).subspan((4096 - address % 4096) % 4096, size);
  }
  std::vector<std::byte> storage;
  std::span<std::byte> bytes;
};

const FieldSpec kFeatures{"features", FieldKind::primary, DType::float32, {5}, {}};
const FieldSpec kTokens{"tokens", FieldKind::independent, DType::int32, {}, {}};
const FieldSpec kSpeaker{"speaker", FieldKind::scalar, DType::int64, {}, {}};

const std::array<std::uint64_t, 3> kOrdinals{7, 1, 4};
const std::array<std::string_view, 3> kKeys{"seven", "a/one", ""};
const std::array<std::uint32_t, 3> kLengths{11, 9, 10};
const std::array<std::uint32_t, 3> kTokenLengths{3, 0, 2};

BatchSpec three_rows() {
  BatchSpec spec;
  spec.feed = "train";
  spec.epoch = Epoch{3};
  spec.step = Step{58};
  spec.index = BatchIndex{117};
  spec.world = 2;
  spec.fingerprint = {1, 2, 3};
  spec.batch_length = 11;
  spec.ordinals = kOrdinals;
  spec.keys = kKeys;
  spec.lengths = kLengths;
  spec.batch_frames = 30;
  spec.step_sequences = 6;
  spec.step_frames = 80;
  spec.tensors = {
      {&kFeatures, {3, 11, 5}, {}}, {&kTokens, {3, 3}, kTokenLengths}, {&kSpeaker, {3}, {}}};
  return spec;
}

}  // namespace

TEST_CASE("formats: a laid out batch verifies and says what its spec says") {
  const BatchSpec spec = three_rows();
  Slot slot(batch_bytes_bound(spec));
  const auto laid_out = lay_out_batch(spec, slot.bytes);
  REQUIRE(laid_out);
  const auto batch = verify_batch(slot.bytes.subspan(laid_out->offset, laid_out->size));
  REQUIRE(batch);
  const wire::Batch& b = **batch;
  CHECK(b.feed()->str() == "train");
  CHECK(b.epoch() == 3);
  CHECK(b.step() == 58);
  CHECK(b.index() == 117);
  CHECK(b.fingerprint()->seed() == 3);
  CHECK(b.ordinals()->Get(0) == 7);
  CHECK(b.keys()->Get(1)->str() == "a/one");
  CHECK(b.lengths()->Get(2) == 10);
  CHECK(b.batch_sequences() == 3);
  CHECK(b.loss_weight() == doctest::Approx(30.0 * 2 / 80));
  CHECK(b.tensors()->Get(1)->lengths()->Get(2) == 2);
  CHECK(b.uses() == nullptr);
}

TEST_CASE("formats: a batch says how often its rows came before") {
  BatchSpec spec = three_rows();
  const std::array<std::uint32_t, 3> uses{0, 2, 1};
  spec.uses = uses;
  Slot slot(batch_bytes_bound(spec));
  const auto laid_out = lay_out_batch(spec, slot.bytes);
  REQUIRE(laid_out);
  const auto batch = verify_batch(slot.bytes.subspan(laid_out->offset, laid_out->size));
  REQUIRE(batch);
  CHECK((*batch)->uses()->Get(1) == 2);
  spec.uses = std::span(uses).first(2);
  Slot other(batch_bytes_bound(spec));
  const auto torn = lay_out_batch(spec, other.bytes);
  REQUIRE(torn);
  CHECK(verify_batch(other.bytes.subspan(torn->offset, torn->size)).error().message ==
        "batch: its uses do not agree");
}

TEST_CASE("formats: every tensor of a batch starts at a multiple of 64 bytes") {
  const BatchSpec spec = three_rows();
  Slot slot(batch_bytes_bound(spec) + 8192);
  const auto laid_out = lay_out_batch(spec, slot.bytes);
  REQUIRE(laid_out);
  CHECK(laid_out->offset % kTensorAlignment == 0);
  for (const auto payload : laid_out->payloads) {
    CHECK(reinterpret_cast<std::uintptr_t>(payload.data()) % kTensorAlignment == 0);
  }
}

TEST_CASE("formats: tensors without content are aligned like others") {
  BatchSpec spec = three_rows();
  const std::array<std::uint32_t, 3> nothing{0, 0, 0};
  spec.tensors = {{&kTokens, {3, 0}, nothing}, {&kSpeaker, {3}, {}}, {&kTokens, {3, 0}, nothing}};
  Slot slot(batch_bytes_bound(spec));
  const auto laid_out = lay_out_batch(spec, slot.bytes);
  REQUIRE(laid_out);
  CHECK(laid_out->offset % kTensorAlignment == 0);
  const auto batch = verify_batch(slot.bytes.subspan(laid_out->offset, laid_out->size));
  REQUIRE(batch);
  for (const wire::Tensor* tensor : *(*batch)->tensors()) {
    CHECK(reinterpret_cast<std::uintptr_t>(tensor->data()->data()) % kTensorAlignment == 0);
  }
}

TEST_CASE("formats: a batch of no rows is a batch") {
  BatchSpec spec = three_rows();
  spec.ordinals = {};
  spec.keys = {};
  spec.lengths = {};
  spec.tensors = {{&kFeatures, {0, 11, 5}, {}}};
  Slot slot(batch_bytes_bound(spec));
  const auto laid_out = lay_out_batch(spec, slot.bytes);
  REQUIRE(laid_out);
  CHECK(laid_out->offset % kTensorAlignment == 0);
  CHECK(verify_batch(slot.bytes.subspan(laid_out->offset, laid_out->size)));
}

TEST_CASE("formats: a payload written after the layout is what a reader sees") {
  const BatchSpec spec = three_rows();
  Slot slot(batch_bytes_bound(spec));
  const auto laid_out = lay_out_batch(spec, slot.bytes);
  REQUIRE(laid_out);
  std::memset(laid_out->payloads[0].data(), 0x5A, laid_out->payloads[0].size());
  const auto batch = verify_batch(slot.bytes.subspan(laid_out->offset, laid_out->size));
  REQUIRE(batch);
  const auto* data = (*batch)->tensors()->Get(0)->data();
  CHECK(data->size() == 3 * 11 * 5 * 4);
  CHECK(data->Get(data->size() - 1) == 0x5A);
}

TEST_CASE("formats: the bound holds for every number of rows and stays close") {
  for (const std::size_t rows : std::array<std::size_t, 6>{1, 2, 3, 7, 100, 4097}) {
    const std::vector<std::uint64_t> ordinals(rows, 1);
    const std::string key(rows % 40, 'k');
    const std::vector<std::string_view> keys(rows, key);
    const std::vector<std::uint32_t> lengths(rows, 2);
    BatchSpec spec = three_rows();
    spec.ordinals = ordinals;
    spec.keys = keys;
    spec.lengths = lengths;
    spec.starts = lengths;
    const std::vector<std::uint8_t> flags(rows, 3);
    spec.flags = flags;
    spec.tensors = {{&kFeatures, {rows, 2, 5}, {}}, {&kTokens, {rows, 2}, lengths}};
    Slot slot(batch_bytes_bound(spec));
    const auto laid_out = lay_out_batch(spec, slot.bytes);
    REQUIRE(laid_out);
    CHECK(slot.bytes.size() - laid_out->size < 4096 + rows * 24);
  }
}

TEST_CASE("formats: a batch that does not fit its slot is refused with the bytes needed") {
  const BatchSpec spec = three_rows();
  Slot slot(1024);
  const auto laid_out = lay_out_batch(spec, slot.bytes);
  REQUIRE_FALSE(laid_out);
  CHECK(laid_out.error().code == ErrorCode::does_not_fit);
  CHECK(laid_out.error().message.find(std::to_string(batch_bytes_bound(spec))) !=
        std::string::npos);
}

TEST_CASE("formats: a truncated batch never verifies") {
  const BatchSpec spec = three_rows();
  Slot slot(batch_bytes_bound(spec));
  const auto laid_out = lay_out_batch(spec, slot.bytes);
  REQUIRE(laid_out);
  const auto whole = slot.bytes.subspan(laid_out->offset, laid_out->size);
  for (std::size_t size = 0; size + 64 < whole.size(); size += 7) {
    // A copy of just these bytes, so that a sanitizer sees a read past them.
    std::vector<std::uint64_t> copy((size + 7) / 8);
    if (size != 0) std::memcpy(copy.data(), whole.data(), size);
    CHECK_FALSE(verify_batch({reinterpret_cast<const std::byte*>(copy.data()), size}));
  }
}
