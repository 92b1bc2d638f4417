#include <doctest/doctest.h>

#include <boost/json.hpp>
#include <set>
#include <sstream>

#include "storage/dataset/dataset.h"
#include "tests/integration/daemon_process.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

namespace json = boost::json;

const std::string kBenchPlan =
    "[feed.plan]\norder = \"semi-sorted\"\ncut = \"dynamic\"\nsize = 4\nworld = 2\n";

/// The objects that `tail --json` prints for one epoch.
std::vector<json::object> tail(const DaemonProcess& daemon, const std::vector<std::string>& more) {
  std::vector<std::string> words = {
      program("batchwright"), "tail",     "--feed", "train", "--endpoint",
      daemon.endpoint(),      "--epochs", "1",      "--json"};
  words.insert(words.end(), more.begin(), more.end());
  const Finished finished = run(words);
  REQUIRE_MESSAGE(finished.code == 0, finished.err);
  std::vector<json::object> batches;
  std::istringstream lines(finished.out);
  for (std::string line; std::getline(lines, line);) {
    batches.push_back(json::parse(line).as_object());
  }
  return batches;
}

/// CRC-32C of the frames that small_value() gives these sequences, row after row.
std::uint32_t expected_checksum(const json::object& batch) {
  std::uint32_t crc = 0;
  const json::array& keys = batch.at("keys").as_array();
  for (std::size_t row = 0; row < keys.size(); ++row) {
    const std::uint64_t ordinal = std::stoull(std::string(keys[row].as_string()).substr(4));
    const auto length = batch.at("lengths").at(row).to_number<std::uint64_t>();
    const std::uint64_t start =
        batch.contains("starts") ? batch.at("starts").at(row).to_number<std::uint64_t>() : 0;
    std::vector<float> frames;
    for (std::uint64_t i = 0; i < length * 4; ++i) {
      frames.push_back(small_value(ordinal, start + i / 4, i % 4));
    }
    crc = crc32c(std::as_bytes(std::span(frames)), crc);
  }
  return crc;
}

}  // namespace

TEST_CASE("integration: tail shows each batch of an epoch with the checksum of its real frames") {
  for (const std::string layout : {"batch-major", "time-major"}) {
    DaemonProcess daemon("layout = \"" + layout + "\"\n" + kBenchPlan);
    REQUIRE(daemon.start());
    std::uint64_t index = 0;
    for (const json::object& batch : tail(daemon, {})) {
      CHECK(batch.at("epoch").to_number<std::uint64_t>() == 0);
      CHECK(batch.at("index").to_number<std::uint64_t>() == index);
      CHECK(batch.at("step").to_number<std::uint64_t>() == index / 2);
      CHECK(batch.at("size").to_number<std::size_t>() == batch.at("keys").as_array().size());
      CHECK(batch.at("checksum").to_number<std::uint32_t>() == expected_checksum(batch));
      ++index;
    }
    CHECK(index > 4);
  }
}

TEST_CASE("integration: tail tells which frames of its sequence a chunk is") {
  DaemonProcess daemon("[feed.plan]\nsize = 4\nchunk = 16\nhop = 8\n");
  REQUIRE(daemon.start());
  std::size_t parts = 0;
  for (const json::object& batch : tail(daemon, {})) {
    CHECK(batch.at("checksum").to_number<std::uint32_t>() == expected_checksum(batch));
    const json::array& lengths = batch.at("lengths").as_array();
    for (std::size_t row = 0; batch.contains("starts") && row < lengths.size(); ++row) {
      const auto start = batch.at("starts").at(row).to_number<std::uint32_t>();
      const auto end = start + lengths[row].to_number<std::uint32_t>();
      const auto whole = daemon.lengths()[batch.at("ordinals").at(row).to_number<std::size_t>()];
      const int flags = (start == 0 ? 1 : 0) + (end == whole ? 2 : 0);
      CHECK(batch.at("flags").at(row).to_number<int>() == flags);
      parts += flags != 3;
    }
  }
  CHECK(parts > 60);
}

TEST_CASE("integration: the shares that tail shows of two ranks are the whole epoch") {
  DaemonProcess daemon(kBenchPlan);
  REQUIRE(daemon.start());
  std::set<std::uint64_t> indices;
  for (const std::string rank : {"0", "1"}) {
    for (const json::object& batch : tail(daemon, {"--rank", rank, "--ranks", "2"})) {
      const auto index = batch.at("index").to_number<std::uint64_t>();
      CHECK(index % 2 == std::stoull(rank));
      indices.insert(index);
    }
  }
  CHECK(indices.size() == tail(daemon, {}).size());
}

TEST_CASE("integration: tail of a feed that does not exist is a wrong call") {
  DaemonProcess daemon(kBenchPlan);
  REQUIRE(daemon.start());
  const Finished finished = run({program("batchwright"), "tail", "--feed", "nope", "--endpoint",
                                 daemon.endpoint(), "--json"});
  CHECK(finished.code == 2);
  CHECK(finished.out.empty());
  CHECK(finished.err.find("no feed \"nope\"") != std::string::npos);
}

TEST_CASE("integration: bench prints its figures, and replicas share what is assembled") {
  DaemonProcess daemon(kBenchPlan);
  REQUIRE(daemon.start());
  const Finished finished = run({program("batchwright"), "bench", "--feed", "train", "--endpoint",
                                 daemon.endpoint(), "--stats", daemon.stats_address(), "--clients",
                                 "2", "--seconds", "0.2", "--touch", "all", "--json"});
  REQUIRE_MESSAGE(finished.code == 0, finished.err);
  const auto figures = json::parse(finished.out).as_object();
  const auto number = [&figures](const char* name) { return figures.at(name).to_number<double>(); };
  CHECK(number("clients") == 2);
  CHECK(number("batches") > 0);
  CHECK(number("bytes") > 0);
  CHECK(number("padded_bytes") > number("bytes"));
  CHECK(number("seconds") >= 0.2);
  CHECK(number("bytes_per_second") == doctest::Approx(number("bytes") / number("seconds")));
  CHECK(number("ratio") ==
        doctest::Approx(number("bytes_per_second") / number("memcpy_bytes_per_second")));
  CHECK(number("daemon_cpu_seconds") > 0);
  CHECK(number("delivered") >= number("batches"));
  CHECK(number("assembled") < number("delivered"));
  CHECK(figures.at("copy").as_object().size() == 3);
  CHECK(figures.at("copy").at("long").is_string());
}

TEST_CASE("integration: bench without the daemon's stats says what it needs") {
  DaemonProcess daemon(kBenchPlan);
  REQUIRE(daemon.start());
  const Finished finished = run({program("batchwright"), "bench", "--feed", "train", "--endpoint",
                                 daemon.endpoint(), "--stats", "http://127.0.0.1:1"});
  CHECK(finished.code == 1);
  CHECK(finished.err.find("bench needs the daemon's stats") != std::string::npos);
}
