#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "tests/assembly/snapshot.h"

using namespace batchwright;

namespace {

/// The bits of a float32, and of what it is cast to.
struct Golden {
  std::uint32_t float32;
  std::uint16_t float16;
  std::uint16_t bfloat16;
};

/// Of NumPy's float16 and of the rounding of bfloat16 in words: ties, subnormals, the greatest
/// numbers, infinity, a NaN.
constexpr Golden kGolden[] = {
    {0x00000000, 0x0000, 0x0000}, {0x80000000, 0x8000, 0x8000}, {0x3f800000, 0x3c00, 0x3f80},
    {0x3f801000, 0x3c00, 0x3f80}, {0x3f803000, 0x3c02, 0x3f80}, {0x3f808000, 0x3c04, 0x3f80},
    {0x3f818000, 0x3c0c, 0x3f82}, {0x3f808001, 0x3c04, 0x3f81}, {0x477fe000, 0x7bff, 0x4780},
    {0x477fefff, 0x7bff, 0x4780}, {0x477ff000, 0x7c00, 0x4780}, {0x7f7fffff, 0x7c00, 0x7f80},
    {0x7f7f7fff, 0x7c00, 0x7f7f}, {0x7f7f8000, 0x7c00, 0x7f80}, {0x33000000, 0x0000, 0x3300},
    {0x33000001, 0x0001, 0x3300}, {0x33800000, 0x0001, 0x3380}, {0x387fc000, 0x03ff, 0x3880},
    {0x387fe000, 0x0400, 0x3880}, {0x7f800000, 0x7c00, 0x7f80}, {0xff800000, 0xfc00, 0xff80},
    {0x7fc00000, 0x7e00, 0x7fc0}, {0xc2c80000, 0xd640, 0xc2c8},
};

/// The float32 that has the value of a float16.
std::uint32_t widened(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1F;
  const int mantissa = bits & 0x3FF;
  if (exponent == 31) {
    return static_cast<std::uint32_t>((bits & 0x8000) << 16 | 0x7F800000 | mantissa << 13);
  }
  const float value = exponent == 0
                          ? std::ldexp(static_cast<float>(mantissa), -24)
                          : std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
  return std::bit_cast<std::uint32_t>(bits >> 15 != 0 ? -value : value);
}

/// Every exponent with the mantissas around each place where rounding turns, of both signs, and
/// what chance adds; a multiple of a line.
std::vector<std::uint32_t> patterns() {
  std::vector<std::uint32_t> all;
  for (std::uint32_t exponent = 0; exponent < 256; ++exponent) {
    for (int bit = 0; bit < 23; ++bit) {
      for (const std::uint32_t mantissa :
           {1U << bit, (1U << bit) - 1, (1U << bit) + 1, 3U << bit, 0x7FFFFFU << bit}) {
        for (const std::uint32_t sign : {0U, 0x8000'0000U}) {
          all.push_back(sign | exponent << 23 | (mantissa & 0x7FFFFF));
        }
      }
    }
  }
  std::mt19937 random(1);
  while (all.size() < 400'000 || all.size() % 64 != 0) {
    all.push_back(static_cast<std::uint32_t>(random()));
  }
  return all;
}

std::vector<std::uint16_t> cast_by(CastLines lines, std::span<const std::uint32_t> values,
                                   std::uint64_t& overflows) {
  std::vector<std::uint16_t> memory(values.size() + 32);
  void* start = memory.data();
  std::size_t room = memory.size() * 2;
  auto* to = static_cast<std::byte*>(std::align(kCacheLine, values.size() * 2, start, room));
  overflows = lines(to, std::as_bytes(values).data(), values.size() * 2 / kCacheLine);
  finish_streams();
  std::vector<std::uint16_t> out(values.size());
  std::memcpy(out.data(), to, out.size() * 2);
  return out;
}

/// A batch of one float32 field that is cast, by the way given.
void assemble(Assembled& assembled, const EpochSource& source, const BatchStyle& style,
              const CopyWay& way) {
  auto batch =
      assemble_batch(source, style, BatchIndex{0}, assembled.slot.bytes(), CopyChoice(way));
  REQUIRE(batch);
  assembled.figures = std::move(*batch);
}

/// Element `i` of frame `t` of row `r` of the first tensor, of 16 bits.
std::uint16_t element(const wire::Batch& batch, std::size_t r, std::size_t t, std::size_t i) {
  const auto extents = shape(batch, 0);
  const bool time_major = batch.layout() == Layout::time_major;
  const std::size_t width = extents[2];
  const std::size_t place = time_major ? t * extents[1] + r : r * extents[1] + t;
  std::uint16_t bits = 0;
  std::memcpy(&bits, payload(batch, 0).data() + (place * width + i) * 2, 2);
  return bits;
}

}  // namespace

TEST_CASE("assembly: casts give the golden bits") {
  for (const Golden& golden : kGolden) {
    CAPTURE(golden.float32);
    CHECK(to_float16(golden.float32) == golden.float16);
    CHECK(to_bfloat16(golden.float32) == golden.bfloat16);
  }
}

TEST_CASE("assembly: a NaN stays a NaN with its sign, and a quiet one") {
  CHECK(to_float16(0x7F80'0001) == 0x7E00);
  CHECK(to_float16(0xFF80'0001) == 0xFE00);
  CHECK(to_bfloat16(0x7F80'0001) == 0x7FC0);
  CHECK(to_bfloat16(0xFFFF'FFFF) == 0xFFFF);
}

TEST_CASE("assembly: every float16 comes back as it was, and every bfloat16") {
  int wrong = 0;
  for (std::uint32_t i = 0; i < 0x10000; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const bool half_nan = (bits & 0x7FFF) > 0x7C00;
    wrong += to_float16(widened(bits)) == (half_nan ? bits | 0x200 : bits) ? 0 : 1;
    const bool nan = (bits & 0x7FFF) > 0x7F80;
    wrong += to_bfloat16(i << 16) == (nan ? bits | 0x40 : bits) ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("assembly: every way to cast gives the same bits, and counts the same overflows") {
  const std::vector<std::uint32_t> values = patterns();
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    std::uint64_t lost = 0;
    const auto wanted = cast_by(cast_ways().front().lines(dtype, false), values, lost);
    CHECK(lost > 0);
    for (const CastWay& way : cast_ways()) {
      if (!way.runs_here()) continue;
      CAPTURE(way.name);
      for (const bool streamed : {false, true}) {
        std::uint64_t overflows = 0;
        CHECK(cast_by(way.lines(dtype, streamed), values, overflows) == wanted);
        CHECK(overflows == lost);
      }
    }
  }
}

TEST_CASE("assembly: a run is cast at every place and of every length, and nothing beside it") {
  const std::vector<std::uint32_t> values = patterns();
  for (const CopyWay& way : copy_ways()) {
    if (!way.runs_here()) continue;
    CAPTURE(way.name);
    int wrong = 0;
    for (std::size_t at = 0; at < 32; ++at) {
      for (std::size_t count = 0; count < 200; ++count) {
        std::vector<std::uint16_t> out(at + count + 64, 0xA5A5);
        std::vector<std::uint16_t> wanted = out;
        const auto from = std::as_bytes(std::span(values)).subspan((at * 331 + 3) * 4, count * 4);
        cast_run(way, DType::float16, std::as_writable_bytes(std::span(out)).data() + at * 2, from);
        finish_streams();
        for (std::size_t i = 0; i < count; ++i) {
          wanted[at + i] = to_float16(values[at * 331 + 3 + i]);
        }
        wrong += out == wanted ? 0 : 1;
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("assembly: a batch of a cast field has its dtype, its rows and its padding") {
  for (const std::uint32_t width : {1U, 5U, 32U, 80U, 9000U}) {
    const auto snapshot = std::make_shared<MadeUpSnapshot>(frames_only(DType::float32, {width}),
                                                           std::vector<std::uint32_t>{3, 5, 2});
    const auto source = plan_of(snapshot, in_order(3));
    for (const Layout layout : {Layout::batch_major, Layout::time_major}) {
      for (const CopyWay& way : copy_ways()) {
        if (!way.runs_here()) continue;
        BatchStyle style{"train",         layout,  {{snapshot->schema().fields.at(0).name, 1.5}},
                         OnCorrupt::stop, nullptr, {DType::float16, {}}};
        Assembled assembled;
        assemble(assembled, *source, style, way);
        const wire::Batch& batch = assembled.batch();
        REQUIRE(batch.tensors()->Get(0)->dtype() == DType::float16);
        int wrong = 0;
        for (std::size_t r = 0; r < 3; ++r) {
          const auto content =
              snapshot->content(batch.ordinals()->Get(static_cast<unsigned>(r)), 0);
          for (std::size_t i = 0; i < 5 * width; ++i) {
            std::uint32_t bits = 0x3FC0'0000;  // 1.5
            if (i * 4 < content.size()) std::memcpy(&bits, content.data() + i * 4, 4);
            wrong += element(batch, r, i / width, i % width) == to_float16(bits) ? 0 : 1;
          }
        }
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("assembly: a slot of cast fields needs half the bytes") {
  const auto snapshot = std::make_shared<MadeUpSnapshot>(frames_only(DType::float32, {80}),
                                                         std::vector<std::uint32_t>{1000, 1000});
  const PlanBound bound{2, 2000};
  const auto full = slot_bytes_for(*snapshot, {"train", Layout::batch_major, {}}, bound);
  const auto half = slot_bytes_for(
      *snapshot,
      {"train", Layout::batch_major, {}, OnCorrupt::stop, nullptr, {DType::bfloat16, {}}}, bound);
  REQUIRE(full);
  REQUIRE(half);
  CHECK(*full - *half == 2000 * 80 * 2);
}

TEST_CASE("assembly: finite values that a cast made infinite are counted, infinite ones are not") {
  const std::vector<std::uint32_t> values{0x477F'F000, 0xC77F'F000, 0x477F'EFFF, 0x7F80'0000,
                                          0x7FC0'0000};
  std::array<std::uint16_t, 5> out{};
  auto* const to = std::as_writable_bytes(std::span(out)).data();
  const auto from = std::as_bytes(std::span(values));
  CHECK(cast_run(plain_copy(), DType::float16, to, from) == 2);
  CHECK(cast_run(plain_copy(), DType::bfloat16, to, from) == 0);
}

TEST_CASE("assembly: only float32 fields that exist are cast, all of them or those named") {
  Schema schema = frames_only(DType::float32, {2});
  const std::string first = schema.fields.at(0).name;
  schema.fields.push_back({"weight", FieldKind::scalar, DType::float32, {}, {}});
  schema.fields.push_back({"label", FieldKind::scalar, DType::int64, {}, {}});
  const Schema all = cast_schema({DType::float16, {}}, schema);
  CHECK(all.fields.at(0).dtype == DType::float16);
  CHECK(all.fields.at(1).dtype == DType::float16);
  CHECK(all.fields.at(2).dtype == DType::int64);
  const Casts named{DType::none, {{"weight", DType::bfloat16}}};
  CHECK(check_casts(named, schema));
  CHECK(cast_schema(named, schema).fields.at(0).dtype == DType::float32);
  CHECK(cast_schema(named, schema).fields.at(1).dtype == DType::bfloat16);
  const auto refused = check_casts({DType::none, {{"label", DType::float16}}}, schema);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message ==
        "dtype.label: found float16, but the field is int64, and only float32 is cast; allowed: " +
            first + " weight");
  const auto none = check_casts({DType::float16, {}}, frames_only(DType::int16, {}));
  REQUIRE_FALSE(none);
  CHECK(none.error().message.find("no field is float32") != std::string::npos);
}
