// The one file that compiles Boost.URL; others include its headers and link boost_url.
#include <ostream>

// It includes <iostream> and uses none of it: every program would set up the standard streams.
#define _GLIBCXX_IOSTREAM 1  // NOLINT(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
#include <boost/url/src.hpp>
