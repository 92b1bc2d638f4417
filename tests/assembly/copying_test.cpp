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

TEST_CASE("assembly: a run with few whole lines is copied by memcpy") {
  const CopyChoice streamed(*find_copy_way("sse2"));
  CHECK(streamed.for_run(0).name == "memcpy");
  CHECK(streamed.for_run(511).name == "memcpy");
  CHECK(streamed.for_run(512).name == "sse2");
  CHECK(streamed.for_run(std::size_t{1} << 30).name == "sse2");
}

TEST_CASE("assembly: \"auto\" streams where the processor can, by the same way each time") {
  const CopyWay& way = CopyChoice::of_name(kAutoCopy).for_run(512);
  CHECK(way.runs_here());
#if defined(__x86_64__) || defined(__aarch64__)
  CHECK(way.streams());
#endif
  CHECK(&CopyChoice::of_name(kAutoCopy).for_run(512) == &way);
}

TEST_CASE("assembly: a way that is named copies all runs") {
  for (const CopyWay* way : ways_here()) {
    const CopyChoice named = CopyChoice::of_name(way->name);
    CHECK(&named.for_run(512) == way);
    CHECK(&named.for_run(std::size_t{1} << 30) == way);
    CHECK(named.name() == way->name);
  }
  CHECK(CopyChoice().name() == "memcpy");
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
