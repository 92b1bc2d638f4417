#pragma once

#include <boost/json/value.hpp>
#include <string>

namespace batchwright {

/// Prints one JSON value on a line of standard output. Names come from file systems and other
/// programs; bytes of them that are no UTF-8 become U+FFFD, so that every line can be parsed.
void print_json_line(const boost::json::value& value);

/// The same text without its line.
std::string json_text(const boost::json::value& value);

/// Sends on what was printed, so that another program sees the line now. Throws std::system_error
/// where standard output takes no more: a command that goes on forever ends by that.
void flush_output();

/// The exit code of a command that ended with `code`: kFailed, and a line on stderr, when not all
/// that it printed could be written. main() has every command end by this.
int finish_output(int code);

}  // namespace batchwright
