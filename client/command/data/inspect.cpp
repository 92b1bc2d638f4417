#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "client/command/commands.h"
#include "client/command/exit_code.h"
#include "client/command/output.h"
#include "storage/dataset/dataset.h"

namespace batchwright {
namespace {

namespace json = boost::json;

/// How the lengths of a dataset are spread, in frames.
struct LengthFigures {
  std::uint64_t frames = 0;
  std::uint32_t min = 0, median = 0, p95 = 0, max = 0;
  double mean = 0;
  /// Sequences of [2^i, 2^(i+1)) frames: fits tails that reach over decades.
  std::vector<std::uint64_t> histogram;
};

/// The smallest length that at least the share `q` of all sequences does not pass.
std::uint32_t quantile(std::span<const std::uint32_t> sorted, double q) {
  const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(sorted.size())));
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

LengthFigures length_figures(std::span<const std::uint32_t> lengths) {
  LengthFigures figures;
  if (lengths.empty()) return figures;
  std::vector<std::uint32_t> sorted(lengths.begin(), lengths.end());
  std::sort(sorted.begin(), sorted.end());
  figures.frames = std::accumulate(sorted.begin(), sorted.end(), std::uint64_t{0});
  figures.mean = static_cast<double>(figures.frames) / static_cast<double>(sorted.size());
  figures.min = sorted.front();
  figures.median = quantile(sorted, 0.5);
  figures.p95 = quantile(sorted, 0.95);
  figures.max = sorted.back();
  // bit_width() of the longest: the class of [2^i, 2^(i+1)) is i, and no further one is needed.
  figures.histogram.resize(static_cast<std::size_t>(std::bit_width(figures.max)));
  for (const std::uint32_t length : sorted) {
    ++figures.histogram[static_cast<std::size_t>(std::bit_width(std::max(length, 1U))) - 1];
  }
  return figures;
}

/// Bytes on disk of a dataset, whether its environment is a file or a folder of files.
std::uint64_t bytes_on_disk(const std::filesystem::path& dataset) {
  namespace fs = std::filesystem;
  std::error_code ignored;  // a file that went away counts as 0
  // LMDB's MDB_NOSUBDIR makes the environment a file.
  if (!fs::is_directory(dataset, ignored)) return fs::file_size(dataset, ignored);
  std::uint64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(dataset, ignored)) {
    if (entry.is_regular_file(ignored)) bytes += entry.file_size(ignored);
  }
  return bytes;
}

/// Hours of signal, when the dataset says how many milliseconds a frame stands for.
std::optional<double> hours(const Schema& schema, std::uint64_t frames) {
  // Ingest writes it for sound; arrays have no such setting, and so no hours.
  for (const auto& [name, value] : schema.settings) {
    if (name != "hop_ms") continue;
    double hop_ms = 0;
    const auto parsed = std::from_chars(value.data(), value.data() + value.size(), hop_ms);
    if (parsed.ec == std::errc()) return static_cast<double>(frames) * hop_ms / 3'600'000;
  }
  return std::nullopt;
}

struct Findings {
  std::string dataset;
  const Snapshot& snapshot;
  LengthFigures lengths;
  std::uint64_t bytes = 0;
  std::optional<double> hours;
  std::string content;
  std::string_view lock;
};

std::string shape_text(const FieldSpec& field) {
  // By FieldKind: T is the sequence's length, U one of the field's own, a scalar has none.
  const std::array<std::string_view, 4> first = {"T", "T", "U", ""};
  std::string text = "[" + std::string(first[static_cast<std::size_t>(field.kind)]);
  for (const std::uint32_t extent : field.shape) text += ", " + std::to_string(extent);
  return text + "]";
}

json::object field_json(const FieldSpec& field) {
  return {{"name", field.name},
          {"kind", kind_name(field.kind)},
          {"dtype", dtype_name(field.dtype)},
          {"shape", json::array(field.shape.begin(), field.shape.end())},
          {"categories", json::array(field.categories.begin(), field.categories.end())}};
}

json::object lengths_json(const LengthFigures& lengths) {
  json::array histogram;
  // Empty classes are left out: a few very long sequences would bring many of them.
  for (std::size_t i = 0; i < lengths.histogram.size(); ++i) {
    if (lengths.histogram[i] == 0) continue;
    histogram.push_back(
        json::object{{"from", std::uint64_t{1} << i}, {"sequences", lengths.histogram[i]}});
  }
  return {{"min", lengths.min}, {"mean", lengths.mean}, {"median", lengths.median},
          {"p95", lengths.p95}, {"max", lengths.max},   {"histogram", std::move(histogram)}};
}

