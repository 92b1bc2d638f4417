#include "storage/ingest/files/table_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <utility>

namespace batchwright {
namespace {

constexpr std::array<std::string_view, 18> kExtensions = {
    ".wav",  ".flac", ".mp3",  ".ogg", ".oga", ".opus", ".npy",  ".npz",  ".sph",
    ".aiff", ".aif",  ".aifc", ".au",  ".snd", ".w64",  ".wave", ".rf64", ".nist"};

/// Whether `name` ends with the lower-case `end`, in whatever case.
bool ends_with_any_case(std::string_view name, std::string_view end) {
  if (name.size() <= end.size()) return false;
  const std::string_view last = name.substr(name.size() - end.size());
  return std::equal(last.begin(), last.end(), end.begin(),
                    [](unsigned char a, char b) { return std::tolower(a) == b; });
}

/// Behind the next '/', or empty.
std::string_view next_end(std::string_view name) {
  const std::size_t slash = name.find('/');
  return slash == name.npos ? std::string_view() : name.substr(slash + 1);
}

/// The code point at the start of a text in UTF-8, of which only the lead byte is trusted, and its
/// bytes.
struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 1;
};

CodePoint code_point(std::string_view text) {
  const auto byte = static_cast<unsigned char>(text[0]);
  if (byte < 0xC0) return {byte, 1};
  const std::size_t bytes = byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
  std::uint32_t value = byte & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes && i < text.size(); ++i) {
    value = value << 6 | (static_cast<unsigned char>(text[i]) & 0x3FU);
  }
  return {value, std::min(bytes, text.size())};
}

/// Combining accents, the voicing marks of kana, and the vowels and ends of Hangul's syllables.
bool combines(std::uint32_t value) {
  return (value >= 0x300 && value < 0x370) || value == 0x3099 || value == 0x309A ||
         (value >= 0x1160 && value < 0x1200);
}

/// A text in which a zero stands for every letter that is no ASCII or has an accent.
struct Bare {
  std::string text;
  bool combines = false;
};

Bare without_accents(std::string_view name) {
  Bare bare;
  while (!name.empty()) {
    const CodePoint point = code_point(name);
    if (combines(point.value)) {
      bare.combines = true;
      // The letter before it, or what has taken that letter's place.
      if (!bare.text.empty()) bare.text.back() = '\0';
    } else {
      bare.text += point.value < 0x80 ? static_cast<char>(point.value) : '\0';
    }
    name.remove_prefix(point.bytes);
  }
  return bare;
}

}  // namespace

std::string_view without_extension(std::string_view name) {
  for (const std::string_view extension : kExtensions) {
    if (ends_with_any_case(name, extension)) return name.substr(0, name.size() - extension.size());
  }
  return name;
}

void PathEnds::add(std::string_view name, std::size_t id) {
  const auto put = [id](Slot& slot) {
    slot.id = id;
    ++slot.count;
  };
  put(whole_[name]);
  for (std::string_view end = name; !end.empty(); end = next_end(end)) put(ends_[end]);
}

std::optional<std::size_t> PathEnds::find(std::string_view name) const {
  const auto whole = whole_.find(name);
  if (whole != whole_.end()) {
    return whole->second.count == 1 ? std::optional(whole->second.id) : std::nullopt;
  }
  if (count(name) != 1) return std::nullopt;
  if (const auto longer = ends_.find(name); longer != ends_.end()) return longer->second.id;
  for (std::string_view end = next_end(name); !end.empty(); end = next_end(end)) {
    if (const auto shorter = whole_.find(end); shorter != whole_.end()) return shorter->second.id;
  }
  return std::nullopt;
}

std::size_t PathEnds::count(std::string_view name) const {
  std::size_t all = 0;
  if (const auto longer = ends_.find(name); longer != ends_.end()) all += longer->second.count;
  for (std::string_view end = next_end(name); !end.empty(); end = next_end(end)) {
    if (const auto shorter = whole_.find(end); shorter != whole_.end()) {
      all += shorter->second.count;
    }
  }
  return all;
}

void OtherForms::add(std::string_view name) {
  auto bare = without_accents(name);
  (bare.combines ? decomposed_ : composed_).emplace(std::move(bare.text), name);
}

std::optional<std::string_view> OtherForms::find(std::string_view name) const {
  const auto bare = without_accents(name);
  const Names& others = bare.combines ? composed_ : decomposed_;
  const auto found = others.find(bare.text);
  return found == others.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace batchwright
