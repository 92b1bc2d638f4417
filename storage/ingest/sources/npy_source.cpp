#include <array>

#include "storage/ingest/files/npy.h"
#include "storage/ingest/sources/array_source.h"

namespace batchwright {
namespace {

constexpr std::array<std::string_view, 1> kNpyExtensions = {".npy"};

/// One file, one array.
class NpyReader : public ArrayReader {
 public:
  std::vector<std::string> names() const override { return {"features"}; }
  std::string where(const SourceFile& file, std::size_t) const override {
    return file.path.string();
  }
  Result<std::vector<Array>> read(const SourceFile& file) const override {
    auto array = read_npy(file.path);
    if (!array) return array.error();
    std::vector<Array> arrays;
    arrays.push_back(std::move(*array));
    return arrays;
  }
};

}  // namespace

std::span<const std::string_view> npy_extensions() { return kNpyExtensions; }

Result<std::unique_ptr<IngestSource>> npy_source(const ArrayOptions& options,
                                                 std::span<const SourceFile> files) {
  return array_source(std::make_unique<NpyReader>(), options, files);
}

}  // namespace batchwright
