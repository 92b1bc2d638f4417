#pragma once

// Front door of the room: lengths in, batches out. Pure: no I/O, no threads, no clock.

#include "daemon/planning/order_rows.h"   // the rows of an order file
#include "daemon/planning/plan.h"         // plan_epoch, EpochPlan, PlanBound
#include "daemon/planning/report.h"       // what a plan amounts to
#include "daemon/planning/report_json.h"  // the same in JSON
#include "daemon/planning/rng.h"          // the generator of all draws, and its streams
#include "daemon/planning/settings.h"     // PlanSettings and the table that parses and prints them
