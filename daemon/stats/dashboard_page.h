#pragma once

#include "daemon/stats/routes.h"

namespace batchwright {

/// The page /: dashboard/page.html with its style and scripts in it. It may load nothing, and ask
/// nobody but the daemon it comes from: its header says so to the browser.
Reply dashboard_page();

}  // namespace batchwright
