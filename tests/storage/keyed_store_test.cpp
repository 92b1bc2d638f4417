#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "storage/dataset/dataset.h"
#include "tests/support/small_dataset.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;
namespace fs = std::filesystem;

namespace {

constexpr const char* kTables[] = {"one", "two"};

Result<std::unique_ptr<KeyedStore>> opened(const fs::path& folder) {
  return KeyedStore::open("store", folder, kTables, false);
}

void put(KeyedStore::Batch& batch, std::size_t table, std::uint64_t key, const std::string& value) {
  const auto room = batch.reserve(table, key, value.size());
  if (!value.empty()) std::memcpy(room.data(), value.data(), value.size());
}

std::map<std::uint64_t, std::string> all(const KeyedStore& store, std::size_t table) {
  std::map<std::uint64_t, std::string> values;
  const auto done = store.read(table, [&](std::uint64_t key, std::span<const std::byte> value) {
    values[key] = {reinterpret_cast<const char*>(value.data()), value.size()};
    return Result<void>();
  });
  REQUIRE_MESSAGE(done, done.error().message);
  return values;
}

}  // namespace

TEST_CASE("storage: keyed store: what was written is there when it is opened again") {
  const TemporaryFolder folder;
  const std::string large(100'000, 'x');
  {
    auto store = opened(folder / "deep" / "store");
    REQUIRE(store);
    REQUIRE((*store)->write([&](KeyedStore::Batch& batch) {
      put(batch, 0, 7, "seven");
      put(batch, 0, 3, "");
      put(batch, 1, 1, large);
    }));
    REQUIRE((*store)->write([](KeyedStore::Batch& batch) {
      put(batch, 0, 7, "SEVEN");
      batch.erase(0, 99);
    }));
  }
  auto store = opened(folder / "deep" / "store");
  REQUIRE(store);
  CHECK(all(**store, 0) == std::map<std::uint64_t, std::string>{{3, ""}, {7, "SEVEN"}});
  CHECK(all(**store, 1) == std::map<std::uint64_t, std::string>{{1, large}});
  REQUIRE((*store)->clear());
  CHECK(all(**store, 0).empty());
  CHECK(all(**store, 1).empty());
}

TEST_CASE("storage: keyed store: one process has it, and one object of that") {
  const TemporaryFolder folder;
  const auto first = opened(folder / "store");
  REQUIRE(first);
  const auto second = opened(folder / "store");
  REQUIRE_FALSE(second);
  CHECK(second.error().code == ErrorCode::busy);
}

TEST_CASE("storage: keyed store: what is no store, or may not be one, says so") {
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << "text";
  CHECK(opened(folder / "file").error().code == ErrorCode::store_unavailable);
  fs::create_directory(folder / "other");
  std::ofstream(folder / "other" / "data.mdb") << std::string(20'000, 'z');
  const auto other = opened(folder / "other");
  REQUIRE_FALSE(other);
  CHECK(other.error().message.find("store: open data.mdb") != std::string::npos);
}

TEST_CASE("storage: keyed store: space of what was erased is used again") {
  const TemporaryFolder folder;
  auto store = opened(folder / "store");
  REQUIRE(store);
  const std::string value(10'000, 'v');
  std::uintmax_t half = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    REQUIRE((*store)->write([&](KeyedStore::Batch& batch) {
      put(batch, 0, i, value);
      if (i >= 50) batch.erase(0, i - 50);
    }));
    if (i == 1000) half = fs::file_size(folder / "store" / "data.mdb");
  }
  CHECK(all(**store, 0).size() == 50);
  CHECK(fs::file_size(folder / "store" / "data.mdb") <= half + half / 4);
}

TEST_CASE("storage: keyed store: keys of all 64 bits, in their order") {
  const TemporaryFolder folder;
  auto store = opened(folder / "store");
  REQUIRE(store);
  std::map<std::uint64_t, std::string> values = {{0, "zero"}, {~std::uint64_t{0}, "all"}};
  for (int bit = 0; bit < 64; ++bit) values[std::uint64_t{1} << bit] = std::to_string(bit);
  REQUIRE((*store)->write([&](KeyedStore::Batch& batch) {
    for (const auto& [key, value] : values) put(batch, 1, key, value);
  }));
  CHECK(all(**store, 1) == values);
  std::uint64_t last = 0;
  REQUIRE((*store)->read(1, [&](std::uint64_t key, std::span<const std::byte>) {
    CHECK(key >= last);
    last = key;
    return Result<void>();
  }));
  REQUIRE(
      (*store)->write([&](KeyedStore::Batch& batch) { batch.erase(1, std::uint64_t{1} << 32); }));
  values.erase(std::uint64_t{1} << 32);
  CHECK(all(**store, 1) == values);
}

TEST_CASE("storage: keyed store: an environment with other tables is refused, and not changed") {
  const TemporaryFolder folder;
  const auto refused = [](const fs::path& path, const std::string& table) {
    const std::string before = file_text(path / "data.mdb").value();
    const auto store = opened(path);
    REQUIRE_FALSE(store);
    CHECK(store.error().code == ErrorCode::store_unavailable);
    CHECK_MESSAGE(store.error().message.find("\"" + table + "\"") != std::string::npos,
                  store.error().message);
    CHECK(file_text(path / "data.mdb").value() == before);
  };
  {
    constexpr const char* kOthers[] = {"one", "three"};
    REQUIRE(KeyedStore::open("store", folder / "store", kOthers, false));
  }
  refused(folder / "store", "three");
  make_small_dataset(folder / "dataset", {3, 4});
  refused(folder / "dataset", "keys");
  constexpr const char* kOfDataset[] = {"meta", "sequences", "keys", "lengths"};
  const auto other_keys = KeyedStore::open("store", folder / "dataset", kOfDataset, false);
  REQUIRE_FALSE(other_keys);
  CHECK(other_keys.error().code == ErrorCode::unsupported_version);
}
