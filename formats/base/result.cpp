#include "formats/base/result.h"

namespace batchwright {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::not_found: return "not_found";
    case ErrorCode::corrupt_record: return "corrupt_record";
    case ErrorCode::store_unavailable: return "store_unavailable";
    case ErrorCode::invalid_argument: return "invalid_argument";
    case ErrorCode::bad_configuration: return "bad_configuration";
    case ErrorCode::already_exists: return "already_exists";
    case ErrorCode::schema_mismatch: return "schema_mismatch";
    case ErrorCode::unsupported_version: return "unsupported_version";
    case ErrorCode::does_not_fit: return "does_not_fit";
    case ErrorCode::fingerprint_mismatch: return "fingerprint_mismatch";
    case ErrorCode::malformed_message: return "malformed_message";
    case ErrorCode::timed_out: return "timed_out";
    case ErrorCode::disconnected: return "disconnected";
    case ErrorCode::io_error: return "io_error";
    case ErrorCode::infeasible: return "infeasible";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::forked: return "forked";
    case ErrorCode::busy: return "busy";
    case ErrorCode::internal: return "internal";
  }
  return "unknown";
}

}  // namespace batchwright
