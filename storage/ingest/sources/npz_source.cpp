#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "storage/ingest/files/npz.h"
#include "storage/ingest/sources/array_source.h"

namespace batchwright {
namespace {

constexpr std::array<std::string_view, 1> kNpzExtensions = {".npz"};

std::vector<std::string> names_of(const std::vector<NamedArray>& arrays) {
  std::vector<std::string> names;
  for (const NamedArray& each : arrays) names.push_back(each.name);
  return names;
}

/// One file, one sequence; its arrays are the fields.
class NpzReader : public ArrayReader {
 public:
  explicit NpzReader(std::vector<std::string> names) : names_(std::move(names)) {}

  std::vector<std::string> names() const override { return names_; }
  std::string where(const SourceFile& file, std::size_t n) const override {
    return fmt::format("{}: array \"{}\"", file.path.string(), names_[n]);
  }

  Result<std::vector<Array>> read(const SourceFile& file) const override {
    auto found = read_npz(file.path, [this](std::string_view name) {
      return std::find(names_.begin(), names_.end(), name) != names_.end();
    });
    if (!found) return found.error();
    std::vector<Array> arrays;
    for (const std::string& name : names_) {
      const auto at = std::find_if(found->begin(), found->end(),
                                   [&name](const NamedArray& each) { return each.name == name; });
      if (at == found->end()) {
        return Error{ErrorCode::invalid_argument,
                     fmt::format("{}: no array \"{}\"; found: {}", file.path.string(), name,
                                 fmt::join(names_of(*found), ", "))};
      }
      arrays.push_back(std::move(at->array));
    }
    return arrays;
  }

 private:
  std::vector<std::string> names_;
};

/// The fields' names out of a file's arrays, of the primary one first.
Result<std::vector<std::string>> order_names(std::vector<std::string> names,
                                             const std::string& primary,
                                             const std::filesystem::path& path) {
  // As storage/ingest/README.md has it: the caller's, the only array, or "features".
  const std::string wanted = !primary.empty()    ? primary
                             : names.size() == 1 ? names.front()
                                                 : std::string("features");
  const auto at = std::find(names.begin(), names.end(), wanted);
  if (at == names.end()) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("{}: no array \"{}\" for the primary field; found: {} (--primary NAME)",
                    path.string(), wanted, fmt::join(names, ", "))};
  }
  // The others keep their order, which is the order of the fields.
  std::rotate(names.begin(), at, at + 1);
  return names;
}

}  // namespace

std::span<const std::string_view> npz_extensions() { return kNpzExtensions; }

Result<std::unique_ptr<IngestSource>> npz_source(const NpzSourceOptions& options,
                                                 std::span<const SourceFile> files) {
  std::string reason = "no files";
  for (const SourceFile& file : files) {
    // Names only; what the arrays are is looked at when they are read as fields.
    std::vector<std::string> found;
    const auto read = read_npz(file.path, [&found](std::string_view name) {
      found.emplace_back(name);
      return false;
    });
    auto names = read ? order_names(options.fields.empty() ? found : options.fields,
                                    options.primary, file.path)
                      : Result<std::vector<std::string>>(read.error());
    if (names) return array_source(std::make_unique<NpzReader>(*names), options.arrays, files);
    // The first usable file sets the names; a later one that lacks an array is refused by itself.
    if (&file == &files.front()) reason = names.error().message;
  }
  return Error{ErrorCode::invalid_argument,
               fmt::format("none of the files is usable; the first: {}", reason)};
}

}  // namespace batchwright
