#include <fmt/core.h>

#include "formats/formats.h"
#include "storage/ingest/files/kaldi_table.h"
#include "storage/ingest/sources/array_source.h"

namespace batchwright {
namespace {

/// One table a field. A sequence is a key of the first one.
class KaldiReader : public ArrayReader {
 public:
  using Tables = std::vector<std::pair<std::string, KaldiTable>>;
  explicit KaldiReader(Tables tables) : tables_(std::move(tables)) {}

  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const auto& [name, table] : tables_) names.push_back(name);
    return names;
  }

  std::string where(const SourceFile& file, std::size_t n) const override {
    return fmt::format("{}: key \"{}\"", tables_[n].second.path().string(), printable(file.key));
  }

  Result<std::vector<Array>> read(const SourceFile& file) const override {
    std::vector<Array> arrays;
    for (const auto& [name, table] : tables_) {
      auto array = table.value(file.key);
      if (!array) return array.error();
      // Kaldi's own programs read matrices of doubles as floats.
      if (array->element == Element::float64) array = cast(std::move(*array), DType::float32);
      if (!array) {
        return Error{array.error().code,
                     fmt::format("{}: {}", where(file, arrays.size()), array.error().message)};
      }
      arrays.push_back(std::move(*array));
    }
    return arrays;
  }

 private:
  Tables tables_;
};

}  // namespace

Result<KaldiInput> kaldi_source(const KaldiSourceOptions& options) {
  KaldiReader::Tables tables;
  for (const auto& [name, path] : options.tables) {
    auto table = KaldiTable::read(path);
    if (!table) return table.error();
    tables.emplace_back(name, std::move(*table));
  }
  KaldiInput input;
  const KaldiTable& primary = tables.front().second;
  // A "file" is a key here, in the table's order; its path serves messages alone.
  for (const std::string& key : primary.keys()) input.files.push_back({key, primary.path()});
  for (std::size_t i = 1; i < tables.size(); ++i) {
    for (const std::string& key : tables[i].second.keys()) {
      // Counted, and no error: tables of a whole corpus go with features of a part.
      if (!primary.contains(key)) ++input.unmatched[tables[i].first];
    }
  }
  auto source =
      array_source(std::make_unique<KaldiReader>(std::move(tables)), options.arrays, input.files);
  if (!source) return source.error();
  input.source = std::move(*source);
  return input;
}

}  // namespace batchwright
