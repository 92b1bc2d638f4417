#include "storage/recipe/statistics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <span>

#include "formats/formats.h"

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

/// From FRAMES on.
bool read_sums(std::span<const std::string_view> words, CmvnSums& sums) {
  if (words.size() < 2) return false;
  const auto frames = parse_whole<std::uint64_t>(words[0]);
  const auto dimensions = parse_whole<std::size_t>(words[1]);
  words = words.subspan(2);
  if (!frames || !dimensions || *dimensions > kMostDimensions || words.size() != 2 * *dimensions) {
    return false;
  }
  sums = CmvnSums(*dimensions);
  sums.frames = *frames;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto value = parse_real(words[i]);
    if (!value) return false;
    (i < *dimensions ? sums.sums[i] : sums.squares[i - *dimensions]) = *value;
  }
  return check(sums, *dimensions).has_value();
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
  for (const std::string_view line : split_lines(statistics.made_by))
    file << "with " << line << '\n';
  file << text_of(statistics);
  file.close();
  if (file) return {};
  return Error{ErrorCode::io_error, fmt::format("{}: cannot be written", path.string())};
}

Result<CmvnStatistics> read_statistics(const std::filesystem::path& path) {
  std::size_t number = 0;
  const auto bad = [&](std::string_view what) {
    return Error{ErrorCode::bad_configuration,
                 fmt::format("{}:{}: {}; allowed: what `batchwright cmvn` wrote", path.string(),
                             number, what)};
  };
  // A large file that is another is not read as a whole. A pipe can be read once.
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) {
    const auto head = file_text(path, kFirstLine.size());
    if (head && *head != kFirstLine) {
      ++number;
      return bad("not statistics for CMVN");
    }
  }
  const auto text = file_text(path);
  if (!text) return bad("cannot be read");
  const auto lines = split_lines(*text);
  ++number;
  if (lines.empty() || lines.front() != kFirstLine) return bad("not statistics for CMVN");
  CmvnStatistics statistics;
  for (const std::string_view line : std::span(lines).subspan(1)) {
    ++number;
    const auto words = split_words(line);
    const std::string_view word = words.empty() ? "" : words.front();
    const auto behind = [&words](std::size_t count) { return std::span(words).subspan(count); };
    if (word == "with") {
      statistics.made_by += line.substr(std::min(line.size(), word.size() + 1));
      statistics.made_by += '\n';
    } else if (word == "all") {
      if (!read_sums(behind(1), statistics.all)) return bad("damaged sums");
    } else if (word == "speaker" && words.size() > 1) {
      CmvnSums sums(0);
      if (!read_sums(behind(2), sums))
        return bad(fmt::format("damaged sums of speaker {}", words[1]));
      statistics.speakers.insert_or_assign(std::string(words[1]), std::move(sums));
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
