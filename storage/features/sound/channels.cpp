#include <algorithm>
#include <array>

#include "storage/features/sound/audio.h"

namespace batchwright {
namespace {

constexpr std::array<std::string_view, 4> kChannelNames = {"only", "first", "mix", "each"};

}  // namespace

std::string_view channel_name(ChannelChoice channels) {
  return kChannelNames.at(static_cast<std::size_t>(channels));
}

std::optional<ChannelChoice> parse_channel(std::string_view name) {
  const auto* const found = std::find(kChannelNames.begin(), kChannelNames.end(), name);
  if (found == kChannelNames.end()) return std::nullopt;
  return static_cast<ChannelChoice>(found - kChannelNames.begin());
}

}  // namespace batchwright
