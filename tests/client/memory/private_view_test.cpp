#include "client/library/memory/private_view.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

#include "tests/client/memory/child.h"
#include "tests/client/memory/sealed_arena.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// Two slots of four pages, and batches that begin behind their slots' beginnings.
const Place kOne{64, 3 * kPage};
const Place kOther{4 * kPage + 64, 3 * kPage};

}  // namespace

TEST_CASE("client: a page of a private view is a copy only once it is written to") {
  SealedArena arena;
  arena.fill(0, SealedArena::size(), 1);
  const auto view = PrivateView::map(*arena.mapping());
  REQUIRE(view);
  REQUIRE(view->hold(kOne));
  CHECK(view->bytes()[kOne.offset] == std::byte{1});
  arena.fill(0, SealedArena::size(), 2);
  CHECK(view->bytes()[kOne.offset] == std::byte{2});
  writable(view->bytes())[kOne.offset + kPage] = std::byte{9};
  CHECK(arena.daemons()[kOne.offset + kPage] == std::byte{2});
  CHECK(arena.mapping()->bytes()[kOne.offset + kPage] == std::byte{2});
  arena.fill(0, SealedArena::size(), 3);
  CHECK(view->bytes()[kOne.offset] == std::byte{3});
  CHECK(view->bytes()[kOne.offset + kPage] == std::byte{9});
}

TEST_CASE("client: the end of a batch drops exactly the pages that were written to") {
  SealedArena arena;
  const auto view = PrivateView::map(*arena.mapping());
  REQUIRE(view->hold(kOne));
  REQUIRE(view->hold(kOther));
  std::byte* const bytes = writable(view->bytes());
  bytes[kOne.offset] = std::byte{9};
  bytes[kOne.offset + 2 * kPage] = std::byte{9};
  bytes[kOther.offset] = std::byte{9};
  arena.fill(0, SealedArena::size(), 4);
  CHECK(view->end(kOne) == 2);
  CHECK(bytes[kOne.offset] == std::byte{4});
  CHECK(bytes[kOne.offset + 2 * kPage] == std::byte{4});
  CHECK(bytes[kOther.offset] == std::byte{9});
  CHECK(view->end(kOther) == 1);
}

TEST_CASE("client: what is written behind a batch's end is not in the next one of its slot") {
  SealedArena arena;
  const auto view = PrivateView::map(*arena.mapping());
  REQUIRE(view->hold(kOne));
  CHECK(view->end(kOne) == 0);
  writable(view->bytes())[kOne.offset + kPage] = std::byte{9};
  arena.fill(0, SealedArena::size(), 5);
  REQUIRE(view->hold(kOne));
  CHECK(view->bytes()[kOne.offset + kPage] == std::byte{5});
}

TEST_CASE("client: a page has one holder") {
  SealedArena arena;
  const auto view = PrivateView::map(*arena.mapping());
  REQUIRE(view->hold(kOne));
  CHECK_FALSE(view->hold(kOne));
  CHECK_FALSE(view->hold({kOne.offset + kOne.bytes, 10}));  // behind it, on its last page
  CHECK(view->hold({4 * kPage, 1}));
  view->end(kOne);
  CHECK(view->hold(kOne));
}

TEST_CASE("client: a batch of more pages than are looked at once is clean to its last page") {
  SealedArena arena;
  const Place all{0, SealedArena::size()};
  const auto view = PrivateView::map(*arena.mapping());
  REQUIRE(view->hold(all));
  std::memset(writable(view->bytes()), 9, SealedArena::size());
  CHECK(view->end(all) == SealedArena::kPages);
  CHECK(view->bytes().back() == std::byte{0});
}

TEST_CASE("client: a forked child's writes to a private view are the child's") {
  SealedArena arena;
  const auto view = PrivateView::map(*arena.mapping());
  REQUIRE(view->hold(kOne));
  std::byte* const bytes = writable(view->bytes());
  bytes[kOne.offset] = std::byte{9};
  CHECK(holds_in_child([bytes] {
    bytes[kOne.offset + 1] = std::byte{8};
    return bytes[kOne.offset] == std::byte{9};
  }));
  CHECK(bytes[kOne.offset + 1] == std::byte{0});
  CHECK(view->end(kOne) == 1);
  CHECK(bytes[kOne.offset] == std::byte{0});
}

TEST_CASE(
    "client: a program that locks its memory gets no private view, which would be all copies") {
  SealedArena arena;
  CHECK(holds_in_child([&arena] {
    return syscall(SYS_mlockall, MCL_FUTURE) != 0 || PrivateView::map(*arena.mapping()) == nullptr;
  }));
}

TEST_CASE("client: a private view that was locked is not shown again, for it keeps its copies") {
  SealedArena arena;
  const auto view = PrivateView::map(*arena.mapping());
  REQUIRE(view->hold(kOne));
  std::byte* const bytes = writable(view->bytes());
  bytes[kOne.offset] = std::byte{9};
  if (syscall(SYS_mlock, bytes, kPage) != 0) return;  // RLIMIT_MEMLOCK
  CHECK(view->end(kOne) > 0);
  CHECK_FALSE(view->hold(kOne));
  syscall(SYS_munlock, bytes, kPage);
  CHECK_FALSE(view->hold(kOne));
}

TEST_CASE(
    "client: the kernel writes to a private view for a system call, and that is dropped, too") {
  SealedArena arena;
  const auto view = PrivateView::map(*arena.mapping());
  REQUIRE(view->hold(kOne));
  std::byte* const bytes = writable(view->bytes());
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  const Descriptor out(ends[0]);
  const Descriptor in(ends[1]);
  REQUIRE(write(in.get(), "word", 4) == 4);
  CHECK(read(out.get(), bytes + kOne.offset, 4) == 4);
  CHECK(bytes[kOne.offset] == std::byte{'w'});
  CHECK(view->end(kOne) == 1);
  CHECK(bytes[kOne.offset] == std::byte{0});
}
