#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "tests/assembly/snapshot.h"

using namespace batchwright;

namespace {

using Shape = std::vector<std::uint64_t>;

Assembled assemble(const EpochSource& source, const BatchStyle& style, std::uint64_t index = 0) {
  Assembled assembled;
  auto batch = assemble_batch(source, style, BatchIndex{index}, assembled.slot.bytes());
  REQUIRE(batch);
  assembled.figures = std::move(*batch);
  return assembled;
}

BatchStyle style(Layout layout, PaddingValues padding = {}) {
  return {"train", layout, std::move(padding), OnCorrupt::stop};
}

/// Frame `t` of row `r` of a tensor with `frames` frames a row.
std::span<const std::byte> frame(const wire::Batch& batch, unsigned tensor, std::size_t r,
                                 std::size_t t) {
  const Shape extents = shape(batch, tensor);
  const auto bytes = payload(batch, tensor);
  const std::size_t size = bytes.size() / (extents[0] * extents[1]);
  const bool time_major = batch.layout() == Layout::time_major;
  return bytes.subspan((time_major ? t * extents[1] + r : r * extents[1] + t) * size, size);
}

bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

template <class T>
bool holds(std::span<const std::byte> bytes, const std::vector<T>& values) {
  return same(bytes, std::as_bytes(std::span(values)));
}

bool all_are(std::span<const std::byte> bytes, std::byte value) {
  for (const std::byte byte : bytes) {
    if (byte != value) return false;
  }
  return true;
}

/// The one padding element of a batch of two rows, of 1 and 2 frames.
template <class T>
T padding_element(DType dtype, double value, Layout layout = Layout::batch_major) {
  const auto snapshot =
      std::make_shared<MadeUpSnapshot>(frames_only(dtype, {}), std::vector<std::uint32_t>{1, 2});
  const std::string field = snapshot->schema().fields.at(0).name;
  const Assembled assembled =
      assemble(*plan_of(snapshot, in_order(2)), style(layout, {{field, value}}));
  const wire::Batch& batch = assembled.batch();
  const std::size_t shorter = batch.lengths()->Get(0) == 1 ? 0 : 1;
  const auto bytes = frame(batch, 0, shorter, 1);
  REQUIRE(bytes.size() == sizeof(T));
  T element{};
  std::memcpy(&element, bytes.data(), sizeof(T));
  return element;
}

}  // namespace

TEST_CASE("assembly: rows hold their sequences, and zeros after them") {
  const auto snapshot = std::make_shared<MadeUpSnapshot>(frames_only(DType::float32, {5}),
                                                         std::vector<std::uint32_t>{4, 9, 1, 7});
  for (const Layout layout : {Layout::batch_major, Layout::time_major}) {
    const Assembled assembled = assemble(*plan_of(snapshot, in_order(4)), style(layout));
    const wire::Batch& batch = assembled.batch();
    CHECK(shape(batch, 0) == (layout == Layout::time_major ? Shape{9, 4, 5} : Shape{4, 9, 5}));
    for (unsigned r = 0; r < 4; ++r) {
      const auto content = snapshot->content(batch.ordinals()->Get(r), 0);
      for (std::size_t t = 0; t < 9; ++t) {
        const auto found = frame(batch, 0, r, t);
        const bool real = t < batch.lengths()->Get(r);
        CHECK((real ? same(found, content.subspan(t * 20, 20)) : all_are(found, std::byte{0})));
      }
    }
  }
}

