#include <fmt/core.h>
#include <fmt/ranges.h>

#include <array>
#include <limits>

#include "storage/ingest_source.h"
#include "storage/npy.h"

namespace batchwright {
namespace {

constexpr std::array<std::string_view, 1> kExtensions = {".npy"};

Error bad_file(const std::filesystem::path& path, std::string_view why) {
  return {ErrorCode::schema_mismatch, fmt::format("{}: {}", path.string(), why)};
}

/// "float32 [T, 80]"
std::string describe(const FieldSpec& field) {
  std::string text = fmt::format("{} [T", dtype_name(field.dtype));
  for (const std::uint32_t extent : field.shape) text += fmt::format(", {}", extent);
  return text + "]";
}

/// The field that an array of this header makes up.
Result<FieldSpec> field_of(const NpyHeader& header, const std::filesystem::path& path) {
  if (header.shape.empty()) return bad_file(path, "a single value; allowed: [T] or [T, D...]");
  for (const std::uint64_t extent : header.shape) {
    if (extent == 0 || extent > std::numeric_limits<std::uint32_t>::max()) {
      return bad_file(path, fmt::format("shape [{}]; each extent is 1 to 2^32 - 1",
                                        fmt::join(header.shape, ", ")));
    }
  }
  FieldSpec field{"features", FieldKind::primary, header.dtype, {}, {}};
  for (std::size_t i = 1; i < header.shape.size(); ++i) {
    field.shape.push_back(static_cast<std::uint32_t>(header.shape[i]));
  }
  if (auto checked = validate(Schema{{field}, {}}); !checked) {
    return bad_file(path, checked.error().message);
  }
  return field;
}

class NpySource : public IngestSource {
 public:
  NpySource(FieldSpec field, std::filesystem::path first)
      : field_(std::move(field)), first_(std::move(first)) {}

  FieldSpec field() const override { return field_; }
  std::vector<std::pair<std::string, std::string>> settings() const override { return {}; }

  Result<Features> load(const std::filesystem::path& path) const override {
    auto array = read_npy(path);
    if (!array) return array.error();
    const auto field = field_of(array->header, path);
    if (!field) return field.error();
    if (*field != field_) {
      return bad_file(path, fmt::format("{}, but the dataset's is {}, which {} has set",
                                        describe(*field), describe(field_), first_.string()));
    }
    return Features{std::move(array->elements),
                    static_cast<std::uint32_t>(array->header.shape.front()), 0};
  }

 private:
  FieldSpec field_;
  std::filesystem::path first_;  // it has set the field
};

}  // namespace

std::span<const std::string_view> npy_extensions() { return kExtensions; }

Result<std::unique_ptr<IngestSource>> npy_source(std::span<const SourceFile> files) {
  std::string reason = "no files";
  for (const SourceFile& file : files) {
    const auto header = read_npy_header(file.path);
    const auto field = header ? field_of(*header, file.path) : Result<FieldSpec>(header.error());
    if (field) {
      return std::unique_ptr<IngestSource>(std::make_unique<NpySource>(*field, file.path));
    }
    if (&file == &files.front()) reason = field.error().message;
  }
  return Error{ErrorCode::invalid_argument,
               "none of the files is a usable array; the first: " + reason};
}

}  // namespace batchwright
