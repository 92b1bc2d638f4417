#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stop_token>
#include <string>

#include "daemon/assembly/assembly.h"

using namespace batchwright;

namespace {

constexpr std::size_t kPage = 4096;

/// A client's mapping of an arena.
struct Mapping {
  Mapping(int descriptor, std::size_t bytes)
      : size(bytes), address(::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor, 0)) {}
  Mapping(const Mapping&) = delete;
  ~Mapping() {
    if (address != MAP_FAILED) ::munmap(address, size);
  }
  const char* text() const { return static_cast<const char*>(address); }
  std::size_t size;
  void* address;
};

std::unique_ptr<Arena> make_arena(std::uint32_t slots, std::size_t slot_bytes) {
  auto arena = Arena::create(slots, slot_bytes, HugePages::off);
  REQUIRE(arena);
  return std::move(*arena);
}

/// Bytes this process has locked, as the kernel says.
std::size_t locked_bytes() {
  std::ifstream in("/proc/self/status");
  std::size_t kib = 0;
  for (std::string word; in >> word;) {
    if (word == "VmLck:") in >> kib;
  }
  return kib * 1024;
}

/// Sanitizers put in the place of mlock() a function that does nothing and reports success.
bool mlock_does_something() {
  alignas(kPage) static std::byte page[kPage];
  const std::size_t before = locked_bytes();
  const bool accepted = ::mlock(page, kPage) == 0;
  const bool grown = locked_bytes() != before;
  ::munlock(page, kPage);
  return accepted == grown;
}

}  // namespace

TEST_CASE("assembly: an arena that is to stop is given up") {
  std::stop_source stop;
  CHECK(Arena::create(1, kPage, HugePages::automatic, stop.get_token()));
  stop.request_stop();
  const auto given_up = Arena::create(1, kPage, HugePages::automatic, stop.get_token());
  REQUIRE_FALSE(given_up);
  CHECK(given_up.error().code == ErrorCode::disconnected);
}

TEST_CASE("assembly: an arena's slots are whole pages, one after the other") {
  const auto arena = make_arena(3, kPage + 1);
  CHECK(arena->slot_bytes() == 2 * kPage);
  CHECK(arena->bytes() == 6 * kPage);
  CHECK(reinterpret_cast<std::uintptr_t>(arena->slot(SlotIndex{0}).data()) % kPage == 0);
  CHECK(arena->slot(SlotIndex{2}).size() == 2 * kPage);
  CHECK(arena->slot(SlotIndex{2}).data() == arena->slot(SlotIndex{0}).data() + 4 * kPage);
}

TEST_CASE("assembly: every page of an arena is taken when it is created") {
  const auto arena = make_arena(4, 64 * kPage);
  struct stat status {};
  REQUIRE(::fstat(arena->descriptor(), &status) == 0);
  CHECK(static_cast<std::size_t>(status.st_blocks) * 512 >= arena->bytes());
  std::vector<unsigned char> resident(arena->bytes() / kPage);
  REQUIRE(::mincore(arena->slot(SlotIndex{0}).data(), arena->bytes(), resident.data()) == 0);
  for (const unsigned char page : resident) CHECK((page & 1) == 1);
}

TEST_CASE("assembly: a client can map an arena read-only and in no other way") {
  const auto arena = make_arena(2, kPage);
  const int own = arena->descriptor();
  CHECK(::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, own, 0) == MAP_FAILED);
  CHECK(errno == EPERM);
  const Mapping mapping(own, arena->bytes());
  REQUIRE(mapping.address != MAP_FAILED);
  CHECK(::mprotect(mapping.address, kPage, PROT_READ | PROT_WRITE) == -1);
  CHECK(errno == EACCES);
  CHECK(::pwrite(own, "x", 1, 0) == -1);
  CHECK(::fallocate(own, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kPage) == -1);
  const std::string path = "/proc/self/fd/" + std::to_string(own);
  const int reopened = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(reopened >= 0);
  CHECK(::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, reopened, 0) == MAP_FAILED);
  ::close(reopened);
}

TEST_CASE("assembly: an arena neither shrinks nor grows nor takes other seals") {
  const auto arena = make_arena(2, kPage);
  CHECK(::ftruncate(arena->descriptor(), kPage) == -1);
  CHECK(errno == EPERM);
  CHECK(::ftruncate(arena->descriptor(), 8 * kPage) == -1);
  CHECK(errno == EPERM);
  CHECK(::fcntl(arena->descriptor(), F_ADD_SEALS, F_SEAL_WRITE) == -1);
}