TEST_CASE("assembly: a batch is as long as length_multiple has it, in all fields of frames") {
  const std::vector<std::uint32_t> lengths{4, 9, 1, 7};
  const auto snapshot = std::make_shared<MadeUpSnapshot>(all_kinds(), lengths);
  const auto narrow = std::make_shared<MadeUpSnapshot>(frames_only(DType::int16, {3}), lengths);
  PlanSettings settings = in_order(4);
  for (const auto& [multiple, length] :
       {std::pair{2U, 10U}, {3U, 9U}, {16U, 16U}, {1000U, 1000U}}) {
    settings.length_multiple = multiple;
    for (const Layout layout : {Layout::batch_major, Layout::time_major}) {
      const auto source = plan_of(narrow, settings);
      const Assembled assembled =
          assemble(*source, style(layout, {{narrow->schema().fields[0].name, -3.0}}));
      const wire::Batch& batch = assembled.batch();
      CHECK(batch.batch_length() == length);
      CHECK(assembled.figures.padded_frames == 4 * length);
      CHECK(assembled.figures.frames == 21);
      for (unsigned r = 0; r < 4; ++r) {
        const auto content = narrow->content(batch.ordinals()->Get(r), 0);
        for (std::size_t t = 0; t < length; ++t) {
          const auto found = frame(batch, 0, r, t);
          const bool real = t < batch.lengths()->Get(r);
          CHECK((real ? same(found, content.subspan(t * 6, 6))
                      : holds<std::int16_t>(found, {-3, -3, -3})));
        }
      }
      const Assembled all = assemble(*plan_of(snapshot, settings), style(layout));
      CHECK(all.batch().batch_length() == length);
    }
  }
}

