// The one file that compiles Boost.JSON; others include <boost/json.hpp> and link boost_json.
#include <boost/json/src.hpp>
