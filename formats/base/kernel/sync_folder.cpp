#include "formats/base/kernel/sync_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include "formats/base/kernel/descriptor.h"

namespace batchwright {

void sync_folder(const std::filesystem::path& folder) {
  const char* const path = folder.empty() ? "." : folder.c_str();
  const Descriptor opened(::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened) ::fsync(opened.get());
}

}  // namespace batchwright
