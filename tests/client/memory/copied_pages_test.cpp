#include "client/library/memory/copied_pages.h"

#include <doctest/doctest.h>

#include "tests/client/memory/child.h"
#include "tests/client/memory/sealed_arena.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

const Pages kAll{0, SealedArena::kPages};

struct Unmap {
  void operator()(std::byte* start) const noexcept { munmap(start, SealedArena::size()); }
};
using PrivatePages = std::unique_ptr<std::byte, Unmap>;

PrivatePages privately(const SealedArena& arena) {
  void* start = mmap(nullptr, SealedArena::size(), PROT_READ | PROT_WRITE, MAP_PRIVATE,
                     arena.mapping()->descriptor(), 0);
  REQUIRE(start != MAP_FAILED);
  return PrivatePages(static_cast<std::byte*>(start));
}

}  // namespace

TEST_CASE("client: copied pages are told from others, by marks and by the kernel's list") {
  for (const bool may_mark : {true, false}) {
    SealedArena arena;
    const PrivatePages pages = privately(arena);
    const CopiedPages copies({pages.get(), SealedArena::size()}, may_mark);
    REQUIRE(copies.can_tell());
    copies.drop(kAll);
    CHECK(copies.drop(kAll) == 0);
    for (const std::size_t page : {0U, 7U, 8U, 9U, 1023U}) pages.get()[page * kPage] = std::byte{1};
    std::byte read{};
    for (std::size_t page = 0; page < SealedArena::kPages; ++page) {
      read |= pages.get()[page * kPage + 1];
    }
    CHECK(read == std::byte{0});
    CHECK(copies.drop({1, 9}) == 2);
    CHECK(pages.get()[7 * kPage] == std::byte{0});
    CHECK(pages.get()[9 * kPage] == std::byte{1});
    CHECK(copies.drop(kAll) == 3);
    CHECK(copies.drop(kAll) == 0);
  }
}

TEST_CASE("client: a page that was dropped is told again when it is written to again") {
  for (const bool may_mark : {true, false}) {
    SealedArena arena;
    const PrivatePages pages = privately(arena);
    const CopiedPages copies({pages.get(), SealedArena::size()}, may_mark);
    copies.drop(kAll);
    for (int i = 0; i < 3; ++i) {
      pages.get()[5 * kPage] = std::byte{1};
      arena.fill(0, SealedArena::size(), 2 + i);
      CHECK(copies.drop({5, 6}) == 1);
      CHECK(pages.get()[5 * kPage] == static_cast<std::byte>(2 + i));
    }
  }
}

TEST_CASE("client: every second page written to is more runs than are told at once") {
  for (const bool may_mark : {true, false}) {
    SealedArena arena;
    const PrivatePages pages = privately(arena);
    const CopiedPages copies({pages.get(), SealedArena::size()}, may_mark);
    copies.drop(kAll);
    for (std::size_t page = 0; page < kAll.end; page += 2) pages.get()[page * kPage] = std::byte{1};
    CHECK(copies.drop(kAll) == kAll.end / 2);
    CHECK(copies.drop(kAll) == 0);
    CHECK(pages.get()[(kAll.end - 2) * kPage] == std::byte{0});
  }
}

TEST_CASE("client: a forked child takes no marks from its parent") {
  SealedArena arena;
  const PrivatePages pages = privately(arena);
  const CopiedPages copies({pages.get(), SealedArena::size()});
  copies.drop(kAll);
  pages.get()[0] = std::byte{1};
  CHECK(holds_in_child([&pages] {
    pages.get()[kPage] = std::byte{1};
    return true;
  }));
  pages.get()[2 * kPage] = std::byte{1};
  CHECK(copies.drop(kAll) == 2);
}
