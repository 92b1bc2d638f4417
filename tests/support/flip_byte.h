#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace batchwright::test {

/// Flips the lowest bit of the first place in a file where these bytes stand. False when they
/// stand nowhere.
inline bool flip_byte(const std::filesystem::path& path, const void* bytes, std::size_t size) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto at = content.find(std::string(static_cast<const char*>(bytes), size));
  if (at == std::string::npos) return false;
  file.clear();
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(content[at] ^ 1));
  return file.good();
}

}  // namespace batchwright::test
