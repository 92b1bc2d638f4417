#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace batchwright {

// Reading a page of JSON that another version may have written: what is missing or of another
// type is empty or 0, never an error. And figures as people read them.

/// The value of `key`, or of a path such as "verdict.text"; null when there is none.
const boost::json::value* at_path(const boost::json::value& from, std::string_view path);

std::optional<double> number_at(const boost::json::value& from, std::string_view path);
double number_or_0(const boost::json::value& from, std::string_view path);
/// Printable ASCII: each other character is one '?'.
std::string text_at(const boost::json::value& from, std::string_view path);
/// The elements of an array; none when there is no array.
const boost::json::array& items_at(const boost::json::value& from, std::string_view path);

/// Printable ASCII of any bytes, see text_at().
std::string printable_ascii(std::string_view text);

/// "0", "7.25", "812", "41.0 k", "1.30 M": three digits, and what they count.
std::string count_text(double count);
/// "1,234,567": a whole number.
std::string whole_text(double count);
/// "812/s", "41.0 k/s".
std::string rate_text(double per_second);
/// "12.5 MiB": powers of 1024, as is usual for memory.
std::string memory_text(double bytes);
/// "350 us", "12.5 ms", "3.20 s", "4 min 10 s", "2 h 5 min"; "-" for none.
std::string seconds_text(std::optional<double> seconds);
/// "12.5 %"; "-" for none.
std::string share_text(std::optional<double> share);
/// "[####----]", `columns` wide with its brackets.
std::string bar_text(double share, std::size_t columns);

}  // namespace batchwright
