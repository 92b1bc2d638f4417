#include "storage/ingest/ordered_loader.h"

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>

using namespace batchwright;

namespace {

Loaded item(std::size_t bytes) {
  Loaded loaded;
  loaded.fields.push_back({std::vector<std::byte>(bytes), 1});
  return loaded;
}

}  // namespace

TEST_CASE("storage: items that are being loaded count before they are there") {
  std::atomic<std::uint64_t> held{0};
  std::atomic<std::uint64_t> most{0};
  OrderedLoader loader(
      40, 8,
      [&](std::size_t) -> Result<Loaded> {
        const std::uint64_t now = held += 100;
        std::uint64_t seen = most;
        while (now > seen && !most.compare_exchange_weak(seen, now)) {
        }
        std::this_thread::yield();
        held -= 100;
        return item(0);
      },
      [](std::size_t) { return 100; }, 250);
  for (int i = 0; i < 40; ++i) CHECK(loader.next());
  CHECK(most >= 100);
  // Two fit, and the one that is due may go beyond.
  CHECK(most <= 300);
}

TEST_CASE("storage: an item above the bound is loaded, in its turn") {
  OrderedLoader loader(
      3, 2, [](std::size_t i) -> Result<Loaded> { return item(i); },
      [](std::size_t i) { return i == 1 ? 1'000'000 : 1; }, 10);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto loaded = loader.next();
    REQUIRE(loaded);
    CHECK(loaded->fields[0].bytes.size() == i);
  }
}

TEST_CASE("storage: a loader ends while threads wait for room") {
  OrderedLoader loader(
      100, 4, [](std::size_t) -> Result<Loaded> { return item(100); },
      [](std::size_t) { return 100; }, 100);
  CHECK(loader.next());
}

TEST_CASE("storage: what a load throws is an error of its item") {
  OrderedLoader loader(2, 1, [](std::size_t i) -> Result<Loaded> {
    if (i == 0) throw std::runtime_error("no memory");
    return item(1);
  });
  CHECK(loader.next().error().message == "no memory");
  CHECK(loader.next());
}