TEST_CASE("assembly: time-major is batch-major with its first two axes exchanged") {
  // Frames of 1 to 8 bytes and those of whole cache lines have loops of their own.
  for (const std::uint32_t width : {1U, 2U, 3U, 4U, 8U, 63U, 64U, 65U, 80U, 320U, 40'000U}) {
    const auto snapshot = std::make_shared<MadeUpSnapshot>(frames_only(DType::uint8, {width}),
                                                           std::vector<std::uint32_t>{3, 1, 2, 3});
    const auto source = plan_of(snapshot, in_order(4));
    const PaddingValues padding{{snapshot->schema().fields.at(0).name, 9.0}};
    const Assembled by_row = assemble(*source, style(Layout::batch_major, padding));
    const Assembled by_time = assemble(*source, style(Layout::time_major, padding));
    const wire::Batch& a = by_row.batch();
    const wire::Batch& b = by_time.batch();
    CHECK(shape(b, 0) == Shape{3, 4, width});
    for (std::size_t r = 0; r < 4; ++r) {
      for (std::size_t t = 0; t < 3; ++t) CHECK(same(frame(a, 0, r, t), frame(b, 0, r, t)));
    }
  }
}

TEST_CASE("assembly: a long narrow batch has every sample in its place") {
  // Rows longer than what is streamed, which begin and end within cache lines.
  const auto snapshot = std::make_shared<MadeUpSnapshot>(
      frames_only(DType::int16, {}), std::vector<std::uint32_t>{70'000, 100'001, 65'535});
  for (const Layout layout : {Layout::batch_major, Layout::time_major}) {
    const Assembled assembled = assemble(*plan_of(snapshot, in_order(3)), style(layout));
    const wire::Batch& batch = assembled.batch();
    std::size_t wrong = 0;
    for (unsigned r = 0; r < 3; ++r) {
      const auto content = snapshot->content(batch.ordinals()->Get(r), 0);
      for (std::size_t t = 0; t < 100'001; ++t) {
        const auto found = frame(batch, 0, r, t);
        const bool real = t < batch.lengths()->Get(r);
        wrong += !(real ? same(found, content.subspan(t * 2, 2)) : all_are(found, std::byte{0}));
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("assembly: each kind of field has its own shape, lengths and padding") {
  const auto snapshot = std::make_shared<MadeUpSnapshot>(
      all_kinds(), std::vector<std::uint32_t>{2, 3}, std::vector<std::uint32_t>{4, 0});
  for (const Layout layout : {Layout::batch_major, Layout::time_major}) {
    const bool time_major = layout == Layout::time_major;
    const Assembled assembled =
        assemble(*plan_of(snapshot, in_order(2)),
                 style(layout, {{"features", -1.0}, {"targets", -100.0}, {"tokens", 1.0}}));
    const wire::Batch& batch = assembled.batch();
    CHECK(shape(batch, 0) == (time_major ? Shape{3, 2, 3} : Shape{2, 3, 3}));
    CHECK(shape(batch, 1) == (time_major ? Shape{3, 2} : Shape{2, 3}));
    CHECK(shape(batch, 2) == (time_major ? Shape{4, 2} : Shape{2, 4}));
    CHECK(shape(batch, 3) == Shape{2});
    const unsigned shorter = batch.ordinals()->Get(0) == 0 ? 0 : 1;
    const unsigned longer = 1 - shorter;
    CHECK(batch.tensors()->Get(2)->lengths()->Get(shorter) == 4);
    CHECK(batch.tensors()->Get(2)->lengths()->Get(longer) == 0);
    CHECK(holds<float>(frame(batch, 0, shorter, 2), {-1, -1, -1}));
    CHECK(holds<std::int16_t>(frame(batch, 1, shorter, 2), {-100}));
    for (std::size_t u = 0; u < 4; ++u) {
      CHECK(same(frame(batch, 2, shorter, u), snapshot->content(0, 2).subspan(u * 4, 4)));
      CHECK(holds<std::int32_t>(frame(batch, 2, longer, u), {1}));
    }
    CHECK(same(payload(batch, 3).subspan(shorter * 8, 8), snapshot->content(0, 3)));
    CHECK(same(payload(batch, 3).subspan(longer * 8, 8), snapshot->content(1, 3)));
  }
}

TEST_CASE("assembly: a field that the padding does not name gets 0") {
  const auto snapshot = std::make_shared<MadeUpSnapshot>(
      all_kinds(), std::vector<std::uint32_t>{2, 3}, std::vector<std::uint32_t>{1, 0});
  const Assembled assembled =
      assemble(*plan_of(snapshot, in_order(2)), style(Layout::batch_major, {{"targets", 7.0}}));
  const wire::Batch& batch = assembled.batch();
  const unsigned shorter = batch.ordinals()->Get(0) == 0 ? 0 : 1;
  CHECK(all_are(frame(batch, 0, shorter, 2), std::byte{0}));
  CHECK_FALSE(all_are(frame(batch, 1, shorter, 2), std::byte{0}));
  CHECK(all_are(frame(batch, 2, 1 - shorter, 0), std::byte{0}));
}

TEST_CASE("assembly: padding that a field cannot have is refused with what it can") {
  const auto refusal = [](const std::string& field, double value) {
    const auto checked = check_padding({{field, value}}, all_kinds());
    if (!checked) CHECK(checked.error().code == ErrorCode::bad_configuration);
    return checked ? std::string() : checked.error().message;
  };
  CHECK(refusal("features", -15.9).empty());
  CHECK(refusal("targets", -100).empty());
  CHECK(refusal("targets", 32767).empty());
  CHECK(refusal("tokens", -2147483648.0).empty());
  CHECK(refusal("targets", 32768) ==
        "padding.targets: found 32768; allowed: a whole number from -32768 to 32767, which int16 "
        "can hold");
  CHECK(refusal("targets", -0.5).find("found -0.5; allowed: a whole number") != std::string::npos);
  CHECK(refusal("features", 1e39).find("allowed: a number from -3.4") != std::string::npos);
  CHECK(refusal("features", std::nan("")).find("found nan") != std::string::npos);
  CHECK(refusal("speaker", 1) ==
        "padding.speaker: the field is a scalar, which has no padding; allowed: features targets "
        "tokens");
  CHECK(refusal("labels", 1) ==
        "padding.labels: the dataset has no such field; allowed: features targets tokens");
}

TEST_CASE("assembly: what check_padding() lets through is stored as it was written") {
  const auto passes = [](DType dtype, double value) {
    const Schema schema = frames_only(dtype, {});
    return check_padding({{schema.fields.at(0).name, value}}, schema).has_value();
  };
  CHECK(passes(DType::float16, 65504));
  CHECK_FALSE(passes(DType::float16, 65505));
  CHECK(passes(DType::bfloat16, 3.3e38));
  CHECK_FALSE(passes(DType::bfloat16, 3.4e38));
  CHECK(passes(DType::int64, -0x1p63));
  CHECK_FALSE(passes(DType::int64, 0x1p63));
  CHECK(passes(DType::uint8, 255));
  CHECK_FALSE(passes(DType::uint8, -1));
}

TEST_CASE("assembly: every tensor starts at a multiple of 64 bytes in the arena") {
  const auto snapshot = std::make_shared<MadeUpSnapshot>(
      all_kinds(), std::vector<std::uint32_t>{1, 2, 5, 7, 11, 3, 3},
      std::vector<std::uint32_t>{3, 1, 0, 2, 9, 5, 1});
  const auto source = plan_of(snapshot, in_order(2));
  const auto arena = Arena::create(3, 8000);
  REQUIRE(arena);
  for (std::uint32_t i = 0; i < source->plan.batches(); ++i) {
    const auto slot = (*arena)->slot(SlotIndex{i % 3});
    const auto figures = assemble_batch(*source, style(Layout::batch_major), BatchIndex{i}, slot);
    REQUIRE(figures);
    const auto batch = verify_batch(slot.subspan(figures->offset, figures->size));
    REQUIRE(batch);
    for (const auto* tensor : *(*batch)->tensors()) {
      CHECK(reinterpret_cast<std::uintptr_t>(tensor->data()->data()) % kTensorAlignment == 0);
    }
  }
}

TEST_CASE("assembly: the padding value is written in every dtype") {
  CHECK(padding_element<float>(DType::float32, -1.5) == -1.5F);
  CHECK(padding_element<std::uint16_t>(DType::float16, -1.5) == 0xBE00);
  CHECK(padding_element<std::uint16_t>(DType::bfloat16, -1.5) == 0xBFC0);
  CHECK(padding_element<std::int64_t>(DType::int64, -100) == -100);
  CHECK(padding_element<std::int32_t>(DType::int32, -100) == -100);
  CHECK(padding_element<std::int16_t>(DType::int16, -100, Layout::time_major) == -100);
  CHECK(padding_element<std::uint8_t>(DType::uint8, 255, Layout::time_major) == 255);
}

TEST_CASE("assembly: a padding value is rounded to the nearest even number of a float") {
  CHECK(padding_element<std::uint16_t>(DType::float16, 1.0 + 0x1p-11) == 0x3C00);
  CHECK(padding_element<std::uint16_t>(DType::float16, 1.0 + 0x3p-11) == 0x3C02);
  CHECK(padding_element<std::uint16_t>(DType::float16, 65504.0) == 0x7BFF);
  CHECK(padding_element<std::uint16_t>(DType::float16, 65520.0) == 0x7C00);
  CHECK(padding_element<std::uint16_t>(DType::float16, 0x1p-24) == 0x0001);
  CHECK(padding_element<std::uint16_t>(DType::float16, 0x1p-14 - 0x1p-26) == 0x0400);
  CHECK(padding_element<std::uint16_t>(DType::float16, -1e9) == 0xFC00);
  CHECK(padding_element<std::uint16_t>(DType::bfloat16, 1.0 + 0x1p-8) == 0x3F80);
  CHECK(padding_element<std::uint16_t>(DType::bfloat16, 1e39) == 0x7F80);
  CHECK(padding_element<float>(DType::float32, 0.1) == 0.1F);
  CHECK(padding_element<float>(DType::float32, 1e-42) == 1e-42F);
  CHECK(padding_element<float>(DType::float32, -1e300) == -std::numeric_limits<float>::infinity());
  CHECK(std::signbit(padding_element<float>(DType::float32, -0.0)));
  CHECK(std::isnan(padding_element<float>(DType::float32, std::nan(""))));
}

TEST_CASE("assembly: a padding value is rounded and clamped in an integer") {
  CHECK(padding_element<std::uint8_t>(DType::uint8, -3.0) == 0);
  CHECK(padding_element<std::uint8_t>(DType::uint8, 256.0) == 255);
  CHECK(padding_element<std::int16_t>(DType::int16, 2.5) == 2);
  CHECK(padding_element<std::int32_t>(DType::int32, -1e300) ==
        std::numeric_limits<std::int32_t>::min());
  CHECK(padding_element<std::int64_t>(DType::int64, 0x1p63) ==
        std::numeric_limits<std::int64_t>::max());
  CHECK(padding_element<std::int64_t>(DType::int64, std::nan("")) == 0);
}
