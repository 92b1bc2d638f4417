#include <boost/assert/source_location.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>

// Of a minimal build, whose rooms have no exceptions: what the C++ library or Boost throws, lack of
// memory as a rule, ends the daemon with a line. This file alone is compiled so that it can look at
// one. To name the type, too, the C++ library would bring a demangler of 60 KiB; what() says
// enough.
namespace {

[[noreturn]] void end_with(const char* what) {
  std::fprintf(stderr, "batchwrightd: cannot go on: %s\n", what);
  std::abort();
}

}  // namespace

namespace __gnu_cxx {

void __verbose_terminate_handler();

void __verbose_terminate_handler() {
  static bool at_work = false;
  if (std::exchange(at_work, true)) std::abort();  // no memory to look at the exception
  const std::exception_ptr thrown = std::current_exception();
  if (!thrown) end_with("terminated without an exception");
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    end_with(error.what());
  } catch (...) {
    end_with("an exception of an unknown type");
  }
}

}  // namespace __gnu_cxx

namespace boost {

// Declared here as BOOST_NO_EXCEPTIONS wants them, with or without a place.
[[noreturn]] void throw_exception(const std::exception& thrown);
[[noreturn]] void throw_exception(const std::exception& thrown, const source_location& where);

void throw_exception(const std::exception& thrown) { end_with(thrown.what()); }
void throw_exception(const std::exception& thrown, const source_location&) {
  end_with(thrown.what());
}

}  // namespace boost
