#include "daemon/assembly/arena/proc_figure.h"

#include <string_view>

#include "formats/formats.h"

namespace batchwright {

std::optional<std::size_t> proc_figure(const std::filesystem::path& file, const std::string& word) {
  const std::string text = file_text(file).value_or("");
  for (const std::string_view line : split_lines(text)) {
    if (!line.starts_with(word)) continue;
    const auto words = split_words(line.substr(word.size()));
    if (words.empty()) continue;
    if (const auto number = parse_whole<std::size_t>(words.front())) return number;
  }
  return std::nullopt;
}

}  // namespace batchwright
