#include "client/command/exit_code.h"

#include <fmt/core.h>

#include <cstdio>

namespace batchwright {

void warn(const std::string& text) {
  if (!text.empty()) fmt::print(stderr, "batchwright: {}\n", text);
}

int fail(const Error& error) {
  fmt::print(stderr, "batchwright: {}\n", error.message);
  return exit_codes(error.code).command;
}

}  // namespace batchwright
