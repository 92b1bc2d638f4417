#include "client/library/memory/copy_buffers.h"

#include <doctest/doctest.h>

#include <cstring>

using namespace batchwright;

namespace {

constexpr std::size_t kSmall = 1000;
constexpr std::size_t kLarge = std::size_t{5} << 20;

}  // namespace

TEST_CASE("client: a buffer has room for what was asked, and is used again") {
  CopyBuffers buffers;
  auto first = buffers.take(kLarge);
  REQUIRE(first);
  REQUIRE(first->bytes().size() >= kLarge);
  std::memset(first->bytes().data(), 1, first->bytes().size());
  const auto* place = first->bytes().data();
  auto second = buffers.take(kLarge);
  CHECK(second->bytes().data() != place);
  buffers.give_back(std::move(second));
  buffers.give_back(std::move(first));
  CHECK(buffers.take(kSmall)->bytes().data() == place);  // the last one back
}

TEST_CASE("client: buffers that are too small make room for larger ones") {
  CopyBuffers buffers;
  auto small = buffers.take(kSmall);
  const std::weak_ptr<CopyBuffer> free = small;
  auto held = buffers.take(kSmall);
  const std::weak_ptr<CopyBuffer> out = held;
  buffers.give_back(std::move(small));
  auto large = buffers.take(kLarge);
  CHECK(large->bytes().size() >= kLarge);
  CHECK(free.expired());
  buffers.give_back(std::move(held));
  CHECK(out.expired());
}

TEST_CASE("client: closed buffers are freed at once, and those that are out when they are back") {
  CopyBuffers buffers;
  auto one = buffers.take(kSmall);
  auto other = buffers.take(kSmall);
  const std::weak_ptr<CopyBuffer> free = one;
  const std::weak_ptr<CopyBuffer> out = other;
  buffers.give_back(std::move(one));
  CHECK_FALSE(free.expired());
  buffers.close();
  CHECK(free.expired());
  buffers.give_back(std::move(other));
  CHECK(out.expired());
}

TEST_CASE("client: a buffer that cannot be had is none") {
  CHECK_FALSE(CopyBuffers().take(std::size_t{1} << 60));
}
