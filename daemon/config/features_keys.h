#pragma once

#include <span>
#include <utility>
#include <vector>

#include "daemon/config/keys.h"
#include "storage/features/recipe/recipe.h"

namespace batchwright {

/// One table [[feed.style]]: a style, and lists whose products it stands for.
struct StyleTable {
  StyleSettings style;
  std::vector<std::vector<std::filesystem::path>> each_noise;
  std::vector<std::vector<std::filesystem::path>> each_rooms;
  std::vector<std::pair<double, double>> each_snr;  ///< dB

  friend bool operator==(const StyleTable&, const StyleTable&) = default;
};

/// Styles that one [[feed.style]] may stand for: lists of a few hundred each would ask for more
/// than there is memory.
inline constexpr std::uint64_t kMostProducts = 65'536;

/// How many styles_of() has.
std::uint64_t style_count(const StyleTable& table);

/// A style for each noise, ratio and room of the lists, which share the weight.
std::vector<StyleSettings> styles_of(const StyleTable& table);

/// The rows of [feed.features] and of [[feed.style]].
std::span<const Key<RecipeSettings>> features_keys();
std::span<const Key<StyleTable>> style_keys();

}  // namespace batchwright
