#include "daemon/assembly/arena/proc_figure.h"

#include <cstdio>
#include <fstream>

namespace batchwright {

std::optional<std::size_t> proc_figure(const std::filesystem::path& file, const std::string& word) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(word)) continue;
    std::size_t number = 0;
    if (std::sscanf(line.c_str() + word.size(), " %zu", &number) == 1) return number;
  }
  return std::nullopt;
}

}  // namespace batchwright
