#include <algorithm>
#include <cstdio>
#include <numeric>

#include "daemon/planning/rng.h"
#include "tests/papers/exact_table.h"
#include "tests/papers/lengths.h"
#include "tests/papers/sweep_table.h"
#include "tests/papers/table.h"

// Sets the papers' tables beside what this planner gives on real lengths: Ge et al. (2021) and
// Doetsch et al. (2017). Fails when a figure lies outside its tolerance.

using namespace batchwright;
using namespace batchwright::testing;

namespace {

constexpr const char* kRandom = "order=random";
constexpr const char* kSorted = "order=sorted";
constexpr const char* kSemiSorted = "order=semi-sorted randomization=0.1";
constexpr const char* kBucket = "order=bucket bucket_size=1024";
constexpr const char* kAlternated = "order=alternated bins=58";
constexpr const char* kStrict = " cut=dynamic";
constexpr const char* kOverrun = " cut=dynamic rule=overrun";

/// Figures over many seeds.
struct Series {
  std::vector<double> zpr, abl, batches;
  void add(const PlanReport& report) {
    zpr.push_back(100 * report.zpr);
    abl.push_back(report.abl);
    batches.push_back(static_cast<double>(report.batches));
  }
};

/// 10,480 clips of all, drawn afresh for each seed: the paper's own split is not published.
std::vector<std::uint32_t> split(std::vector<std::uint32_t> all, std::uint64_t seed) {
  RandomStream random(seed, Stream::select);
  permute(std::span(all), random);
  all.resize(10480);
  return all;
}

Series over_splits(const std::vector<std::uint32_t>& all, const std::string& settings) {
  Series series;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    series.add(report_of(split(all, seed), settings, seed));
  }
  return series;
}

/// Tables 1 and 2 of Ge et al.: what they printed, and what the real lengths give.
void ge_tables(Table& table, const std::vector<std::uint32_t>& all) {
  struct Line {
    const char* name;
    std::string settings;
    double paper_zpr, zpr_tolerance, paper_abl, zpr, zpr_sigma, abl, abl_sigma;
  };
  const std::vector<Line> lines = {
      {"RAND", kRandom, 32.02, 0.35, 773.82, 32.029, 0.105, 773.80, 0.87},
      {"SB", kSorted, 0.16, 0.01, 526.43, 0.156, 0.003, 526.28, 0.75},
      {"SSB 0.1", kSemiSorted, 6.22, 0.2, 556.22, 6.253, 0.041, 556.24, 0.80},
      {"Bucket 1024", kBucket, 6.10, 0.2, 553.40, 6.104, 0.036, 553.17, 0.69},
      {"Alternated 58", kAlternated, 6.08, 0.2, 552.48, 6.154, 0.046, 552.58, 0.75},
      {"SB-DBS strict", std::string(kSorted) + kStrict, 0.47, 0.2, 527.15, 0.462, 0.011, 526.95,
       0.75},
      {"SB-DBS overrun", std::string(kSorted) + kOverrun, 0.47, 0.2, 527.15, 0.469, 0.012, 526.98,
       0.74},
      {"SSB-DBS strict", std::string(kSemiSorted) + kStrict, 6.62, 0.2, 557.68, 6.628, 0.045,
       557.59, 0.80},
      {"SSB-DBS overrun", std::string(kSemiSorted) + kOverrun, 6.62, 0.2, 557.68, 6.651, 0.047,
       557.74, 0.81}};
  table.title("Ge et al., tables 1 and 2: ZPR % and ABL as printed (mean of 100 splits)");
  std::vector<Series> measured_lines;
  for (const Line& line : lines) {
    const Series series = over_splits(all, line.settings);
    table.line(std::string(line.name) + " ZPR, paper", line.paper_zpr, measured(series.zpr),
               line.zpr_tolerance);
    table.line(std::string(line.name) + " ABL, paper", line.paper_abl, measured(series.abl), 2.7);
    // Two means of 100 splits each, and the rounding of what is printed.
    table.line(std::string(line.name) + " ZPR, real lengths", line.zpr, measured(series.zpr),
               0.4 * 1.5 * line.zpr_sigma + 0.0005);
    table.line(std::string(line.name) + " ABL, real lengths", line.abl, measured(series.abl),
               0.4 * 1.5 * line.abl_sigma + 0.005);
    measured_lines.push_back(series);
  }
  // Differences are free of the split.
  const auto abl = [&](std::size_t i) { return measured(measured_lines[i].abl).mean; };
  table.title("Ge et al.: differences of ABL, which do not depend on the split");
  const auto difference = [&](const char* name, std::size_t line, double paper, double real,
                              double tolerance) {
    const Measured ours{abl(line) - abl(1), 0};
    table.line(std::string(name) + ", paper", paper, ours, tolerance);
    table.line(std::string(name) + ", real lengths", real, ours, tolerance);
  };
  difference("SSB - SB", 2, 29.79, 30.0, 0.8);
  difference("Bucket - SB", 3, 26.97, 27.0, 0.5);
  difference("Alternated - SB", 4, 26.05, 26.3, 0.8);
  difference("SB-DBS - SB", 5, 0.72, 0.71, 0.1);
}

