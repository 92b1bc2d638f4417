#include "daemon/assembly/copying/copy_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace batchwright {
namespace {

/// What "auto" stands for: the first that runs here. AVX-512 is no faster than AVX2, since memory
/// is the limit; tests/bench/README.md has the measurements.
constexpr std::array<std::string_view, 4> kFastest{"avx2", "sse2", "neon", "memcpy"};

std::string names_here() {
  std::string names(kAutoCopy);
  for (const CopyWay& way : copy_ways()) {
    if (way.runs_here()) names += fmt::format(" {}", way.name);
  }
  return names;
}

}  // namespace

CopyChoice CopyChoice::of_name(std::string_view name) {
  if (name != kAutoCopy) return CopyChoice(*find_copy_way(name));
  const auto runs_here = [](std::string_view each) { return find_copy_way(each)->runs_here(); };
  return CopyChoice(*find_copy_way(*std::find_if(kFastest.begin(), kFastest.end(), runs_here)));
}

Result<void> check_copy(std::string_view name) {
  if (name == kAutoCopy) return {};
  const CopyWay* way = find_copy_way(name);
  if (way != nullptr && way->runs_here()) return {};
  return Error{ErrorCode::bad_configuration,
               fmt::format("daemon.assembly_copy: found \"{}\", {}; allowed here: {}", name,
                           way == nullptr ? "which is no way to copy"
                                          : "which this machine's processor does not have",
                           names_here())};
}

}  // namespace batchwright
