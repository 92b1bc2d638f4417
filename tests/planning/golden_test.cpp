#include <doctest/doctest.h>

#include "daemon/planning/planning.h"
#include "tests/planning/tables.h"

using namespace batchwright;
using namespace batchwright::testing;

namespace {

struct Golden {
  const char* what;
  bool ascending;
  std::initializer_list<const char*> settings;
  std::uint64_t batches, padded_frames;
  double zpr_percent, abl;
};

PlanReport reported(const std::vector<std::uint32_t>& lengths, const PlanSettings& settings) {
  const auto plan = plan_epoch(lengths, settings, Epoch{0});
  REQUIRE_MESSAGE(plan, (plan ? "" : plan.error().message));
  return report_plan(*plan);
}

}  // namespace

TEST_CASE("planning: sorted batches of LJSpeech give the known figures exactly") {
  const auto lengths = ljspeech_train();
  REQUIRE(lengths.size() == 10480);
  const auto fixed = reported(lengths, settings({"order=sorted"}));
  CHECK(fixed.batches == 655);
  CHECK(fixed.frames == 5507076);
  CHECK(fixed.padded_frames == 5512336);
  CHECK(fixed.zpr * 100 == doctest::Approx(0.152405).epsilon(3e-6));
  CHECK(fixed.abl == doctest::Approx(525.986260).epsilon(1e-9));

  const auto strict = reported(lengths, settings({"order=sorted", "cut=dynamic"}));
  CHECK(strict.batches == 438);
  CHECK(strict.padded_frames == 5519524);
  CHECK(strict.zpr * 100 == doctest::Approx(0.461187).epsilon(1e-6));
  CHECK(strict.abl == doctest::Approx(526.672137).epsilon(1e-9));

  const auto overrun = reported(lengths, settings({"order=sorted", "cut=dynamic", "rule=overrun"}));
  CHECK(overrun.batches == 418);
  CHECK(overrun.padded_frames == 5519728);
  CHECK(overrun.zpr * 100 == doctest::Approx(0.464310).epsilon(1e-6));
  CHECK(overrun.abl == doctest::Approx(526.691603).epsilon(1e-9));
}
