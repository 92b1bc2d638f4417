#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "daemon/assembly/assembly.h"

using namespace batchwright;

namespace {

constexpr std::byte kUntouched{0xA5};

/// Memory that starts with a cache line.
class Lines {
 public:
  explicit Lines(std::size_t bytes) : memory_(bytes + kCacheLine, kUntouched) {
    void* start = memory_.data();
    std::size_t room = memory_.size();
    bytes_ = {static_cast<std::byte*>(std::align(kCacheLine, bytes, start, room)), bytes};
  }
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> memory_;
  std::span<std::byte> bytes_;
};

std::vector<const CopyWay*> ways_here() {
  std::vector<const CopyWay*> ways;
  for (const CopyWay& way : copy_ways()) {
    if (way.runs_here()) ways.push_back(&way);
  }
  return ways;
}

bool equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

/// Whether a run of a way is what memcpy() makes of it, and all around it as it was.
bool copies_as_memcpy(const CopyWay& way, std::size_t to_at, std::size_t from_at,
                      std::size_t bytes) {
  const Lines from(from_at + bytes);
  for (std::size_t i = 0; i < from.bytes().size(); ++i) {
    from.bytes()[i] = static_cast<std::byte>(i * 7 + i / 256);
  }
  const Lines to(to_at + bytes + 2 * kCacheLine);
  const Lines wanted(to.bytes().size());
  copy_run(way, to.bytes().data() + to_at, from.bytes().subspan(from_at));
  finish_streams();
  std::memcpy(wanted.bytes().data() + to_at, from.bytes().data() + from_at, bytes);
  return equal(to.bytes(), wanted.bytes());
}

Padding padding_of_bytes(std::size_t bytes, bool alike) {
  Padding padding;
  padding.bytes = bytes;
  for (std::size_t i = 0; i < bytes; ++i) {
    padding.element[i] = static_cast<std::byte>(alike ? 3 : 3 + 11 * i);
  }
  return padding;
}

bool fills_as_a_loop(const CopyWay& way, std::size_t at, std::size_t bytes,
                     const Padding& padding) {
  const Lines to(at + bytes + 2 * kCacheLine);
  const Lines wanted(to.bytes().size());
  fill_run(way, to.bytes().subspan(at, bytes), padding);
  finish_streams();
  for (std::size_t i = 0; i < bytes; ++i) {
    wanted.bytes()[at + i] = padding.element[i % padding.bytes];
  }
  return equal(to.bytes(), wanted.bytes());
}

CopyRates rates_of(const char* name, std::array<double, kRunClasses> rates) {
  return {find_copy_way(name), rates};
}

}  // namespace

