#pragma once

// Front door of the room: datasets in LMDB, and ways to fill them. README.md has the layout.

#include "storage/dataset.h"  // reading: Catalog, Dataset, Snapshot
#include "storage/writer.h"   // writing: DatasetWriter
