#include <cstdio>
#include <exception>

#include "client/command/command_line.h"
#include "client/command/exit_code.h"

int main(int argc, char** argv) {
  try {
    return batchwright::run_command_line(argc, argv);
  } catch (const std::exception& error) {  // out of memory; everything else is a Result
    std::fprintf(stderr, "batchwright: %s\n", error.what());
    return batchwright::kFailed;
  }
}
