#include <doctest/doctest.h>

#include <stdexcept>

#include "daemon/http/http.h"

using namespace batchwright;
using namespace std::chrono_literals;

namespace {

/// A text that tells how often it was made, and the clock it goes by.
struct Made {
  int times = 0;
  bool broken = false;
  std::chrono::milliseconds takes{0};
  CachedResponse::Clock::time_point now{};
  CachedResponse kept{[this] {
                        if (broken) throw std::runtime_error("no figures");
                        now += takes;
                        return std::to_string(++times);
                      },
                      [this] { return now; }};
};

}  // namespace

TEST_CASE("http: however many ask for a text at once, it is made once") {
  Made made;
  for (int i = 0; i < 1000; ++i) CHECK(made.kept.text() == "1");
  made.now += CachedResponse::kKept - 1ms;
  CHECK(made.kept.text() == "1");
}

TEST_CASE("http: a text that was kept long enough is made again") {
  Made made;
  CHECK(made.kept.text() == "1");
  made.now += CachedResponse::kKept;
  CHECK(made.kept.text() == "2");
  CHECK(made.kept.text() == "2");
}

TEST_CASE("http: a text that takes long to make is kept as long as any") {
  Made made;
  made.takes = 2 * CachedResponse::kKept;
  CHECK(made.kept.text() == "1");
  made.now += CachedResponse::kKept - 1ms;
  CHECK(made.kept.text() == "1");
}

TEST_CASE("http: a text that cannot be made is tried again at once") {
  Made made;
  made.broken = true;
  CHECK_THROWS(made.kept.text());
  CHECK_THROWS(made.kept.text());
  made.broken = false;
  CHECK(made.kept.text() == "1");
}