TEST_CASE("assembly: every way copies what memcpy copies, at every alignment, and nothing beside") {
  for (const CopyWay* way : ways_here()) {
    CAPTURE(way->name);
    int wrong = 0;
    for (std::size_t to = 0; to < kCacheLine; ++to) {
      for (std::size_t from = 0; from < kCacheLine; ++from) {
        // Around one line and two, and what lies between in steps that meet every remainder.
        for (std::size_t bytes = 0; bytes <= 300; bytes += bytes % 64 < 2 ? 1 : 31) {
          wrong += copies_as_memcpy(*way, to, from, bytes) ? 0 : 1;
        }
      }
    }
    for (std::size_t bytes = 0; bytes <= 300; ++bytes) {
      wrong += copies_as_memcpy(*way, bytes % 7, bytes % 5, bytes) ? 0 : 1;
    }
    for (const std::size_t bytes :
         {4095U, 16'383U, 16'384U, 16'448U, 65'536U, 65'599U, 1'048'577U}) {
      wrong += copies_as_memcpy(*way, 0, 16, bytes) ? 0 : 1;
      wrong += copies_as_memcpy(*way, 4, 3, bytes) ? 0 : 1;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("assembly: every way fills with every element, at every alignment, and nothing beside") {
  for (const CopyWay* way : ways_here()) {
    CAPTURE(way->name);
    int wrong = 0;
    for (const std::size_t element : {1U, 2U, 4U, 8U}) {
      for (const bool alike : {true, false}) {
        const Padding padding = padding_of_bytes(element, alike);
        for (std::size_t at = 0; at < kCacheLine; ++at) {
          for (std::size_t count = 0; count * element <= 300; ++count) {
            wrong += fills_as_a_loop(*way, at, count * element, padding) ? 0 : 1;
          }
          wrong += fills_as_a_loop(*way, at, 100'000 * element, padding) ? 0 : 1;
        }
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("assembly: a run that is too short to be timed is copied by memcpy") {
  const CopyChoice streamed(*find_copy_way("sse2"));
  CHECK(streamed.for_run(0).name == "memcpy");
  CHECK(streamed.for_run(511).name == "memcpy");
  CHECK(streamed.for_run(512).name == "sse2");
  CHECK(streamed.for_run(std::size_t{1} << 30).name == "sse2");
}

TEST_CASE("assembly: each class of runs has the fastest way of its own") {
  const std::array rates{rates_of("memcpy", {10, 10, 10}), rates_of("sse2", {5, 12, 11}),
                         rates_of("avx2", {9, 11, 15})};
  const CopyChoice choice = CopyChoice::fastest(rates);
  CHECK(choice.of(RunClass::short_runs).name == "memcpy");
  CHECK(choice.of(RunClass::middle_runs).name == "sse2");
  CHECK(choice.of(RunClass::long_runs).name == "avx2");
  CHECK(choice.for_run(16 * 1024 - 1).name == "memcpy");
  CHECK(choice.for_run(16 * 1024).name == "sse2");
  CHECK(choice.for_run(256 * 1024).name == "avx2");
}

TEST_CASE("assembly: a way that is faster by 3 % or less may be so by chance") {
  const std::array rates{rates_of("memcpy", {100, 100, 0}), rates_of("sse2", {103, 103.1, 0})};
  const CopyChoice choice = CopyChoice::fastest(rates);
  CHECK(choice.of(RunClass::short_runs).name == "memcpy");
  CHECK(choice.of(RunClass::middle_runs).name == "sse2");
}

TEST_CASE("assembly: without rates memcpy copies everything") {
  CHECK(CopyChoice::fastest({}).of(RunClass::long_runs).name == "memcpy");
}

TEST_CASE("assembly: \"auto\" times every way that this processor has, for every class") {
  const CopyTable table = make_copy_table(kAutoCopy);
  REQUIRE(table.rates.size() == ways_here().size());
  CHECK(table.rates.front().way->name == "memcpy");
  for (const CopyRates& each : table.rates) {
    for (const double rate : each.bytes_per_second) CHECK(rate > 0);
  }
  CHECK(describe_copies(table).find("short runs by ") == 0);
}

TEST_CASE("assembly: a way that is named copies all runs, and nothing is timed") {
  const CopyTable table = make_copy_table(ways_here().back()->name);
  CHECK(table.rates.empty());
  CHECK(&table.choice.of(RunClass::short_runs) == ways_here().back());
  CHECK(&table.choice.of(RunClass::long_runs) == ways_here().back());
}

TEST_CASE("assembly: a copy that there is not is refused with those that this processor has") {
  CHECK(check_copy("auto"));
  CHECK(check_copy("memcpy"));
  const auto unknown = check_copy("mmx");
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().code == ErrorCode::bad_configuration);
  CHECK(unknown.error().message.find("found \"mmx\", which is no way to copy; allowed here: auto "
                                     "memcpy") != std::string::npos);
  for (const CopyWay& way : copy_ways()) {
    const auto checked = check_copy(way.name);
    CHECK(checked.has_value() == way.runs_here());
    if (checked) continue;
    CHECK(checked.error().message.find("which this machine's processor does not have") !=
          std::string::npos);
  }
}
