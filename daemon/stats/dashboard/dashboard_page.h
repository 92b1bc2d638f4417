#pragma once

#include "daemon/stats/routes.h"

namespace batchwright {

/// The page /: dashboard/page.html with its style and scripts in it. Its header lets the browser
/// load nothing for it, and connect only to the daemon that it comes from.
Reply dashboard_page();

}  // namespace batchwright