TEST_CASE("assembly: a read-only mapping sees what is written afterwards") {
  const auto arena = make_arena(2, kPage);
  const Mapping mapping(arena->descriptor(), arena->bytes());
  REQUIRE(mapping.address != MAP_FAILED);
  CHECK(mapping.text()[kPage] == 0);
  std::memcpy(arena->slot(SlotIndex{1}).data(), "later", 6);
  CHECK(std::string(mapping.text() + kPage) == "later");
}

TEST_CASE("assembly: what a client has mapped outlives the arena") {
  auto arena = make_arena(1, kPage);
  std::memcpy(arena->slot(SlotIndex{0}).data(), "still here", 11);
  const Mapping mapping(arena->descriptor(), arena->bytes());
  REQUIRE(mapping.address != MAP_FAILED);
  arena.reset();
  CHECK(std::string(mapping.text()) == "still here");
}

TEST_CASE("assembly: an arena that memory cannot hold is refused with the figures") {
  const auto arena = Arena::create(1024, std::size_t{1} << 40);
  REQUIRE_FALSE(arena);
  CHECK(arena.error().code == ErrorCode::does_not_fit);
  CHECK(arena.error().message.find("need 1073741824.0 MiB") != std::string::npos);
  const auto endless = Arena::create(0xFFFFFFFF, ~std::size_t{0} - (std::size_t{1} << 20));
  REQUIRE_FALSE(endless);
  CHECK(endless.error().message.find("over 2^64") != std::string::npos);
  const auto passing = Arena::create(1, ~std::size_t{0});
  REQUIRE_FALSE(passing);
  CHECK(passing.error().code == ErrorCode::does_not_fit);
}

TEST_CASE("assembly: an arena of no slots or no bytes is refused") {
  CHECK(Arena::create(0, kPage).error().code == ErrorCode::invalid_argument);
  CHECK(Arena::create(1, 0).error().code == ErrorCode::invalid_argument);
}

TEST_CASE("assembly: an arena says truly how its pages are kept") {
  if (!mlock_does_something()) {
    MESSAGE("skipped: mlock() is a sanitizer's");
    return;
  }
  const std::size_t before = locked_bytes();
  const auto arena = make_arena(2, 16 * kPage);
  const std::size_t locked = locked_bytes() - before;
  CHECK((arena->pinned() == PinState::locked) == (locked == arena->bytes()));
  CHECK(to_string(arena->pinned()) != "unknown");
}

TEST_CASE("assembly: with a GPU and CUDA an arena is registered with it") {
  if (!BATCHWRIGHT_BUILT_WITH_CUDA || std::system("nvidia-smi >/dev/null 2>&1") != 0) {
    MESSAGE("skipped: no CUDA in this build, or no GPU that answers");
    return;
  }
  CHECK(make_arena(2, 16 * kPage)->pinned() == PinState::cuda);
}

TEST_CASE("assembly: an arena lies in huge pages where the machine has them, and only if it may") {
  constexpr std::size_t kSlot = std::size_t{8} << 20;
  const HugePageRoom room = huge_page_room();
  const auto off = Arena::create(2, kSlot, HugePages::off);
  REQUIRE(off);
  CHECK((*off)->pages() == PageKind::small);
  const auto found = Arena::create(2, kSlot);
  REQUIRE(found);
  const auto required = Arena::create(2, kSlot, HugePages::require);
  if (!required) {
    CHECK(required.error().code == ErrorCode::does_not_fit);
    CHECK(required.error().message.find("huge pages are required; found: ") != std::string::npos);
    CHECK_FALSE((room.page_bytes != 0 && room.reserved_free >= 4 * kSlot));
    return;
  }
  CHECK((*required)->pages() != PageKind::small);
  CHECK((*required)->bytes() == 2 * kSlot);
  // All of it can be written and read, the last byte too.
  for (std::uint32_t i = 0; i < 2; ++i) {
    const auto slot = (*required)->slot(SlotIndex{i});
    std::memset(slot.data(), static_cast<int>(i) + 1, slot.size());
  }
  const Mapping mapping((*required)->descriptor(), (*required)->bytes());
  REQUIRE(mapping.address != MAP_FAILED);
  CHECK(mapping.text()[0] == 1);
  CHECK(mapping.text()[2 * kSlot - 1] == 2);
}

TEST_CASE("assembly: a kernel that cannot make arenas is named, with the one that is needed") {
  CHECK(check_kernel());
  const auto old = check_kernel([](int, int) {
    errno = EINVAL;
    return -1;
  });
  REQUIRE_FALSE(old);
  CHECK(old.error().code == ErrorCode::bad_configuration);
  CHECK(old.error().message.starts_with("this kernel is Linux "));
  CHECK(old.error().message.find("needed: 5.1 or later") != std::string::npos);
  // What may pass is left to the arena.
  CHECK(check_kernel([](int, int) {
    errno = ENOMEM;
    return -1;
  }));
}
