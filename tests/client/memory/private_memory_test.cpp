#include "client/library/memory/private_memory.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <thread>

#include "tests/client/memory/sealed_arena.h"
#include "tests/client/one_client.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

const std::size_t kBatch = 16 * kPage;
const Place kFirst{64, kBatch - 64};
const Place kSecond{2 * kBatch + 64, kBatch - 64};

PrivateMemory::Lent lent(PrivateMemory& memory, const SealedArena& arena, const Place& place,
                         LeaseNumber lease = {}) {
  auto found = memory.lend(arena.mapping(), {place, lease});
  REQUIRE_MESSAGE(found, found.error().message);
  return std::move(*found);
}

/// Whether all bytes are this.
bool shows(const PrivateMemory::Lent& batch, int value) {
  for (const std::byte each : batch.payload.bytes) {
    if (each != static_cast<std::byte>(value)) return false;
  }
  return true;
}

void write_all(const PrivateMemory::Lent& batch) {
  std::memset(writable(batch.payload.bytes), 99, batch.payload.bytes.size());
}

}  // namespace

TEST_CASE("client: whatever is written, each batch shows what the arena has") {
  SealedArena arena;
  const auto memory = std::make_shared<PrivateMemory>();
  for (int i = 0; i < 50; ++i) {
    arena.fill(0, SealedArena::size(), i);
    const auto batch = lent(*memory, arena, i % 2 == 0 ? kFirst : kSecond);
    REQUIRE(shows(batch, i));
    CHECK_FALSE(batch.payload.shared);
    CHECK(reinterpret_cast<std::uintptr_t>(batch.payload.bytes.data()) % kTensorAlignment == 0);
    write_all(batch);
  }
}

TEST_CASE("client: a batch that is held keeps what was written while others come and go") {
  SealedArena arena;
  const auto memory = std::make_shared<PrivateMemory>();
  const auto held = lent(*memory, arena, kFirst);
  write_all(held);
  for (int i = 0; i < 20; ++i) {
    arena.fill(kSecond.offset, kSecond.bytes, i);
    auto other = lent(*memory, arena, kSecond);
    REQUIRE(shows(other, i));
    write_all(other);
    std::thread([gone = std::move(other)] {}).join();  // released by another thread
    CHECK(shows(held, 99));
  }
}

TEST_CASE("client: the same place held twice has two memories") {
  SealedArena arena;
  const auto memory = std::make_shared<PrivateMemory>();
  const auto one = lent(*memory, arena, kFirst);
  write_all(one);
  const auto two = lent(*memory, arena, kFirst);
  CHECK(shows(two, 0));
  write_all(two);
  CHECK(shows(one, 99));
}

TEST_CASE("client: an arena that grew is seen again, and held batches keep the smaller one") {
  SealedArena small;
  SealedArena large;
  large.fill(0, SealedArena::size(), 3);
  const auto memory = std::make_shared<PrivateMemory>();
  const auto before = lent(*memory, small, kFirst);
  write_all(before);
  small.unmap();
  const auto behind = lent(*memory, large, kFirst);
  CHECK(shows(behind, 3));
  CHECK(shows(before, 99));
}

TEST_CASE("client: a buffer is used again once its batch is released") {
  SealedArena arena;
  const auto memory = std::make_shared<PrivateMemory>();
  auto batch = lent(*memory, arena, kFirst);
  const void* const place = batch.payload.bytes.data();
  batch = {};
  batch = lent(*memory, arena, kFirst);
  CHECK(batch.payload.bytes.data() == place);
  const std::weak_ptr<const void> buffer = batch.payload.keeper;
  memory->close();
  CHECK_FALSE(buffer.expired());
  batch = {};
  CHECK(buffer.expired());
}

TEST_CASE("client: memory that is kept by itself stays mapped after batch and subscription") {
  SealedArena arena;
  const auto memory = std::make_shared<PrivateMemory>();
  const auto held = lent(*memory, arena, kFirst);
  auto copy = lent(*memory, arena, kFirst);
  write_all(copy);
  const auto keeper = copy.payload.keeper;
  const std::byte* place = copy.payload.bytes.data();
  copy = {};
  memory->close();
  CHECK(*place == std::byte{99});
}

TEST_CASE("client: a place outside of the arena is refused before anything is lent") {
  SealedArena arena;
  const auto memory = std::make_shared<PrivateMemory>();
  CHECK_FALSE(memory->lend(arena.mapping(), {{SealedArena::size() - 10, 11}, {}}));
  CHECK_FALSE(memory->lend(arena.mapping(), {{UINT64_MAX, 11}, {}}));
}

TEST_CASE("client: a batch that was prepared shows what the arena had then, in a buffer") {
  SealedArena arena;
  const auto memory = std::make_shared<PrivateMemory>();
  write_all(lent(*memory, arena, kFirst));
  for (int i = 1; i < 50; ++i) {
    const LeaseNumber lease{static_cast<std::uint64_t>(i)};
    arena.fill(0, SealedArena::size(), i);
    memory->prepare(arena.mapping(), {kSecond, lease});
    const auto batch = lent(*memory, arena, kSecond, lease);
    REQUIRE(shows(batch, i));
    write_all(batch);
  }
}

TEST_CASE("client: a batch is not taken for the one that was prepared in its place") {
  SealedArena arena;
  const auto memory = std::make_shared<PrivateMemory>();
  write_all(lent(*memory, arena, kFirst));
  arena.fill(0, SealedArena::size(), 1);
  arena.fill(kSecond.offset, kSecond.bytes, 7);
  memory->prepare(arena.mapping(), {kSecond, LeaseNumber{1}});
  CHECK(shows(lent(*memory, arena, kFirst, LeaseNumber{1}), 1));
  memory->prepare(arena.mapping(), {kSecond, LeaseNumber{1}});
  arena.fill(0, SealedArena::size(), 2);
  CHECK(shows(lent(*memory, arena, kSecond, LeaseNumber{2}), 2));
  memory->prepare(arena.mapping(), {kSecond, LeaseNumber{3}});
  memory->forget_prepared();
  arena.fill(0, SealedArena::size(), 3);
  CHECK(shows(lent(*memory, arena, kSecond, LeaseNumber{3}), 3));
}

TEST_CASE("client: what is prepared for a subscription that ends is let go of") {
  SealedArena arena;
  const auto memory = std::make_shared<PrivateMemory>();
  write_all(lent(*memory, arena, kFirst));
  const std::weak_ptr<const Mapping> mapping = arena.mapping();
  memory->prepare(arena.mapping(), {kSecond, LeaseNumber{1}});
  memory->close();
  arena.unmap();
  CHECK(eventually([&mapping] { return mapping.expired(); }));
}

TEST_CASE("client: a place outside of the arena is not prepared") {
  SealedArena arena;
  const auto memory = std::make_shared<PrivateMemory>();
  write_all(lent(*memory, arena, kFirst));
  memory->prepare(arena.mapping(), {{UINT64_MAX, 11}, LeaseNumber{1}});
  CHECK(shows(lent(*memory, arena, kFirst, LeaseNumber{1}), 0));
}
