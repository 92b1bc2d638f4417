#include "client/command/output.h"

#include <fmt/core.h>

#include <boost/json/serialize.hpp>
#include <cerrno>
#include <cstdio>
#include <iostream>
#include <system_error>

#include "client/command/exit_code.h"
#include "formats/formats.h"

namespace batchwright {

std::string json_text(const boost::json::value& value) {
  // Outside of its strings JSON is ASCII.
  return utf8(boost::json::serialize(value));
}

void print_json_line(const boost::json::value& value) { fmt::print("{}\n", json_text(value)); }

void flush_output() {
  // ferror() too: an earlier write may have failed that fflush() has forgotten.
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw std::system_error(errno, std::generic_category(), "standard output");
}

int finish_output(int code) {
  try {
    std::cout.flush();  // help texts are CLI11's
    flush_output();
    return code;
  } catch (const std::system_error& error) {
    fmt::print(stderr, "batchwright: {}\n", error.what());
    // A command that has failed by itself keeps its own code.
    return code == kDone ? kFailed : code;
  }
}

}  // namespace batchwright
