#pragma once

#include <doctest/doctest.h>
#include <pthread.h>

#include <cstddef>

namespace batchwright::test {

/// While it lives no thread can be had: each would take a stack that no address space has room for.
class NoThreads {
 public:
  NoThreads() : before_(stack()) { set_stack(std::size_t{1} << 47); }
  ~NoThreads() { set_stack(before_); }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  static std::size_t stack() {
    pthread_attr_t all;
    std::size_t bytes = 0;
    REQUIRE(pthread_getattr_default_np(&all) == 0);
    REQUIRE(pthread_attr_getstacksize(&all, &bytes) == 0);
    pthread_attr_destroy(&all);
    return bytes;
  }
  static void set_stack(std::size_t bytes) {
    pthread_attr_t all;
    REQUIRE(pthread_getattr_default_np(&all) == 0);
    REQUIRE(pthread_attr_setstacksize(&all, bytes) == 0);
    REQUIRE(pthread_setattr_default_np(&all) == 0);
    pthread_attr_destroy(&all);
  }

  std::size_t before_;
};

}  // namespace batchwright::test
