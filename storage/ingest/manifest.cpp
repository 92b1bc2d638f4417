#include "storage/ingest/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "storage/ingest/files/table_lines.h"

namespace batchwright {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

/// A member that is there and not null.
const json::value* find(const json::object& line, std::string_view name) {
  const json::value* value = line.if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

Error bad_line(std::string what) { return {ErrorCode::invalid_argument, std::move(what)}; }

/// The first of some members, which must be a text. Empty: none is there.
Result<std::optional<std::string>> member_text(const json::object& line,
                                               std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const json::value* value = find(line, name);
    if (value == nullptr) continue;
    if (value->is_string()) return std::optional(std::string(value->get_string()));
    return bad_line(
        fmt::format("{}: found {}, allowed: a text", name, shortened(json::serialize(*value))));
  }
  return std::optional<std::string>();
}

/// A number of seconds. Empty: it is not there.
Result<std::optional<double>> member_seconds(const json::object& line, std::string_view name) {
  const json::value* value = find(line, name);
  if (value == nullptr) return std::optional<double>();
  const double seconds = value->is_number() ? value->to_number<double>() : -1;
  if (seconds >= 0 && std::isfinite(seconds)) return std::optional(seconds);
  return bad_line(fmt::format("{}: found {}, allowed: seconds, 0 and up", name,
                              shortened(json::serialize(*value))));
}

Result<SoundPart> sound_part_of(const json::object& line) {
  const auto offset = member_seconds(line, "offset");
  if (!offset) return offset.error();
  const auto duration = member_seconds(line, "duration");
  if (!duration) return duration.error();
  SoundPart part;
  part.begin = offset->value_or(0);
  if (*duration) part.end = part.begin + **duration;
  if (part.end > part.begin) return part;
  return bad_line("duration: found 0, allowed: above 0");
}

/// Takes lines into a manifest.
class ManifestReader {
 public:
  ManifestReader(const fs::path& path, const std::string& key, std::span<const std::string> labels)
      : folder_(path.parent_path()), key_(key) {
    for (const std::string& label : labels) made_.labels[label];
  }

  Result<void> take(std::size_t number, std::string_view text) {
    if (text.find_first_not_of(" \t") == text.npos) return {};
    if (auto taken = take_line(number, text); !taken) {
      return bad_line(fmt::format("line {}: {}", number, taken.error().message));
    }
    return {};
  }

  Result<Manifest> done() {
    if (made_.files.empty()) return bad_line("no line in it");
    for (const auto& [label, names] : made_.labels) {
      if (names.empty()) return bad_line(fmt::format("no line has \"{}\"", printable(label)));
    }
    if (has_text_) made_.texts = std::move(texts_);
    lay_parts_together();
    return std::move(made_);
  }

 private:
  /// Each file's parts stand where its first one does: what is opened is kept for those that
  /// follow.
  void lay_parts_together() {
    std::unordered_map<std::string, std::size_t> places;
    std::vector<std::vector<SourceFile>> of_file;
    for (SourceFile& file : made_.files) {
      const auto [place, is_new] = places.emplace(file.path.string(), of_file.size());
      if (is_new) of_file.emplace_back();
      of_file[place->second].push_back(std::move(file));
    }
    made_.files.clear();
    for (auto& parts : of_file) {
      std::move(parts.begin(), parts.end(), std::back_inserter(made_.files));
    }
  }

  Result<void> take_line(std::size_t number, std::string_view text) {
    boost::system::error_code failed;
    const json::value value = json::parse(text, failed);
    if (failed) return bad_line(fmt::format("it is not JSON: {}", failed.message()));
    if (!value.is_object()) {
      return bad_line(
          fmt::format("found {}, allowed: an object", shortened(json::serialize(value))));
    }
    const json::object& line = value.get_object();
    auto path = member_text(line, {"audio_filepath", "audio_filename", "path", "audio"});
    if (!path) return path.error();
    if (!*path || (*path)->empty()) {
      return bad_line("it names no file; allowed: audio_filepath, audio_filename, path or audio");
    }
    auto part = sound_part_of(line);
    if (!part) return part.error();
    auto key = key_of(line);
    if (!key) return key.error();
    const auto [before, is_new] = lines_.emplace(*key, number);
    if (!is_new) {
      return bad_line(
          fmt::format("key \"{}\" is that of line {}, too", printable(*key), before->second));
    }
    if (auto said = take_texts(line, *key); !said) return said;
    made_.files.push_back({std::move(*key), folder_ / **path, *part, {}});
    return {};
  }

  Result<std::string> key_of(const json::object& line) {
    const json::value* value = find(line, key_.empty() ? "id" : key_);
    if (value == nullptr && key_.empty()) {
      made_.numbered = true;
      return std::to_string(made_.files.size());
    }
    if (value == nullptr) return bad_line(fmt::format("no \"{}\" for the key", printable(key_)));
    if (value->is_string() && !value->get_string().empty()) return std::string(value->get_string());
    if (value->is_int64() || value->is_uint64()) return json::serialize(*value);
    return bad_line(fmt::format("key: found {}, allowed: a text or a whole number",
                                shortened(json::serialize(*value))));
  }

  Result<void> take_texts(const json::object& line, const std::string& key) {
    auto said = member_text(line, {"text", "normalized_text"});
    if (!said) return said.error();
    has_text_ = has_text_ || *said;
    texts_.emplace(key, said->value_or(""));
    for (auto& [label, names] : made_.labels) {
      auto name = member_text(line, {label});
      if (!name) return name.error();
      if (*name) names.emplace(key, **name);
    }
    return {};
  }

  const fs::path folder_;
  const std::string key_;
  Manifest made_;
  Texts texts_;
  bool has_text_ = false;
  std::unordered_map<std::string, std::size_t> lines_;  // by key
};

}  // namespace

Result<Manifest> read_manifest(const fs::path& path, const std::string& key,
                               std::span<const std::string> labels) {
  ManifestReader reader(path, key, labels);
  constexpr std::string_view kWhat = "manifest";
  auto read =
      each_line(kWhat, path, [&](std::size_t number, std::string_view line) -> Result<void> {
        auto taken = reader.take(number, line);
        if (!taken) return bad_table(kWhat, path, taken.error().message);
        return {};
      });
  if (!read) return read.error();
  auto made = reader.done();
  if (!made) return bad_table(kWhat, path, made.error().message);
  return made;
}

}  // namespace batchwright
