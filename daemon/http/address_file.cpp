#include "daemon/http/address_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace batchwright {

Result<std::unique_ptr<AddressFile>> AddressFile::write(const std::string& path,
                                                        const std::vector<std::string>& addresses,
                                                        const SocketAccess& access) {
  // This user's alone until it has its access.
  const auto put =
      put_file(path, fmt::format("{}\n", fmt::join(addresses, "\n")), 0600,
               [&access](const std::string& fresh) { return set_access(fresh, access); });
  if (!put) return put.error();
  return std::unique_ptr<AddressFile>(new AddressFile(path));
}

}  // namespace batchwright
