#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace batchwright {

/// A table's name for a sequence without the extension of a file that is ingested: "wavs/a.wav" is
/// "wavs/a", and "a.b" stays.
std::string_view without_extension(std::string_view name);

/// Names by all their ends behind a '/': "a/b/c" by "a/b/c", "b/c" and "c". So tables and folders
/// need not begin their paths at the same place.
///
/// Lifetime: names are not copied. Threads: any for find().
class PathEnds {
 public:
  /// Names of one text may be added more than once; they then stand for nothing.
  void add(std::string_view name, std::size_t id);

  /// The name that is equal, or otherwise the only one that ends with `name`, or that `name` ends
  /// with. Nothing where there is none or several.
  std::optional<std::size_t> find(std::string_view name) const;

  /// How many names are equal, end with `name`, or are its end.
  std::size_t count(std::string_view name) const;

 private:
  struct Slot {
    std::size_t id = 0;
    std::size_t count = 0;
  };
  std::unordered_map<std::string_view, Slot> whole_;
  std::unordered_map<std::string_view, Slot> ends_;
};

/// Names by what does not depend on Unicode's normal form, to tell why one is not found: macOS
/// writes a letter and a combining accent where others write one code point. It is no look-up,
/// since letters of one accent look alike here.
///
/// Lifetime: names are not copied. Threads: any for find().
class OtherForms {
 public:
  void add(std::string_view name);
  /// A name that may be `name` in another normal form.
  std::optional<std::string_view> find(std::string_view name) const;

 private:
  using Names = std::unordered_map<std::string, std::string_view>;
  Names composed_;
  Names decomposed_;
};

}  // namespace batchwright
