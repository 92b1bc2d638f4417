#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

namespace batchwright {

/// The number behind `word` at the start of a line, as in /proc/meminfo and memory.stat. Empty
/// where there is none.
std::optional<std::size_t> proc_figure(const std::filesystem::path& file, const std::string& word);

}  // namespace batchwright