/// The counts of table 2, which follow the overrun rule, though its formula is the strict one.
void ge_counts(Table& table, const std::vector<std::uint32_t>& all) {
  table.title("Ge et al., table 2: number of batches");
  const auto line = [&](const char* name, const std::string& settings, double expected,
                        double tolerance) {
    table.line(name, expected, measured(over_splits(all, settings).batches), tolerance);
  };
  line("RAND-DBS, paper (overrun)", std::string(kRandom) + kOverrun, 606, 3);
  line("SB-DBS, paper (overrun)", std::string(kSorted) + kOverrun, 419, 3);
  line("RAND-DBS strict, real lengths", std::string(kRandom) + kStrict, 644.7, 4 * 0.7 / 10 * 1.5);
  line("RAND-DBS overrun, real lengths", std::string(kRandom) + kOverrun, 607.0,
       4 * 0.8 / 10 * 1.5);
  line("SB-DBS strict, real lengths", std::string(kSorted) + kStrict, 437.9, 4 * 0.7 / 10 * 1.5);
  line("SB-DBS overrun, real lengths", std::string(kSorted) + kOverrun, 418.6, 4 * 0.6 / 10 * 1.5);
  line("SSB-DBS strict, real lengths", std::string(kSemiSorted) + kStrict, 462.8,
       4 * 0.7 / 10 * 1.5);
  line("SSB-DBS overrun, real lengths", std::string(kSemiSorted) + kOverrun, 441.5,
       4 * 0.7 / 10 * 1.5);
}

/// One run each on the reference split: any generator must lie within four deviations.
void reference_split(Table& table, const std::vector<std::uint32_t>& train) {
  struct Line {
    const char* name;
    const char* settings;
    double zpr, zpr_tolerance, abl, abl_tolerance, strict, strict_tolerance, overrun,
        overrun_tolerance;
  };
  const std::vector<Line> lines = {
      {"RAND", kRandom, 32.03, 0.29, 773.3, 3.2, 644, 3, 607, 3},
      {"SSB 0.1", kSemiSorted, 6.26, 0.17, 555.97, 0.85, 463, 2, 441, 2},
      {"BKT 1024", kBucket, 6.12, 0.08, 552.97, 0.40, 460, 1, 439, 1},
      {"ATS 58", kAlternated, 6.14, 0.18, 552.24, 0.75, 471, 2, 450, 2}};
  table.title("Reference split of LJSpeech, seed 0, single runs");
  const auto one = [](double value) { return Measured{value, 0}; };
  for (const Line& line : lines) {
    const std::string name = line.name;
    const auto fixed = report_of(train, line.settings, 0);
    const auto strict = report_of(train, std::string(line.settings) + kStrict, 0);
    const auto overrun = report_of(train, std::string(line.settings) + kOverrun, 0);
    table.line(name + " ZPR", line.zpr, one(100 * fixed.zpr), line.zpr_tolerance);
    table.line(name + " ABL", line.abl, one(fixed.abl), line.abl_tolerance);
    table.line(name + " batches, strict", line.strict, one(static_cast<double>(strict.batches)),
               line.strict_tolerance);
    table.line(name + " batches, overrun", line.overrun, one(static_cast<double>(overrun.batches)),
               line.overrun_tolerance);
  }
  const auto dbs = report_of(train, std::string(kSemiSorted) + kStrict, 0);
  table.line("SSB 0.1 + DBS strict ZPR", 6.63, one(100 * dbs.zpr), 0.16);
  table.line("SSB 0.1 + DBS strict ABL", 557.32, one(dbs.abl), 0.80);
}

