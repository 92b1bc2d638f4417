#pragma once

// Front door of the room: datasets in LMDB, and ways to fill them. README.md has the layout.

#include "storage/dataset.h"        // reading: Catalog, Dataset, Snapshot
#include "storage/fault_guard.h"    // reading a map that may fault: guarded
#include "storage/front_end.h"      // audio samples to features: FrontEnd
#include "storage/ingest/ingest.h"  // files to a dataset: ingest, and where it reads from
#include "storage/verify.h"         // checking every record: verify_dataset
#include "storage/writer.h"         // writing: DatasetWriter
