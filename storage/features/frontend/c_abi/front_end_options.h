#pragma once

#include <batchwright/front_end.h>

#include "storage/features/frontend/front_end.h"

namespace batchwright {

/// The front end that the options of bw_front_end_open ask for; the caller's header may be older
/// or newer than this library.
/// Errors: invalid_argument, unsupported (a newer option is set).
Result<FrontEnd> to_front_end(const bw_front_end_options* options);

}  // namespace batchwright
