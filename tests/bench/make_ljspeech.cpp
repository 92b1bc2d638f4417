// Makes the benchmark's dataset: 13,100 sequences of float32 [T, 80] with the lengths of LJSpeech
// (hop 276), 2.2 GB. The content is noise: nothing that copies it could tell.
//   make_ljspeech LENGTHS.tsv DATASET [BANDS]
// BANDS is 80 unless told otherwise.

#include <bit>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "storage/dataset/dataset.h"

namespace {

using namespace batchwright;

struct Row {
  std::string id;
  std::uint32_t frames = 0;
};

/// Column 1 is the id, column 3 the frames; the first line names the columns.
Result<std::vector<Row>> read_rows(const char* path) {
  std::ifstream file(path);
  std::vector<Row> rows;
  std::string line;
  for (std::getline(file, line); std::getline(file, line);) {
    const auto id_end = line.find('\t');
    const auto frames_at = line.find('\t', id_end + 1) + 1;
    Row row{line.substr(0, id_end), 0};
    std::from_chars(line.data() + frames_at, line.data() + line.size(), row.frames);
    if (row.frames == 0) return Error{ErrorCode::invalid_argument, "no frames in: " + line};
    rows.push_back(std::move(row));
  }
  if (rows.empty()) return Error{ErrorCode::invalid_argument, std::string("no rows in ") + path};
  return rows;
}

/// Numbers from 1 to 2, of which the bits below the exponent are noise.
void fill(std::span<float> values, std::uint64_t seed) {
  std::uint64_t state = (seed + 1) * 0x9E3779B97F4A7C15u;
  for (float& value : values) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    value = std::bit_cast<float>(0x3F800000u | static_cast<std::uint32_t>(state >> 41));
  }
}

Result<void> write(const std::vector<Row>& rows, const char* path, std::uint32_t bands) {
  const Schema schema{{{"features", FieldKind::primary, DType::float32, {bands}, {}}}, {}};
  auto writer = DatasetWriter::open(path, schema);
  if (!writer) return writer.error();
  std::vector<float> values;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    values.resize(std::size_t{rows[i].frames} * bands);
    fill(values, i);
    const FieldValue field{std::as_bytes(std::span(values)), rows[i].frames};
    const auto added = writer->append({rows[i].id, {&field, 1}});
    if (!added) return added.error();
  }
  return writer->commit();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::fputs("usage: make_ljspeech LENGTHS.tsv DATASET [BANDS]\n", stderr);
    return 2;
  }
  const auto rows = read_rows(argv[1]);
  const auto bands = argc == 4 ? static_cast<std::uint32_t>(std::stoul(argv[3])) : 80;
  const auto done = rows ? write(*rows, argv[2], bands) : Result<void>(rows.error());
  if (!done) std::fprintf(stderr, "make_ljspeech: %s\n", done.error().message.c_str());
  return done ? 0 : 1;
}
