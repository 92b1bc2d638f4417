#include "client/command/exit_code.h"

#include <fmt/core.h>

#include <boost/system/system_error.hpp>
#include <cerrno>
#include <cstdio>
#include <system_error>

namespace batchwright {

void warn(const std::string& text) {
  if (!text.empty()) fmt::print(stderr, "batchwright: {}\n", text);
}

int fail(const Error& error) {
  fmt::print(stderr, "batchwright: {}\n", error.message);
  return exit_codes(error.code).command;
}

int fail_by(const std::exception& error) {
  const auto* const of_std = dynamic_cast<const std::system_error*>(&error);
  const auto* const of_boost = dynamic_cast<const boost::system::system_error*>(&error);
  const int code = of_std != nullptr     ? of_std->code().value()
                   : of_boost != nullptr ? of_boost->code().value()
                                         : 0;
  std::string reason = code == EMFILE ? reason_with_limit(code) : error.what();
  if (code == EAGAIN) {
    const auto room = room_for_threads(1, "this command");
    if (!room) reason = room.error().message;
  }
  warn(reason);
  return kFailed;
}

}  // namespace batchwright
