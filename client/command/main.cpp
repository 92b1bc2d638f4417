#include <exception>

#include "client/command/command_line.h"
#include "client/command/exit_code.h"
#include "client/command/output.h"

int main(int argc, char** argv) {
  try {
    return batchwright::finish_output(batchwright::run_command_line(argc, argv));
  } catch (const std::exception&) {  // out of memory, or standard output takes no more
    return batchwright::fail_by_thrown();
  }
}
