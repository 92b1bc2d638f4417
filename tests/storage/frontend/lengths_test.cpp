#include "storage/features/frontend/lengths.h"

#include "tests/storage/frontend/golden.h"

using namespace batchwright;
using namespace batchwright::test;
namespace json = boost::json;

TEST_CASE("lengths: 48 cases of soxr's, and of sincs'") {
  const json::object golden = golden_json("augment.json");
  for (const json::value& line : golden.at("lengths_round_half_up").as_array()) {
    const RateRatio ratio{line.at("old").to_number<std::uint64_t>(),
                          line.at("new").to_number<std::uint64_t>()};
    const auto samples = line.at("samples").to_number<std::uint64_t>();
    CHECK(resampled_length(ResamplerKind::soxr, samples, ratio) ==
          line.at("out").to_number<std::uint64_t>());
    CHECK(resampled_length(ResamplerKind::sinc, samples, ratio) ==
          line.at("ceil").to_number<std::uint64_t>());
  }
}

TEST_CASE("lengths: a ratio is reduced, and the longest sound of the highest rate still fits") {
  const auto ratio = rate_ratio(16'000, 16'000, *parse_speed(1.1));
  REQUIRE(ratio);
  CHECK(ratio->from == 11);
  CHECK(ratio->to == 10);
  const auto extreme = rate_ratio(kMostRate, 999'983, *parse_speed(0.501));
  REQUIRE(extreme);
  const std::uint64_t samples = 0xFFFF'FFFF;
  const double exact = static_cast<double>(samples) * static_cast<double>(extreme->to) /
                       static_cast<double>(extreme->from);
  CHECK(static_cast<double>(resampled_length(ResamplerKind::soxr, samples, *extreme)) ==
        doctest::Approx(exact).epsilon(1e-9));
  CHECK_FALSE(rate_ratio(0, 16'000, {}));
  CHECK_FALSE(rate_ratio(16'000, kMostRate + 1, {}));
}

TEST_CASE("lengths: none falls as sound grows longer") {
  for (const double speed : {0.5, 0.9, 1.0, 1.1, 1.999}) {
    const auto ratio = rate_ratio(22'050, 16'000, *parse_speed(speed));
    REQUIRE(ratio);
    for (const ResamplerKind kind : {ResamplerKind::soxr, ResamplerKind::sinc}) {
      std::uint64_t before = 0;
      for (std::uint64_t samples = 0; samples < 3000; ++samples) {
        const std::uint64_t length = resampled_length(kind, samples, *ratio);
        CHECK(length >= before);
        before = length;
      }
    }
  }
}

TEST_CASE("lengths: settings outside of their range are refused by name") {
  for (const double bad : {0.0, 0.499, 2.001, 0.9001, -1.0, std::nan("")}) {
    CHECK_FALSE(parse_speed(bad));
  }
  CHECK(parse_speed(0.9)->thousandths == 900);
  CHECK(check(Stacking{0, 1}).error().message == "stack of 0 frames; allowed: 1 to 1024");
  CHECK(check(Stacking{1, 1025}).error().message == "stride of 1025 frames; allowed: 1 to 1024");
  Stacking offset{4, 3};
  offset.target_offset = 3;
  CHECK(check(offset).error().message == "target_offset 3; with stride 3 allowed: 0 to 2");
  CHECK(check(KeepOne{0, 0}).error().message == "keep_one_of of 0 frames; allowed: 1 to 1024");
  CHECK_FALSE(check(KeepOne{3, 3}));
  CHECK_FALSE(check(LabelDelay{65'537, true}));
}
