#pragma once

// Front door of the room: bytes on disk and on the wire. Values, no threads, no I/O. Layouts byte
// by byte: README.md and PROTOCOL.md.

#include "formats/base/base.h"        // what the room stands on
#include "formats/batch.h"            // one finished batch
#include "formats/c_border.h"         // where a C ABI ends errors, and reads options and sequences
#include "formats/categories.h"       // numbers without a name
#include "formats/control.h"          // messages between client and daemon
#include "formats/ids.h"              // numbers that must not be swapped, fingerprints
#include "formats/journal_records.h"  // what a queue's journal is made of
#include "formats/numbers.h"          // a number as one element of a tensor
#include "formats/record.h"           // one stored sequence
#include "formats/schema.h"           // what a dataset says of itself
#include "formats/share.h"            // which batches of a step are a subscription's
#include "formats/spool.h"            // what a live feed's spool is made of
#include "formats/terms.h"            // what decides which batches come, and what of it has changed