/// Figure 2 of Ge et al.: padding against randomness, mean of 20 seeds.
void curve(Table& table, const std::vector<std::uint32_t>& train, const char* title,
           const std::string& settings, const std::vector<std::vector<double>>& points) {
  table.title(title);
  for (const auto& point : points) {
    char value[32];
    std::snprintf(value, sizeof value, "%g", point[0]);
    Series series;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      series.add(report_of(train, settings + value, seed));
    }
    table.line(std::string(value) + " ZPR", point[1], measured(series.zpr), 4 * point[2] + 0.0005);
    table.line(std::string(value) + " ABL", point[3], measured(series.abl), 4 * point[4] + 0.005);
  }
}

void curves(Table& table, const std::vector<std::uint32_t>& train) {
  curve(table, train, "Ge et al., figure 2: LRF of semi-sorted (mean of 20 seeds)",
        "order=semi-sorted randomization=",
        {{0, 0.152, 0, 525.99, 0},
         {0.01, 0.733, 0.006, 528.66, 0.02},
         {0.02, 1.402, 0.011, 531.77, 0.04},
         {0.05, 3.340, 0.023, 541.02, 0.11},
         {0.1, 6.253, 0.045, 555.95, 0.22},
         {0.15, 8.806, 0.051, 570.16, 0.29},
         {0.2, 11.068, 0.084, 583.74, 0.50},
         {0.3, 14.807, 0.082, 608.55, 0.56},
         {0.5, 19.998, 0.134, 649.19, 1.01},
         {1, 25.814, 0.122, 706.37, 1.08},
         {2, 28.946, 0.124, 740.03, 1.26},
         {5, 30.808, 0.111, 760.14, 1.19},
         {20, 31.722, 0.084, 769.94, 0.92},
         {1000, 32.029, 0.076, 773.36, 0.86}});
  curve(table, train, "Ge et al., figure 2: bucket size (mean of 20 seeds)",
        "order=bucket bucket_size=",
        {{16, 0.152, 0, 525.99, 0},
         {64, 0.550, 0.004, 527.38, 0.01},
         {128, 1.058, 0.005, 529.25, 0.01},
         {256, 2.022, 0.009, 533.01, 0.02},
         {512, 3.498, 0.015, 539.78, 0.05},
         {1024, 6.125, 0.020, 552.98, 0.10},
         {2048, 10.640, 0.033, 578.90, 0.15},
         {4096, 16.509, 0.051, 619.50, 0.35},
         {8192, 24.036, 0.062, 689.90, 0.58},
         {10480, 32.023, 0.071, 773.28, 0.80}});
  curve(table, train, "Ge et al., figure 2: bins of alternated (mean of 20 seeds)",
        "order=alternated bins=",
        {{1, 0.152, 0, 525.99, 0},
         {2, 0.305, 0.003, 526.51, 0.01},
         {8, 1.120, 0.007, 529.49, 0.02},
         {16, 2.095, 0.018, 533.36, 0.05},
         {32, 3.822, 0.022, 540.89, 0.07},
         {58, 6.133, 0.043, 552.25, 0.16},
         {64, 6.631, 0.049, 554.83, 0.20},
         {128, 11.111, 0.052, 580.47, 0.29},
         {256, 17.512, 0.098, 624.93, 0.71},
         {400, 22.303, 0.111, 665.68, 1.03},
         {655, 32.012, 0.057, 773.19, 0.64}});
}

