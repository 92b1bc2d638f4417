#pragma once

#include "formats/base/result.h"

namespace batchwright {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;      ///< The work failed.
inline constexpr int kWrongInput = 2;  ///< The call or its input is wrong.

/// The exit codes for one error.
struct ExitCodes {
  /// Of batchwrightd. A supervisor starts it again after kFailed, and leaves it after kWrongInput:
  /// that is for what no retry can mend.
  int daemon = kFailed;
  /// Of batchwright. It is not started again, and so kWrongInput is also for datasets it is given.
  int command = kFailed;
};

ExitCodes exit_codes(ErrorCode code);

}  // namespace batchwright
