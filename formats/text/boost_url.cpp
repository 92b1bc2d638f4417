// The one file that compiles Boost.URL; others include its headers and link boost_url.
#include <boost/url/src.hpp>