/// 8,738 utterances as Doetsch et al. have them, drawn with replacement from the real training ones
/// of CHiME-4: the simulated ones are not at hand.
std::vector<std::uint32_t> chime4_lengths(std::uint64_t seed) {
  auto real = column_of("chime4_real_lengths.tsv", 3, 1, "tr05_real");
  const auto booth = column_of("chime4_real_lengths.tsv", 3, 1, "tr05_bth");
  real.insert(real.end(), booth.begin(), booth.end());
  RandomStream random(seed, Stream::select);
  std::vector<std::uint32_t> drawn;
  while (drawn.size() < 8738) drawn.push_back(real[random.below(real.size())]);
  return drawn;
}

/// Section 6 of Doetsch et al.: batches of 5,000 frames, so that the number of updates is constant.
/// It is where padding does not count, whatever the chunks of table 1; the figures are batches for
/// each 5,000 frames of sound.
void doetsch_updates(Table& table) {
  struct Line {
    const char* name;
    const char* settings;
    double padded, real;
  };
  const std::vector<Line> lines = {{"chunks of 10", "order=random chunk=10", 1.0071, 1.0013},
                                   {"chunks of 50", "order=random chunk=50", 1.0375, 1.0052},
                                   {"chunks of 100", "order=random chunk=100", 1.0763, 1.0103},
                                   {"chunks of 500", "order=random chunk=500", 1.3630, 1.0460},
                                   {"whole sequences", "order=random", 1.5979, 1.0810}};
  table.title("Doetsch et al., table 1: updates for 5,000 frames (20 seeds)");
  for (const Line& line : lines) {
    const std::string settings = line.settings;
    std::vector<double> padded, real;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const auto lengths = chime4_lengths(seed);
      const double all = std::accumulate(lengths.begin(), lengths.end(), 0.0) / 5000;
      const auto updates = [&](const std::string& cut) {
        const auto report = report_of(lengths, settings + cut, seed);
        return static_cast<double>(report.batches) / all;
      };
      padded.push_back(updates(" cut=frames max_frames=5000"));
      real.push_back(updates(" cut=real-frames max_frames=5000"));
    }
    table.line(std::string(line.name) + ", padding counts", line.padded, measured(padded), 0.006);
    table.line(std::string(line.name) + ", real frames alone", line.real, measured(real), 0.006);
  }
}

/// Table 2 of Doetsch et al. as a ratio of padded frames.
void doetsch(Table& table) {
  struct Line {
    const char* name;
    const char* settings;
    double paper, expected[4], sigma[4];
  };
  const std::vector<Line> lines = {
      {"sorted", "order=sorted", 1.457, {1.398, 1.517, 1.625, 1.500}, {0.002, 0.003, 0.003, 0.003}},
      // The paper does not give the span.
      {"bucketing, spans of 100",
       "order=bucket-span bucket_span=100",
       1.357,
       {1.328, 1.436, 1.531, 1.422},
       {0.002, 0.003, 0.003, 0.003}},
      {"bucketing, spans of 250",
       "order=bucket-span bucket_span=250",
       1.357,
       {1.243, 1.334, 1.407, 1.326},
       {0.002, 0.003, 0.003, 0.003}},
      {"alternated 8",
       "order=alternated bins=8",
       1.443,
       {1.392, 1.509, 1.608, 1.493},
       {0.002, 0.003, 0.003, 0.003}},
      {"alternated 64",
       "order=alternated bins=64",
       1.429,
       {1.353, 1.458, 1.500, 1.445},
       {0.002, 0.003, 0.003, 0.003}},
      {"alternated 256",
       "order=alternated bins=256",
       1.257,
       {1.265, 1.329, 1.269, 1.329},
       {0.002, 0.002, 0.003, 0.003}}};
  const std::vector<std::pair<const char*, const char*>> cuts = {
      {"5,000 frames", " cut=frames max_frames=5000"},
      {"B = 8", " size=8"},
      {"B = 16", " size=16"},
      {"5,000 real frames", " cut=real-frames max_frames=5000"}};
  table.title("Doetsch et al., table 2: padded frames of random / of the strategy (20 seeds)");
  for (const Line& line : lines) {
    for (std::size_t cut = 0; cut < cuts.size(); ++cut) {
      std::vector<double> ratios;
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const auto drawn = chime4_lengths(seed);
        const auto base = report_of(drawn, std::string(kRandom) + cuts[cut].second, seed);
        const auto own = report_of(drawn, std::string(line.settings) + cuts[cut].second, seed);
        ratios.push_back(static_cast<double>(base.padded_frames) /
                         static_cast<double>(own.padded_frames));
      }
      char name[64];
      std::snprintf(name, sizeof name, "%s, %s (paper %.3f)", line.name, cuts[cut].first,
                    line.paper);
      table.line(name, line.expected[cut], measured(ratios), 4 * line.sigma[cut] + 0.0005);
    }
  }
}

