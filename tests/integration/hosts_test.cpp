// One group of trainers over several hosts: each has a daemon and a copy of the dataset of its own,
// and the daemons do not know of each other. Only the trainers are one.

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "tests/integration/daemon_process.h"
#include "tests/integration/seen.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr const char* kPlan =
    "[feed.plan]\norder = \"semi-sorted\"\nsize = 3\nseed = 5\nworld = 8\n"
    "shuffle = \"groups\"\nremainder = \"spread\"\n";
constexpr std::size_t kHostSequences = 100;

bw_position position_at(const std::string& endpoint) {
  Trainer trainer(endpoint);
  subscribe(trainer, {.rank = 0, .ranks = 8});
  return trainer.position();
}

/// What a host's daemon says to a position that was reached elsewhere; empty when it takes it.
std::string refusal(const std::string& endpoint, const bw_position& position) {
  try {
    Trainer trainer(endpoint);
    trainer.subscribe([&position](bw_subscribe_options& options) {
      options.fingerprint = &position.fingerprint;
      options.epoch = position.epoch;
      options.step = position.step;
    });
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("integration: one group over two hosts sees what it would see on one") {
  DaemonProcess one(kPlan, kHostSequences);
  DaemonProcess other(kPlan, kHostSequences);
  REQUIRE(one.start());
  REQUIRE(other.start());
  /// Different batches that the busier daemon has assembled.
  const auto assembled = [&] {
    const auto of = [](DaemonProcess& daemon) {
      return daemon.counter("batches_assembled") - daemon.counter("batches_reassembled");
    };
    return std::max(of(one), of(other));
  };
  const Wish job = {.epochs = 2, .ranks = 8};
  const std::uint64_t before = assembled();  // the first batches, before anyone asked
  const auto together = take_job({one.endpoint(), other.endpoint()}, job);
  CHECK(assembled() <= before + 40);  // its own ranks' batches, no others
  DaemonProcess alone(kPlan, kHostSequences);
  REQUIRE(alone.start());
  CHECK(together == take_job({alone.endpoint()}, job));
  CHECK(together.size() == 80);
}

TEST_CASE("integration: a job goes on, on other hosts than those where it began") {
  DaemonProcess one(kPlan, kHostSequences);
  DaemonProcess other(kPlan, kHostSequences);
  REQUIRE(one.start());
  REQUIRE(other.start());
  const auto all = take_job({one.endpoint()}, {.epochs = 2, .ranks = 8});
  auto seen = take_job({one.endpoint(), other.endpoint()}, {.epochs = 2, .ranks = 8}, 3);
  REQUIRE(seen.size() == 24);
  for (auto& batch : take_job({other.endpoint()}, {.epochs = 2, .step = 3, .ranks = 4})) {
    seen.push_back(std::move(batch));
  }
  CHECK(seen == all);
}

TEST_CASE("integration: the fingerprint tells whether hosts agree, and else in what they differ") {
  DaemonProcess one(kPlan, kHostSequences);
  DaemonProcess same(kPlan, kHostSequences);
  DaemonProcess other_data(kPlan, kHostSequences + 1);
  DaemonProcess other_settings(std::string(kPlan) + "randomization = 0.25\n", kHostSequences);
  std::string seeded = kPlan;
  seeded.replace(seeded.find("seed = 5"), 8, "seed = 6");
  DaemonProcess other_seed(seeded, kHostSequences);
  for (DaemonProcess* daemon : {&one, &same, &other_data, &other_settings, &other_seed}) {
    REQUIRE(daemon->start());
  }
  const bw_position position = position_at(one.endpoint());
  CHECK(refusal(same.endpoint(), position) == "");
  const auto differs = [&position](const DaemonProcess& daemon, const std::string& what) {
    const std::string text = refusal(daemon.endpoint(), position);
    CAPTURE(text);
    CHECK(text.find(what) != std::string::npos);
  };
  differs(other_data, "data");
  differs(other_settings, "settings");
  differs(other_seed, "seed");
}
