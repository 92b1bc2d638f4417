#include "storage/ingest/parts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "storage/dataset/dataset.h"

namespace batchwright {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = "finished";
constexpr std::string_view kMarkHead = "batchwright part 1";
constexpr std::size_t kMostNamed = 20;

Error failed(const fs::path& path, const char* call) {
  return {ErrorCode::io_error,
          fmt::format("{}: {}: {}", path.string(), call, std::strerror(errno))};
}

/// The number behind "part-" and "-of-" in a folder's name; nothing for other names.
std::optional<IngestPart> part_of_name(std::string_view name) {
  constexpr std::string_view kBegin = "part-", kOf = "-of-";
  if (!name.starts_with(kBegin)) return std::nullopt;
  name.remove_prefix(kBegin.size());
  const auto number = take_whole<std::uint32_t>(name);
  if (!number || !name.starts_with(kOf)) return std::nullopt;
  const auto count = parse_whole<std::uint32_t>(name.substr(kOf.size()));
  if (!count || *number >= *count) return std::nullopt;
  return IngestPart{*number, *count};
}

/// Numbers in words, the first of them.
std::string some_of(const std::vector<std::uint32_t>& numbers) {
  const std::size_t shown = std::min(numbers.size(), kMostNamed);
  return fmt::format(
      "{}{}", fmt::join(std::span(numbers).first(shown), ", "),
      shown < numbers.size() ? fmt::format(" and {} more", numbers.size() - shown) : "");
}

/// How many parts there are to be, by the names of those that are there.
Result<std::uint32_t> count_of(const fs::path& folder) {
  std::map<std::uint32_t, std::uint32_t> found;  // parts by count
  std::error_code error;
  for (fs::directory_iterator each(folder, error), end; !error && each != end;
       each.increment(error)) {
    if (const auto part = part_of_name(each->path().filename().string())) ++found[part->count];
  }
  if (error) {
    return Error{ErrorCode::not_found, fmt::format("{}: {}", folder.string(), error.message())};
  }
  if (found.empty()) {
    return Error{ErrorCode::not_found,
                 fmt::format("{}: no folder part-NNNNN-of-NNNNN in it, as ingest --part makes them",
                             folder.string())};
  }
  if (found.size() > 1) {
    const auto [least, few] = *found.begin();
    const auto [most, many] = *found.rbegin();
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{}: found {} parts of {} and {} of {}: remove those of one of both",
                             folder.string(), few, least, many, most)};
  }
  return found.begin()->first;
}

/// Marks of all parts. Errors: not_found, naming those without one.
Result<std::vector<PartMark>> marks_of(const fs::path& folder, std::uint32_t count) {
  std::vector<PartMark> marks;
  std::vector<std::uint32_t> missing, unfinished;
  std::error_code ignored;  // a part that cannot be looked at is not there
  for (std::uint32_t i = 0; i < count; ++i) {
    const fs::path path = part_path(folder, {i, count});
    const auto mark = read_mark(path);
    if (!mark) return mark.error();
    if (*mark) {
      marks.push_back(**mark);
    } else {
      (fs::exists(path, ignored) ? unfinished : missing).push_back(i);
    }
  }
  if (missing.empty() && unfinished.empty()) return marks;
  std::string what;
  if (!missing.empty()) what = fmt::format("missing: {}", some_of(missing));
  if (!unfinished.empty()) {
    what += fmt::format("{}not finished: {}", what.empty() ? "" : "; ", some_of(unfinished));
  }
  return Error{ErrorCode::not_found,
               fmt::format("{}: of {} parts these are {}. Run ingest with --part NUMBER/{} "
                           "--resume for each",
                           folder.string(), count, what, count)};
}

/// Settings, the first difference of which is an error.
Result<void> check_alike(const fs::path& first, const Schema& wanted, const fs::path& path,
                         const Schema& found) {
  if (wanted.settings == found.settings) return {};
  const auto text = [](const Schema& schema, const std::string& name) -> std::string {
    for (const auto& [key, value] : schema.settings) {
      if (key == name) return value;
    }
    return "not set";
  };
  for (const auto* settings : {&wanted.settings, &found.settings}) {
    for (const auto& [name, value] : *settings) {
      if (text(wanted, name) == text(found, name)) continue;
      return Error{ErrorCode::schema_mismatch,
                   fmt::format("{} was made with {} = {}, {} with {}", path.string(), name,
                               text(found, name), first.string(), text(wanted, name))};
    }
  }
  return {};
}

