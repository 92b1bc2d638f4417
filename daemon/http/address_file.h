#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// A file that says where pages are, an address a line, for programs that look for them.
///
/// Lifetime: the file goes with this object, unless another has taken its place.
class AddressFile {
 public:
  /// What a killed daemon left is replaced. Errors: io_error.
  static Result<std::unique_ptr<AddressFile>> write(const std::string& path,
                                                    const std::vector<std::string>& addresses,
                                                    const SocketAccess& access);
  ~AddressFile() { file_.remove(); }
  AddressFile(const AddressFile&) = delete;
  AddressFile& operator=(const AddressFile&) = delete;

 private:
  explicit AddressFile(const std::string& path) : file_(path) {}

  SocketFile file_;
};

}  // namespace batchwright
