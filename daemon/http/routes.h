#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// The answer of a route.
struct Reply {
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};  ///< More of them.
};

/// A request's target, percent-decoded.
struct Target {
  std::vector<std::string> names;            ///< The texts in the places of NAME, in order.
  std::map<std::string, std::string> query;  ///< "a=1&b" is {a: 1, b: ""}; of two the last counts.
};

using Page = std::function<Reply()>;
/// Answers now or later, exactly once, on the loop. The reader may be gone by then.
using LaterPage = std::function<void(const Target&, std::function<void(Reply)>)>;
/// The data of one event: one line of text.
using LivePage = std::function<std::string()>;

/// Paths, and what makes the answer to GET. All is called on the loop's thread, so nothing there
/// may wait. An exception becomes 500.
struct Routes {
  std::map<std::string, Page, std::less<>> pages;
  /// Where a part of the path is NAME, any text may stand: "/feeds/NAME/plan".
  std::map<std::string, LaterPage, std::less<>> later;
  /// Server-sent events of the type `stats`, once a second while there are readers.
  std::map<std::string, LivePage, std::less<>> live;
};

/// Every path, with a space before each.
std::string known_paths(const Routes& routes);

/// The entry of Routes::later for a path and its query; null when there is none.
/// Errors: invalid_argument (a % without two hexadecimal digits).
Result<std::pair<const LaterPage*, Target>> find_later(const Routes& routes,
                                                       std::string_view target);

}  // namespace batchwright
