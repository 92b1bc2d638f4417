# Writes INTO, the source of build_commit(), for the checkout in SOURCE; leaves it alone where the
# commit is the same, so that nothing is compiled again.
find_program(GIT git)
set(commit "")
if(GIT AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${GIT} -C ${SOURCE} describe --always --abbrev=12 --exclude=* --dirty=+
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed)
    set(commit "")
  endif()
endif()
file(CONFIGURE OUTPUT ${INTO} CONTENT [[#include "daemon/config/build_commit.h"

std::string_view batchwright::build_commit() { return "@commit@"; }
]] @ONLY)
