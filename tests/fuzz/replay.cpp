// Stands in for libFuzzer where there is none: feeds files, and those of folders, to a target.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz.h"

namespace {

void replay(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  // Of exactly this size, so that ASan sees a read past it.
  const std::vector<std::uint8_t> input(bytes.begin(), bytes.end());
  std::printf("%s: %zu bytes\n", path.c_str(), input.size());
  std::fflush(stdout);
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::filesystem::path> files;
  for (const std::string name : std::span(argv, static_cast<std::size_t>(argc)).subspan(1)) {
    if (!std::filesystem::is_directory(name)) {
      files.emplace_back(name);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(name)) files.push_back(entry);
  }
  std::sort(files.begin(), files.end());
  LLVMFuzzerTestOneInput(nullptr, 0);
  for (const auto& file : files) replay(file);
  if (!files.empty()) return 0;
  std::fprintf(stderr, "no input to replay\n");
  return 1;
}
