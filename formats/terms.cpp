#include "formats/terms.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "formats/base/base.h"

namespace batchwright {
namespace {

/// The longest value that is shown whole: a difference is one line of a log.
constexpr std::size_t kMostBytesOfValue = 80;

/// Terms from before there was a second version of random numbers have no such line.
constexpr std::string_view kDrawsKey = "features.draws";

using Lines = std::vector<std::pair<std::string_view, std::string_view>>;

/// Keys and values, in their order. A line without " = " is a key without a value.
Lines lines_of(std::string_view text) {
  constexpr std::string_view kIs = " = ";
  Lines lines;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t is = line.find(kIs);
    if (is == std::string_view::npos) {
      if (!line.empty()) lines.emplace_back(line, std::string_view());
    } else {
      lines.emplace_back(line.substr(0, is), line.substr(is + kIs.size()));
    }
  }
  return lines;
}

/// Null when the key is not there.
const std::string_view* find(const Lines& lines, std::string_view key) {
  const auto found = std::find_if(lines.begin(), lines.end(),
                                  [key](const auto& line) { return line.first == key; });
  return found == lines.end() ? nullptr : &found->second;
}

std::string shown(const std::string_view* value) {
  if (value == nullptr) return "not set";
  if (value->size() <= kMostBytesOfValue) return std::string(*value);
  return fmt::format("{}...", value->substr(0, kMostBytesOfValue));
}

/// Collects the differences, and counts those that are too many to be listed.
class Changes {
 public:
  explicit Changes(const ChangeWords& words) : words_(words) {}

  void add(std::string_view key, const std::string_view* before, const std::string_view* now) {
    if (before != nullptr && now != nullptr && *before == *now) return;
    if (++count_ > kMostChanges) return;
    if (!text_.empty()) text_ += "; ";
    text_ +=
        fmt::format("{}: {} {}, {} {}", key, shown(before), words_.before, shown(now), words_.now);
    // With several servers a line begins with its server.
    if (before == nullptr && key.ends_with(kDrawsKey)) text_ += fmt::format(" ({})", kFirstDraws);
  }
  std::string text() && {
    if (count_ > kMostChanges) {
      text_ += fmt::format("; and {} more", count_ - kMostChanges);
    }
    return std::move(text_);
  }

 private:
  ChangeWords words_;
  std::string text_;
  std::size_t count_ = 0;
};

std::string changed_settings(std::string_view before, std::string_view now,
                             const ChangeWords& words) {
  const Lines had = lines_of(before);
  const Lines has = lines_of(now);
  Changes changes(words);
  // In the order of the old text; then the keys that only the new one has.
  for (const auto& [key, value] : had) changes.add(key, &value, find(has, key));
  for (const auto& [key, value] : has) {
    if (find(had, key) == nullptr) changes.add(key, nullptr, &value);
  }
  return std::move(changes).text();
}

/// The first line of a text that is no setting of the plan.
constexpr std::string_view kFirstOfLook = "layout";

}  // namespace

bool is_older_form(const Fingerprint& had, const Terms& now) {
  if (had.data != now.fingerprint.data || had.seed != now.fingerprint.seed) return false;
  std::uint64_t settings = kFnv1aBasis;
  for (const auto& [key, value] : lines_of(now.text)) {
    if (key == kFirstOfLook) return had.settings == settings;
    if (key == "seed") continue;
    settings = fnv1a(settings, fmt::format("{}={}\n", key, value));
  }
  return false;
}

std::string describe_change(const Terms& before, const Terms& now, const ChangeWords& words) {
  const std::string parts = describe_difference(before.fingerprint, now.fingerprint);
  if (parts.empty() || is_older_form(before.fingerprint, now)) return {};
  // Without both texts only the parts of the fingerprint are known to differ.
  const bool both_say = !before.text.empty() && !now.text.empty();
  const std::string settings = both_say ? changed_settings(before.text, now.text, words) : "";
  if (settings.empty()) return fmt::format("{} {}", parts, words.changed);
  const bool data_too = before.fingerprint.data != now.fingerprint.data;
  return data_too ? fmt::format("data {}; {}", words.changed, settings) : settings;
}

}  // namespace batchwright
