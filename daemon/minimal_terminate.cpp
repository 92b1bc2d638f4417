#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>

// Of a minimal build: to name the type of an exception that nothing catches, the C++ library brings
// a demangler of 60 KiB. Its what() says enough.
namespace __gnu_cxx {

void __verbose_terminate_handler();

void __verbose_terminate_handler() {
  static bool at_work = false;
  if (std::exchange(at_work, true)) std::abort();  // no memory to look at the exception
  if (const std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "batchwrightd: not caught: %s\n", error.what());
    } catch (...) {
      std::fputs("batchwrightd: not caught: an exception of an unknown type\n", stderr);
    }
  } else {
    std::fputs("batchwrightd: ended without an exception\n", stderr);
  }
  std::abort();
}

}  // namespace __gnu_cxx
