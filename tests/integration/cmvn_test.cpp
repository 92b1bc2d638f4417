#include <doctest/doctest.h>

#include <array>
#include <boost/json.hpp>
#include <cmath>
#include <cstring>

#include "storage/dataset/dataset.h"
#include "tests/integration/daemon_process.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// Mean and variance of each of the four dimensions.
struct Statistics {
  std::array<double, 4> mean{};
  std::array<double, 4> variance{};
};

/// Every frame of the dataset itself, the daemon left out.
std::vector<std::array<float, 4>> all_frames(const std::filesystem::path& path) {
  Catalog catalog;
  const auto snapshot = catalog.open({path}).value()->snapshot().value();
  std::vector<std::array<float, 4>> frames;
  for (std::uint64_t i = 0; i < snapshot->sequences(); ++i) {
    const auto record = snapshot->record(Ordinal{i});
    const auto bytes = record->field(0).bytes;
    const std::size_t first = frames.size();
    frames.resize(first + record->length());
    std::memcpy(frames[first].data(), bytes.data(), bytes.size());
  }
  return frames;
}

/// Two passes in long double: a reference, not a method.
Statistics reference(const std::vector<std::array<float, 4>>& frames) {
  Statistics statistics;
  for (std::size_t d = 0; d < 4; ++d) {
    long double sum = 0;
    for (const auto& frame : frames) sum += frame[d];
    const long double mean = sum / static_cast<long double>(frames.size());
    long double squares = 0;
    for (const auto& frame : frames) squares += (frame[d] - mean) * (frame[d] - mean);
    statistics.mean[d] = static_cast<double>(mean);
    statistics.variance[d] = static_cast<double>(squares / static_cast<long double>(frames.size()));
  }
  return statistics;
}

void check_close(const boost::json::value& found, const std::array<double, 4>& expected) {
  for (std::size_t d = 0; d < 4; ++d) {
    const double value = found.at(d).to_number<double>();
    CHECK(std::abs(value - expected[d]) <= 1e-6 * std::abs(expected[d]));
  }
}

}  // namespace

TEST_CASE("integration: cmvn finds the mean and variance that the dataset itself has") {
  for (const std::string layout : {"batch-major", "time-major"}) {
    DaemonProcess daemon("layout = \"" + layout +
                         "\"\n[feed.plan]\norder = \"semi-sorted\"\ncut = \"dynamic\"\nsize = 4\n");
    REQUIRE(daemon.start());
    const Finished cmvn = run({program("cmvn"), "--feed", "train", "--endpoint", daemon.endpoint(),
                               "--epochs", "1", "--json"});
    REQUIRE_MESSAGE(cmvn.code == 0, cmvn.err);
    const auto frames = all_frames(daemon.dataset());
    const Statistics expected = reference(frames);
    const auto found = boost::json::parse(cmvn.out);
    CHECK(found.at("frames").to_number<std::uint64_t>() == frames.size());
    check_close(found.at("mean"), expected.mean);
    check_close(found.at("variance"), expected.variance);
  }
}
