#pragma once

#include <string>
#include <vector>

#include "daemon/config/config.h"

namespace batchwright {

/// Something that --check-config has found in what a configuration names.
struct Finding {
  enum class Grade {
    note,     ///< Worth knowing, and nothing is wrong.
    warning,  ///< The daemon would start, but not serve all feeds, all data or all clients.
    error,    ///< It would refuse to start.
  };
  Grade grade;
  std::string text;
};

/// Looks at accounts, key files, folders of sockets, journals and ledgers, datasets and the memory
/// for them, as this process's user sees them. Reads datasets' indexes, plans first epochs, and
/// changes nothing. Blocks on the disk.
/// `for_run`: as `batchwright run` will use it, which gives the sockets a folder unless the file
/// places them.
std::vector<Finding> examine(const Config& config, bool for_run = false);

/// "note", "warning", "error".
const char* name_of(Finding::Grade grade);

/// 2 when there is an error, 1 when there is a warning, else 0.
int exit_code(const std::vector<Finding>& findings);

}  // namespace batchwright
