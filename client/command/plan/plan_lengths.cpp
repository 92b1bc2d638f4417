#include "client/command/plan/plan_lengths.h"

#include <fmt/core.h>

#include <cerrno>
#include <fstream>
#include <iostream>
#include <system_error>

#include "daemon/assembly/assembly.h"
#include "storage/dataset/dataset.h"

namespace batchwright {
namespace {

/// What can be read on any terminal: other bytes as \xNN.
std::string printable(std::string_view text) {
  std::string shown;
  // A file that is no list may be one line of gigabytes: its beginning tells what it is.
  for (const char c : text.substr(0, 60)) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte >= 0x20 && byte < 0x7F;
    shown += plain ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  return shown;
}

Error bad_line(const std::string& file, std::uint64_t number, const std::string& found) {
  return {ErrorCode::invalid_argument,
          fmt::format("{}, line {}: found \"{}\", allowed: a length from 1 to 2147483647",
                      file == "-" ? "standard input" : file, number, printable(found))};
}

}  // namespace

Result<void> append_length_list(std::istream& in, const std::string& file, PlanLengths& lengths) {
  const std::size_t before = lengths.frames.size();
  std::uint64_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    std::string_view text = line;
    // Windows ends a line by CR and LF, of which getline() leaves the CR.
    if (text.ends_with('\r')) text.remove_suffix(1);
    const auto frames = parse_whole<std::uint32_t>(text);
    if (!frames || *frames == 0 || *frames > 0x7FFFFFFF) return bad_line(file, number, line);
    lengths.frames.push_back(*frames);
  }
  if (in.bad()) return Error{ErrorCode::io_error, fmt::format("reading {} failed", file)};
  // Each list counts as a dataset: mixing goes by datasets.
  lengths.datasets.push_back(lengths.frames.size() - before);
  if (lengths.datasets.back() > 0) return {};
  return Error{ErrorCode::invalid_argument, fmt::format("{}: the list of lengths is empty",
                                                        file == "-" ? "standard input" : file)};
}

Result<void> append_length_file(const std::string& file, PlanLengths& lengths) {
  if (file == "-") return append_length_list(std::cin, file, lengths);
  std::error_code failure;
  // A directory can be opened, and its reading fails without saying that it is one.
  if (std::filesystem::is_directory(file, failure)) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("{}: found a directory, allowed: a file with one length a line", file)};
  }
  std::ifstream in(file);
  if (!in) {
    const std::string why = std::generic_category().message(errno);
    return Error{ErrorCode::not_found,
                 fmt::format("{}: the list of lengths cannot be read: {}", file, why)};
  }
  return append_length_list(in, file, lengths);
}

Result<void> append_datasets(const std::vector<std::filesystem::path>& datasets,
                             PlanLengths& lengths, PlanSettings& settings) {
  Catalog catalog;
  // Opened together, as a feed does, so that schemas that do not match are refused.
  const auto opened = catalog.open(datasets, VerifyRecords::once, Locking::permitted);
  if (!opened) return opened.error();
  const auto snapshot = (*opened)->snapshot();
  if (!snapshot) return snapshot.error();
  const auto frames = (*snapshot)->lengths();
  lengths.frames.insert(lengths.frames.end(), frames.begin(), frames.end());
  const auto shards = (*snapshot)->shard_sequences();
  lengths.datasets.insert(lengths.datasets.end(), shards.begin(), shards.end());
  return read_order(**snapshot, settings);
}

}  // namespace batchwright
