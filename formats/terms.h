#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "formats/ids.h"

namespace batchwright {

/// What decides which batches a trainer gets, and how they look: a fingerprint, and what its
/// settings and its seed are made of, as text. The text has one `key = value` a line; it is empty
/// where the peer or a checkpoint does not say.
struct Terms {
  Fingerprint fingerprint;
  std::string_view text;
};

/// The words of a comparison. Of two hosts: "differ", "at n1", "here".
struct ChangeWords {
  std::string_view changed = "changed";
  std::string_view before = "before";
  std::string_view now = "now";
};

/// What a run that began with the first version of a recipe's random numbers needs to go on.
inline constexpr std::string_view kFirstDraws =
    "draws = 1 under [feed.features] continues this run";

/// The differences in words: "data changed; size: 16 before, 24 now". Where the texts do not tell
/// it, the parts of the fingerprint: "data and settings (or planner) changed". Empty when the
/// fingerprints are equal, or `before` is an older form of `now` (is_older_form()). At most
/// kMostChanges settings are named, long values are cut.
std::string describe_change(const Terms& before, const Terms& now, const ChangeWords& words = {});
inline constexpr std::size_t kMostChanges = 16;

/// Whether `had` is what builds before November 22, 2026 made of the same data and plan: their
/// fingerprints covered neither layout and padding nor fields. Only the text of `now` tells it.
bool is_older_form(const Fingerprint& had, const Terms& now);

}  // namespace batchwright