void print_json(const Findings& found) {
  const Schema& schema = found.snapshot.schema();
  json::array fields;
  for (const FieldSpec& field : schema.fields) fields.push_back(field_json(field));
  json::object settings;
  for (const auto& [name, value] : schema.settings) settings[name] = value;
  json::object all{{"dataset", found.dataset},
                   {"sequences", found.snapshot.sequences()},
                   {"frames", found.lengths.frames},
                   {"bytes", found.bytes},
                   {"generation", found.snapshot.generation()},
                   {"content", found.content},
                   {"lock", found.lock},
                   {"fields", std::move(fields)},
                   {"settings", std::move(settings)},
                   {"lengths", lengths_json(found.lengths)}};
  if (found.hours) all["hours"] = *found.hours;
  print_json_line(all);
}

/// One line a field, its category names cut after a few.
void print_field(const FieldSpec& field) {
  std::string names;
  for (std::size_t i = 0; i < field.categories.size() && i < 8; ++i) {
    names += (i == 0 ? "  " : ", ") + field.categories[i];
  }
  if (field.categories.size() > 8) names += fmt::format(", ... ({})", field.categories.size());
  fmt::print("  {:<12} {:<11} {:<8} {}{}\n", field.name, kind_name(field.kind),
             dtype_name(field.dtype), shape_text(field), names);
}

void print_histogram(const LengthFigures& lengths) {
  if (lengths.histogram.empty()) return;
  const auto most = *std::max_element(lengths.histogram.begin(), lengths.histogram.end());
  for (std::size_t i = 0; i < lengths.histogram.size(); ++i) {
    if (lengths.histogram[i] == 0) continue;
    const auto bar = static_cast<std::size_t>(40 * lengths.histogram[i] / most);
    fmt::print("  {:>9} .. {:<9} {:>10} {}\n", std::uint64_t{1} << i, (std::uint64_t{2} << i) - 1,
               lengths.histogram[i], std::string(bar, '#'));
  }
}

void print_text(const Findings& found) {
  const Schema& schema = found.snapshot.schema();
  fmt::print("dataset     {}\n", found.dataset);
  fmt::print("sequences   {}\n", found.snapshot.sequences());
  fmt::print("frames      {}\n", found.lengths.frames);
  if (found.hours) fmt::print("hours       {:.3f}\n", *found.hours);
  fmt::print("bytes       {}\n", found.bytes);
  fmt::print("generation  {}\n", found.snapshot.generation());
  fmt::print("content     {}\n", found.content);
  fmt::print("lock        {}\n", found.lock);
  fmt::print("fields\n");
  for (const FieldSpec& field : schema.fields) print_field(field);
  if (!schema.settings.empty()) fmt::print("settings\n");
  for (const auto& [name, value] : schema.settings) fmt::print("  {:<16} {}\n", name, value);
  // An empty dataset has no lengths, and zeros would look like some.
  if (found.snapshot.sequences() == 0) return;
  fmt::print("lengths in frames: min {}, median {}, mean {:.1f}, 95 % {}, max {}\n",
             found.lengths.min, found.lengths.median, found.lengths.mean, found.lengths.p95,
             found.lengths.max);
  print_histogram(found.lengths);
}

}  // namespace

int run_inspect(const InspectOptions& options) {
  Catalog catalog;
  // Without a lock where none may be taken: looking at a dataset takes no right to write.
  const auto dataset = catalog.open({options.dataset}, VerifyRecords::once, Locking::permitted);
  if (!dataset) return fail(dataset.error());
  // Without one a writer may reuse pages while they are read.
  warn(lock_warning(**dataset));
  const auto snapshot = (*dataset)->snapshot();
  if (!snapshot) return fail(snapshot.error());
  const LengthFigures lengths = length_figures((*snapshot)->lengths());
  const Findings found{options.dataset.string(),
                       **snapshot,
                       lengths,
                       bytes_on_disk(options.dataset),
                       hours((*snapshot)->schema(), lengths.frames),
                       fmt::format("{:016x}", (*snapshot)->content()),
                       name_of((*dataset)->lock())};
  options.json ? print_json(found) : print_text(found);
  return kDone;
}

}  // namespace batchwright
