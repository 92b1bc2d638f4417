#pragma once

// Front door of the room: datasets in LMDB, read and written. FORMAT.md has the layout.

#include "storage/dataset/lmdb/fault_guard.h"  // reading a map that may fault: guarded
#include "storage/dataset/lmdb/keyed_store.h"  // values by numbers, beside datasets: KeyedStore
#include "storage/dataset/lmdb/map_pages.h"    // pages of a map: bring_in
#include "storage/dataset/reader.h"            // reading: Catalog, Dataset, Snapshot
#include "storage/dataset/verify.h"            // checking every record: verify_dataset
#include "storage/dataset/writer.h"            // writing: DatasetWriter
