#include "client/library/memory/private_memory.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <cstdint>
#include <thread>

#include "tests/client/memory/child.h"
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

/// Where the view of the arena is; null for a copy.
const void* memory_of(const PrivateMemory::Lent& batch) {
  return batch.payload.memory.size() == SealedArena::size() ? batch.payload.memory.data() : nullptr;
}

}  // namespace

TEST_CASE("client: the habit of writing is what the last look says of it") {
  WriteHabit habit;
  CHECK_FALSE(habit.copies());
  habit.note(0, 700);
  CHECK_FALSE(habit.copies());
  habit.note(700 / WriteHabit::kOneOf - 1, 700);
  CHECK_FALSE(habit.copies());
  habit.note(700, 700);
  CHECK(habit.copies());
  habit.note(0, 700);
  CHECK_FALSE(habit.copies());
}

TEST_CASE("client: a look at the habit of writing is at one batch, also while it is out") {
  WriteHabit habit;
  habit.note(1, 1);
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < WriteHabit::kLookAtOneOf - 1; ++i) {
      REQUIRE(habit.copies());
      habit.count();
    }
    CHECK_FALSE(habit.copies());
    habit.count();
  }
  CHECK(habit.copies());
}

TEST_CASE("client: batches that are not written to are read in one mapping, and never copied") {
  SealedArena arena;
  const auto memory = std::make_shared<PrivateMemory>();
  const void* seen = nullptr;
  for (int i = 0; i < 10; ++i) {
    arena.fill(0, SealedArena::size(), i);
    const auto batch = lent(*memory, arena, i % 2 == 0 ? kFirst : kSecond);
    CHECK(shows(batch, i));
    CHECK_FALSE(batch.payload.shared);
    REQUIRE(memory_of(batch) != nullptr);
    if (i > 0) CHECK(memory_of(batch) == seen);
    seen = memory_of(batch);
  }
}

TEST_CASE("client: whatever is written, each batch shows what the arena has, in both ways") {
  SealedArena arena;
  const auto memory = std::make_shared<PrivateMemory>();
  std::size_t views = 0;
  const auto rounds = static_cast<int>(2 * WriteHabit::kLookAtOneOf + 10);
  for (int i = 0; i < rounds; ++i) {
    arena.fill(0, SealedArena::size(), i % 50);
    const auto batch = lent(*memory, arena, kFirst);
    REQUIRE(shows(batch, i % 50));
    CHECK(reinterpret_cast<std::uintptr_t>(batch.payload.bytes.data()) % kTensorAlignment == 0);
    views += memory_of(batch) != nullptr ? 1 : 0;
    write_all(batch);
  }
  CHECK(views == 3);  // the first, and two that looked whether the habit has changed
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

TEST_CASE("client: an arena that grew is seen anew, and held batches keep the smaller one") {
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

TEST_CASE("client: a private view goes with its mapping, or with the subscription") {
  SealedArena arena;
  const auto memory = std::make_shared<PrivateMemory>();
  const auto view_of = [](const PrivateMemory::Lent& batch) {
    return std::weak_ptr<const void>(batch.payload.keeper);
  };
  auto batch = lent(*memory, arena, kFirst);
  const auto first = view_of(batch);
  batch = {};
  CHECK_FALSE(first.expired());
  arena.unmap();
  CHECK(first.expired());
  SealedArena other;
  batch = lent(*memory, other, kFirst);
  const auto second = view_of(batch);
  memory->close();
  CHECK_FALSE(second.expired());
  batch = {};
  CHECK(second.expired());
}

TEST_CASE("client: memory that is kept by itself stays mapped behind batch and subscription") {
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

TEST_CASE("client: a batch that was prepared shows what the arena had then, in a seat") {
  SealedArena arena;
  const auto memory = std::make_shared<PrivateMemory>();
  write_all(lent(*memory, arena, kFirst));
  for (int i = 1; i < 50; ++i) {
    const LeaseNumber lease{static_cast<std::uint64_t>(i)};
    arena.fill(0, SealedArena::size(), i);
    memory->prepare(arena.mapping(), {kSecond, lease});
    const auto batch = lent(*memory, arena, kSecond, lease);
    REQUIRE(shows(batch, i));
    CHECK(memory_of(batch) == nullptr);
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

#ifndef BATCHWRIGHT_SANITIZED  // whose runtime needs a pipe to see whether it may read an object
TEST_CASE("client: without a descriptor to spare all batches are copies") {
  SealedArena arena;
  arena.fill(0, SealedArena::size(), 3);
  CHECK(holds_in_child([&arena] {
    const rlimit none{0, 0};  // /proc/self/pagemap cannot be opened
    setrlimit(RLIMIT_NOFILE, &none);
    const auto memory = std::make_shared<PrivateMemory>();
    const auto one = memory->lend(arena.mapping(), {kFirst, {}});
    memory->prepare(arena.mapping(), {kSecond, LeaseNumber{1}});
    const auto other = memory->lend(arena.mapping(), {kSecond, LeaseNumber{1}});
    return one && other && memory_of(*one) == nullptr && memory_of(*other) == nullptr &&
           shows(*one, 3) && shows(*other, 3);
  }));
}
#endif
