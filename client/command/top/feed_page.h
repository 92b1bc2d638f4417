#pragma once

#include <boost/json/value.hpp>
#include <cstddef>
#include <vector>

#include "client/command/top/line.h"
#include "client/command/top/memory.h"

namespace batchwright {

/// The widths of a page.
struct PageWidth {
  std::size_t text = 80;    ///< Sentences and figures go on in the next line.
  std::size_t tables = 80;  ///< Columns are left out, and names cut.
};

/// One feed as its card on the dashboard has it: the verdict and why, what to do where the feed
/// failed, rates and padding, its clients, slots and times of stages. What a failed feed does not
/// do is left out.
std::vector<TopLine> feed_page(const boost::json::value& feed, const TopMemory& memory,
                               PageWidth width);

/// Figures, each as "name value", over as many lines as they take; none is broken.
std::vector<TopLine> figure_lines(const std::vector<std::string>& figures, std::size_t columns,
                                  Tone tone = Tone::plain);

}  // namespace batchwright
