#include "storage/features/recipe/sources/statistics.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>

#include "formats/formats.h"

namespace batchwright {
namespace {

// batchwright-cmvn 1
// crc32c CHECKSUM         of all that follows this line; older files have none
// with KEY = VALUE        as often as there are settings
// all FRAMES DIMENSIONS SUM ... SQUARE ...
// speaker VALUE FRAMES DIMENSIONS SUM ... SQUARE ...
constexpr std::string_view kFirstLine = "batchwright-cmvn 1";
constexpr std::string_view kChecksum = "crc32c ";
constexpr std::size_t kMostDimensions = 65536;

std::string checksum_of(std::string_view text) {
  return fmt::format("{:08x}", crc32c(std::as_bytes(std::span(text))));
}

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

Error statistics_failed(const std::filesystem::path& path, std::string_view what) {
  return {ErrorCode::io_error,
          fmt::format("{}: cannot be written: {}: {}", path.string(), what, std::strerror(errno))};
}

Result<void> write_all(const std::filesystem::path& path, std::string_view text, int flags,
                       mode_t mode = 0666) {
  const Descriptor file(::open(path.c_str(), flags, mode));
  if (!file) return statistics_failed(path, "open");
  while (!text.empty()) {
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return statistics_failed(path, "write");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  // A pipe has nothing to be synced.
  if (::fsync(file.get()) != 0 && errno != EINVAL && errno != EROFS) {
    return statistics_failed(path, "fsync");
  }
  return {};
}

/// At any moment there is the old file or the new one, whole.
Result<void> replace_file(const std::filesystem::path& path, std::string_view text) {
  // A link stays one: what it leads to is replaced.
  std::error_code error;
  std::filesystem::path place = std::filesystem::canonical(path, error);
  if (error) place = path;
  struct stat old {};
  const mode_t mode = ::stat(place.c_str(), &old) == 0 ? old.st_mode & 0777 : 0666;
  const std::filesystem::path fresh = fmt::format("{}.{}.new", place.string(), ::getpid());
  auto written = write_all(fresh, text, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  if (written && ::rename(fresh.c_str(), place.c_str()) != 0) {
    written = statistics_failed(place, "rename");
  }
  if (!written) {
    ::unlink(fresh.c_str());
    return written;
  }
  sync_folder(place.parent_path());  // the name, too: a power cut would bring the old file back
  return {};
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
  std::string text;
  for (const std::string_view line : split_lines(statistics.made_by)) {
    text += fmt::format("with {}\n", line);
  }
  text += text_of(statistics);
  text = fmt::format("{}\n{}{}\n{}", kFirstLine, kChecksum, checksum_of(text), text);
  std::error_code error;
  const auto kind = std::filesystem::status(path, error).type();
  // A pipe, or a terminal, cannot be replaced.
  if (kind != std::filesystem::file_type::not_found &&
      kind != std::filesystem::file_type::regular) {
    return write_all(path, text, O_WRONLY | O_CLOEXEC);
  }
  return replace_file(path, text);
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
  const bool checked = lines.size() > 1 && lines[1].starts_with(kChecksum);
  if (checked) {
    ++number;
    const std::string_view told = lines[1].substr(kChecksum.size());
    const auto behind =
        static_cast<std::size_t>(lines[1].data() - text->data()) + lines[1].size() + 1;
    const std::string found =
        checksum_of(std::string_view(*text).substr(std::min(behind, text->size())));
    if (told != found) {
      return bad(fmt::format("damaged: its checksum is {}, and that of its content {}",
                             printable(std::string(told)), found));
    }
  }
  CmvnStatistics statistics;
  for (const std::string_view line : std::span(lines).subspan(checked ? 2 : 1)) {
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
