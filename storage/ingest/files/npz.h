#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/formats.h"
#include "storage/ingest/files/array.h"

namespace batchwright {

struct NamedArray {
  std::string name;
  Array array;
};

/// Whether an array of that name is wanted; those that are not are passed over unread.
using NpzChoice = std::function<bool(std::string_view)>;

/// The arrays of a .npz file, a zip archive of .npy files, stored or deflated, in its order. A
/// name is that of the member without ".npy". Threads: any.
/// Errors: invalid_argument, naming file, array and reason.
Result<std::vector<NamedArray>> read_npz(const std::filesystem::path& path,
                                         const NpzChoice& wanted);

/// The same of a file's bytes; errors name the array alone.
Result<std::vector<NamedArray>> parse_npz(std::span<const std::byte> bytes,
                                          const NpzChoice& wanted);

}  // namespace batchwright
