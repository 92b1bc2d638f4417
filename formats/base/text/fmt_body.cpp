// What stands behind fmt::format(), for libraries that must not need fmt's shared library. Used
// header-only, fmt would be compiled into every file that formats a sentence, 2 s each (7 s with
// -O3); here it is compiled once, and the other files call vformat() as they would in the shared
// library. Both may meet in one program: here the function is weak.

#include <fmt/format.h>

namespace batchwright {
namespace {

// The compiler emits an inline function only where one is used.
[[gnu::used]] std::string (*const body)(fmt::string_view, fmt::format_args) = fmt::vformat;
#ifdef BATCHWRIGHT_MINIMAL  // which has no fmt beside it, and a daemon that prints
[[gnu::used]] void (*const print)(fmt::string_view, fmt::format_args) = fmt::vprint;
[[gnu::used]] void (*const print_to)(std::FILE*, fmt::string_view, fmt::format_args) = fmt::vprint;
// Headers alone leave these to fmt's library.
[[gnu::used]] char (*const point)(fmt::detail::locale_ref) = fmt::detail::decimal_point_impl<char>;
[[gnu::used]] fmt::detail::thousands_sep_result<char> (*const separator)(fmt::detail::locale_ref) =
    fmt::detail::thousands_sep_impl<char>;
#endif

}  // namespace
}  // namespace batchwright
