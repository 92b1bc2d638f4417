#include "client/command/exit_code.h"

#include <fmt/core.h>

#include <boost/system/system_error.hpp>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <system_error>

namespace batchwright {

void warn(const std::string& text) {
  if (!text.empty()) fmt::print(stderr, "batchwright: {}\n", text);
}

int fail(const Error& error) {
  fmt::print(stderr, "batchwright: {}\n", error.message);
  return exit_codes(error.code).command;
}

int fail_by_thrown() {
  int code = 0;
  std::string reason;
  try {
    throw;
  } catch (const std::system_error& error) {
    code = error.code().value();
    reason = error.what();
  } catch (const boost::system::system_error& error) {
    code = error.code().value();
    reason = error.what();
  } catch (const std::exception& error) {
    reason = error.what();
  }
  if (code == EMFILE) reason = reason_with_limit(code);
  if (code == EAGAIN) {
    const auto room = room_for_threads(1, "this command");
    if (!room) reason = room.error().message;
  }
  warn(reason);
  return kFailed;
}

}  // namespace batchwright
