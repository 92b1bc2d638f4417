#pragma once

#include <sys/wait.h>
#include <unistd.h>

namespace batchwright::test {

/// Whether `claim` holds in a forked child, whose limits and locks are its own.
template <class Claim>
bool holds_in_child(const Claim& claim) {
  const pid_t child = fork();
  if (child == 0) _exit(claim() ? 0 : 1);
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace batchwright::test
