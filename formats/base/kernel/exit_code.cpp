#include "formats/base/kernel/exit_code.h"

namespace batchwright {

ExitCodes exit_codes(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::bad_configuration: return {.daemon = kWrongInput, .command = kWrongInput};
    // A feed waits for data that may be written or mended yet.
    case ErrorCode::not_found:
    case ErrorCode::store_unavailable:
    case ErrorCode::schema_mismatch:
    case ErrorCode::unsupported_version:
    case ErrorCode::infeasible: return {.daemon = kFailed, .command = kWrongInput};
    default: return {.daemon = kFailed, .command = kFailed};
  }
}

}  // namespace batchwright
