#pragma once

#include <string>

namespace batchwright {

/// The page /: page.html with its style and scripts in it.
struct DashboardPage {
  std::string html;
  /// The Content-Security-Policy of this answer: the browser loads nothing for the page, and
  /// connects only to the daemon that it comes from.
  std::string policy;
};

/// Makes the page with a nonce of its own.
DashboardPage dashboard_page();

}  // namespace batchwright
