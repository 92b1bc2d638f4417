#include "daemon/readiness.h"

#include <doctest/doctest.h>

using namespace batchwright;
using News = Readiness::News;

TEST_CASE("daemon: it is ready once no feed is starting, and says so once") {
  Readiness readiness;
  CHECK(readiness.next({.starting = true}) == News::none);
  CHECK(readiness.next({}) == News::ready);
  CHECK(readiness.next({}) == News::status);
  CHECK(readiness.next({.starting = true}) == News::status);
}

TEST_CASE("daemon: after a reload it is ready again once the new feeds are") {
  Readiness readiness;
  CHECK(readiness.next({}) == News::ready);
  CHECK(readiness.next({.reloading = true}) == News::status);
  readiness.reloaded();
  CHECK(readiness.next({.starting = true}) == News::none);
  CHECK(readiness.next({}) == News::ready);
}

TEST_CASE("daemon: a refused reload leaves it ready, even while a feed is starting") {
  Readiness readiness;
  CHECK(readiness.next({}) == News::ready);
  readiness.reloaded();
  CHECK(readiness.next({.starting = true, .refused = true}) == News::still_ready);
}

TEST_CASE("daemon: a reload that is refused before it was ever ready does not make it so") {
  Readiness readiness;
  readiness.reloaded();
  CHECK(readiness.next({.starting = true, .refused = true}) == News::none);
  CHECK(readiness.next({.refused = true}) == News::ready);
}
