#pragma once

// Front door of the room: shared memory, and sequences that become one finished batch in it.

#include "daemon/assembly/arena/arena.h"            // memfd, seals, pinning
#include "daemon/assembly/arena/huge_pages.h"       // which of them this machine has
#include "daemon/assembly/arena/memory_pressure.h"  // whether programs wait for it
#include "daemon/assembly/arena/memory_room.h"      // how much memory there is
#include "daemon/assembly/assembler.h"              // one copy from the map to the slot; threads
#include "daemon/assembly/batch_source.h"           // where batches come from
#include "daemon/assembly/casts.h"                  // float32 that becomes float16 or bfloat16
#include "daemon/assembly/copying/cast_ways.h"      // the bits of a cast
#include "daemon/assembly/copying/copy_choice.h"    // which way to copy is the fastest here
#include "daemon/assembly/copying/run_copy.h"       // one run of bytes, or of padding
#include "daemon/assembly/disk/readahead.h"         // pages are in memory when they are needed
#include "daemon/assembly/fair_queue.h"             // which feed's job a thread takes next
#include "daemon/assembly/memory_budget.h"          // bytes that are left of a ceiling
#include "daemon/assembly/slot_cache.h"             // which slot holds which batch
#include "daemon/assembly/sources/epoch_source.h"   // an epoch of a dataset
#include "daemon/assembly/sources/order_file.h"     // the rows that an order file names
#include "daemon/assembly/sources/recipe_source.h"  // rows that a recipe makes
#include "daemon/assembly/sources/stored_rows.h"    // rows by their names
#include "daemon/assembly/threads/few_threads.h"    // who does that where threads are few
#include "daemon/assembly/threads/helper_thread.h"  // work beside the loop
#include "daemon/assembly/threads/thread_policy.h"  // priorities, processors, a share of them
