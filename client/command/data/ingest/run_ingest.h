#pragma once

#include "client/command/data/ingest/ingest_kind.h"

namespace batchwright {

/// Takes in what a kind has opened. Returns the exit code.
int run_ingest(const IngestOptions& options, const char* kind, IngestInput input);

}  // namespace batchwright
