#include "storage/recipe/statistics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <sstream>

namespace batchwright {
namespace {

// batchwright-cmvn 1
// with KEY = VALUE        as often as there are settings
// all FRAMES DIMENSIONS SUM ... SQUARE ...
// speaker VALUE FRAMES DIMENSIONS SUM ... SQUARE ...
constexpr std::string_view kFirstLine = "batchwright-cmvn 1";
constexpr std::size_t kMostDimensions = 65536;

std::string sums_text(const CmvnSums& sums) {
  return fmt::format("{} {} {} {}", sums.frames, sums.sums.size(), fmt::join(sums.sums, " "),
                     fmt::join(sums.squares, " "));
}

bool read_sums(std::istringstream& line, CmvnSums& sums) {
  std::size_t dimensions = 0;
  if (!(line >> sums.frames >> dimensions) || dimensions > kMostDimensions) return false;
  sums.sums.resize(dimensions);
  sums.squares.resize(dimensions);
  for (double& sum : sums.sums) line >> sum;
  for (double& square : sums.squares) line >> square;
  std::string more;
  return line && !(line >> more) && check(sums, dimensions);
}

std::string text_of(const CmvnStatistics& statistics) {
  std::string text = fmt::format("all {}\n", sums_text(statistics.all));
  for (const auto& [speaker, sums] : statistics.speakers) {
    text += fmt::format("speaker {} {}\n", speaker, sums_text(sums));
  }
  return text;
}

}  // namespace

Result<void> write_statistics(const std::filesystem::path& path, const CmvnStatistics& statistics) {
  std::ofstream file(path, std::ios::trunc);
  file << kFirstLine << '\n';
  std::istringstream settings(statistics.made_by);
  for (std::string line; std::getline(settings, line);) file << "with " << line << '\n';
  file << text_of(statistics);
  file.close();
  if (file) return {};
  return Error{ErrorCode::io_error, fmt::format("{}: cannot be written", path.string())};
}

Result<CmvnStatistics> read_statistics(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::size_t number = 0;
  const auto bad = [&](std::string_view what) {
    return Error{ErrorCode::bad_configuration,
                 fmt::format("{}:{}: {}; allowed: what `batchwright cmvn` wrote", path.string(),
                             number, what)};
  };
  if (!file) return bad("cannot be read");
  std::string text;
  ++number;
  if (!std::getline(file, text) || text != kFirstLine) return bad("not statistics for CMVN");
  CmvnStatistics statistics;
  while (std::getline(file, text)) {
    ++number;
    std::istringstream line(text);
    std::string word;
    line >> word;
    if (word == "with") {
      statistics.made_by += text.substr(std::min(text.size(), word.size() + 1)) + "\n";
    } else if (word == "all") {
      if (!read_sums(line, statistics.all)) return bad("damaged sums");
    } else if (std::string speaker; word == "speaker" && line >> speaker) {
      CmvnSums sums(0);
      if (!read_sums(line, sums)) return bad(fmt::format("damaged sums of speaker {}", speaker));
      statistics.speakers.insert_or_assign(speaker, std::move(sums));
    } else {
      return bad(fmt::format("found \"{}\"", word));
    }
  }
  if (statistics.all.frames == 0) return bad("no line \"all\"");
  return statistics;
}

std::uint64_t content_of(const CmvnStatistics& statistics) {
  return fnv1a(kFnv1aBasis, text_of(statistics));
}

}  // namespace batchwright
