#pragma once

// Front door of the room: every event that can be counted, and the pages that show them.

#include "daemon/stats/bytes.h"                     // bytes as lines write them
#include "daemon/stats/counters.h"                  // FeedCounters, one a feed
#include "daemon/stats/dashboard/dashboard_page.h"  // the page /
#include "daemon/stats/events.h"         // everything that can happen, counted and logged
#include "daemon/stats/histogram.h"      // durations
#include "daemon/stats/live_status.h"    // how a live feed stands
#include "daemon/stats/log_limit.h"      // one line a second
#include "daemon/stats/process_stats.h"  // memory and processor time of this process
#include "daemon/stats/report.h"         // the pages /stats and /metrics
#include "daemon/stats/stages.h"         // StageTimes, one a feed
#include "daemon/stats/status.h"         // FeedStatus and ServerStatus
#include "daemon/stats/verdict.h"        // rates, and what they depend on
#include "daemon/stats/waiting_times.h"  // the time that client and daemon wait for each other
