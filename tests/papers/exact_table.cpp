#include "tests/papers/exact_table.h"

#include <string>

#include "tests/papers/lengths.h"

namespace batchwright::testing {
namespace {

/// Longest first is order = sorted; shortest first is order = alternated with a single bin.
struct Line {
  const char* name;
  const char* settings;
  double batches, padded_frames, zpr, abl;
};

constexpr Line kLines[] = {
    {"SB descending", "order=sorted", 655, 5512336, 0.152405, 525.986260},
    {"SB ascending", "order=alternated bins=1", 655, 5512336, 0.152405, 525.986260},
    {"SSB 0", "order=semi-sorted randomization=0", 655, 5512336, 0.152405, 525.986260},
    {"BKT 16", "order=bucket bucket_size=16", 655, 5512336, 0.152405, 525.986260},
    {"SB desc., strict", "order=sorted cut=dynamic", 438, 5519524, 0.461187, 526.672137},
    {"SB asc., strict", "order=alternated bins=1 cut=dynamic", 438, 5519725, 0.480042, 526.691317},
    {"SB desc., overrun", "order=sorted cut=dynamic rule=overrun", 418, 5519728, 0.464310,
     526.691603},
    {"SB asc., overrun", "order=alternated bins=1 cut=dynamic rule=overrun", 418, 5520412, 0.500684,
     526.756870}};

}  // namespace

void exact_table(Table& table, const std::vector<std::uint32_t>& train) {
  table.title("Reference split of LJSpeech: figures without chance, for every seed");
  for (const Line& line : kLines) {
    std::printf("%s: %s\n", line.name, line.settings);
    for (const std::uint64_t seed : {0u, 1u}) {
      const PlanReport report = report_of(train, line.settings, seed);
      const std::string name = std::string(line.name) + ", seed " + std::to_string(seed);
      const auto one = [](double value) { return Measured{value, 0}; };
      table.line(name + ", batches", line.batches, one(double(report.batches)), 0);
      table.line(name + ", frames", line.padded_frames, one(double(report.padded_frames)), 0);
      // As many digits as are known, and half of the last.
      table.line(name + ", ZPR", line.zpr, one(100 * report.zpr), 5.01e-7);
      table.line(name + ", ABL", line.abl, one(report.abl), 5.01e-7);
    }
  }
}

}  // namespace batchwright::testing
