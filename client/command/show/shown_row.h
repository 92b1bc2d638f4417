#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "client/command/data/configured_feed.h"

namespace batchwright {

/// A named fact about a row, as text.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// Frames across, values up.
struct Grid {
  std::size_t values = 0;  ///< Of a frame.
  std::vector<float> data;

  std::size_t frames() const { return values == 0 ? 0 : data.size() / values; }
};

/// One channel.
struct ShownSound {
  std::uint32_t rate = 0;  ///< Hz
  std::vector<float> samples;

  double seconds() const {
    return rate == 0 ? 0 : static_cast<double>(samples.size()) / static_cast<double>(rate);
  }
};

/// Whole numbers beside the frames of a row.
struct ShownLabels {
  std::string field;
  std::vector<std::int64_t> values;
  std::vector<std::string> categories;  ///< Names of 0, 1, ...; empty: none.
};

/// A row with what it was made of. Sounds are empty where the dataset has features.
struct ShownRow {
  Ordinal ordinal{};
  std::string key;
  std::string wrong;  ///< The reason why there is no more than key and ordinal; empty: there is.
  Facts drawn;        ///< What chance decided.
  Facts values;       ///< Fields that have one value, or a text.
  ShownSound stored;
  ShownSound heard;  ///< By the front end.
  SpecAugmentDraw masks;
  Grid features;  ///< As the front end made them, or as they are stored.
  Grid row;       ///< The finished row; without values where rows are sound.
  std::vector<ShownLabels> labels;
};

/// Makes the row of an ordinal below the snapshot's sequences() and looks at it. Blocks on the
/// disk. What cannot be read or made is in `wrong`.
ShownRow look_at_row(const ConfiguredFeed& feed, Epoch epoch, Ordinal ordinal);

}  // namespace batchwright