/// Opens each part by itself, for what the parts together do not tell.
Result<void> check_parts(const std::vector<fs::path>& parts, const std::vector<PartMark>& marks) {
  Catalog catalog;
  std::optional<Schema> first;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto dataset = catalog.open({parts[i]});
    if (!dataset) return dataset.error();
    if (!first) first = (*dataset)->schema();
    if (auto alike = check_alike(parts[0], *first, parts[i], (*dataset)->schema()); !alike) {
      return alike;
    }
    const auto snapshot = (*dataset)->snapshot();
    if (!snapshot) return snapshot.error();
    if ((*snapshot)->sequences() != marks[i].sequences) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("{}: found {} sequences; {} were there when it was finished",
                               parts[i].string(), (*snapshot)->sequences(), marks[i].sequences)};
    }
  }
  return {};
}

}  // namespace

Result<IngestPart> read_part(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto number = parse_whole<std::uint32_t>(text.substr(0, slash));
  const auto count =
      slash == text.npos ? std::nullopt : parse_whole<std::uint32_t>(text.substr(slash + 1));
  if (number && count && *number < *count && *count <= kMostParts)
    return IngestPart{*number, *count};
  return Error{ErrorCode::invalid_argument,
               fmt::format("found {}, allowed: I/N with I from 0 to N - 1, and N up to {}", text,
                           kMostParts)};
}

std::string to_string(const IngestPart& part) {
  return fmt::format("{}/{}", part.number, part.count);
}

fs::path part_path(const fs::path& folder, const IngestPart& part) {
  return folder / fmt::format("part-{:05}-of-{:05}", part.number, part.count);
}

std::span<const SourceFile> files_of(std::span<const SourceFile> all, const IngestPart& part) {
  const std::size_t begin = all.size() * part.number / part.count;
  const std::size_t end = all.size() * (part.number + std::size_t{1}) / part.count;
  return all.subspan(begin, end - begin);
}

PartMark mark_of(std::span<const SourceFile> all, std::uint64_t sequences) {
  std::uint64_t hash = kFnv1aBasis;
  for (const SourceFile& file : all) {
    // The zero ends each key: "ab", "c" are not "a", "bc".
    hash = fnv1a(hash, std::string_view(file.key.c_str(), file.key.size() + 1));
  }
  return {hash, all.size(), sequences};
}

Result<void> write_mark(const fs::path& part, const PartMark& mark) {
  const std::string text = fmt::format("{}\nlist = {:016x}\nfiles = {}\nsequences = {}\n",
                                       kMarkHead, mark.list, mark.files, mark.sequences);
  const fs::path path = part / kMark, fresh = part / fmt::format("{}.new", kMark);
  const Descriptor file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.get() < 0) return failed(fresh, "open");
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return failed(fresh, "write");
  }
  if (::fsync(file.get()) != 0) return failed(fresh, "fsync");
  if (::rename(fresh.c_str(), path.c_str()) != 0) return failed(path, "rename");
  return {};
}

Result<std::optional<PartMark>> read_mark(const fs::path& part) {
  const fs::path path = part / kMark;
  std::error_code ignored;  // a mark that cannot be looked at is read, for the reason
  if (!fs::exists(path, ignored)) return std::optional<PartMark>();
  const std::string text = file_text(path).value_or("");
  std::string_view rest(text);
  const auto take = [&rest](std::string_view before, int base) -> std::optional<std::uint64_t> {
    if (!rest.starts_with(before)) return std::nullopt;
    rest.remove_prefix(before.size());
    return take_whole<std::uint64_t>(rest, base);
  };
  const auto list = take(fmt::format("{}\nlist = ", kMarkHead), 16);
  const auto files = take("\nfiles = ", 10);
  const auto sequences = take("\nsequences = ", 10);
  if (!list || !files || !sequences || rest != "\n") {
    return Error{ErrorCode::malformed_message,
                 fmt::format("{}: not what ingest --part writes; remove it, and run that part "
                             "again with --resume",
                             path.string())};
  }
  return std::optional(PartMark{*list, *files, *sequences});
}

Result<std::vector<fs::path>> find_parts(const fs::path& folder) {
  const auto count = count_of(folder);
  if (!count) return count.error();
  const auto marks = marks_of(folder, *count);
  if (!marks) return marks.error();
  std::vector<fs::path> parts;
  for (std::uint32_t i = 0; i < *count; ++i) {
    parts.push_back(part_path(folder, {i, *count}));
    const PartMark& mark = (*marks)[i];
    if (mark.list == marks->front().list && mark.files == marks->front().files) continue;
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{} was made from a list of {} files, {} from another of {}: files "
                             "came or went in between. Remove the parts, and make all from one",
                             parts.back().string(), mark.files, parts.front().string(),
                             marks->front().files)};
  }
  if (auto checked = check_parts(parts, *marks); !checked) return checked.error();
  return parts;
}

}  // namespace batchwright