/// Table 2 of Variani et al.: padding of truncated unrolling, 5,120 frames a batch. Their large
/// deviations (19.2, 10.0, 7.4) are of lanes that run out at the end of a pass, which `last` = keep
/// has. Their lengths are private: LJSpeech's are taken, in frames of 30 ms.
void variani(Table& table, const std::vector<std::uint32_t>& all) {
  struct Line {
    const char* name;
    const char* settings;
    double apr, apr_tolerance, deviation, deviation_tolerance;
  };
  const std::vector<Line> lines = {
      {"512 lanes of 10 (paper 19.2)", " lanes=512 unroll=10", 5.360, 0.25, 15.92, 0.7},
      {"256 lanes of 20 (paper 10.0)", " lanes=256 unroll=20", 5.693, 0.21, 10.97, 0.95},
      {"128 lanes of 40 (paper 7.4)", " lanes=128 unroll=40", 9.008, 0.18, 7.865, 1.0},
      {"512 lanes of 10, no lane out", " lanes=512 unroll=10 last=drop", 1.903, 0.01, 0.537, 0.02},
      {"256 lanes of 20, no lane out", " lanes=256 unroll=20 last=drop", 4.047, 0.01, 1.050, 0.04},
      {"128 lanes of 40, no lane out", " lanes=128 unroll=40 last=drop", 8.197, 0.01, 2.006, 0.09}};
  std::vector<std::uint32_t> lengths;
  for (const std::uint32_t frames : all) lengths.push_back((frames * 10 + 23) / 24);
  table.title("Variani et al., table 2: APR % and its standard deviation (10 seeds)");
  for (const Line& line : lines) {
    std::vector<double> apr, deviation;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const auto report = report_of(lengths, std::string(kRandom) + line.settings, seed);
      apr.push_back(100 * report.apr);
      deviation.push_back(100 * report.apr_deviation);
    }
    table.line(std::string(line.name), line.apr, measured(apr), line.apr_tolerance);
    table.line("  deviation", line.deviation, measured(deviation), line.deviation_tolerance);
  }
}

}  // namespace

int main() {
  const auto all = column_of("ljspeech_frames.tsv", 2, 0, "");
  const auto train = column_of("ljspeech_frames.tsv", 2, 4, "train");
  if (all.size() != 13100 || train.size() != 10480) {
    std::printf("tests/data/ljspeech_frames.tsv has %zu rows\n", all.size());
    return 1;
  }
  Table table;
  exact_table(table, train);
  ge_tables(table, all);
  ge_counts(table, all);
  reference_split(table, train);
  curves(table, train);
  doetsch_updates(table);
  doetsch(table);
  variani(table, all);
  sweep_table(table);
  return table.finish();
}
