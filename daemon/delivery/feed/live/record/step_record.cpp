#include "daemon/delivery/feed/live/record/step_record.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/planning/planning.h"

namespace batchwright {
namespace {

constexpr std::string_view kHeader = "# batchwright record, world = ";

std::string header_of(std::uint32_t world) { return fmt::format("{}{}", kHeader, world); }

/// The ordinal of a row as a record writes it, with or without a part and a weight behind.
std::optional<std::uint64_t> ordinal_in(std::string_view row) {
  if (!row.starts_with('#')) return {};
  row.remove_prefix(1);
  const auto ordinal = take_whole<std::uint64_t>(row);
  if (row.starts_with(' ') && !row.starts_with(" *")) {
    for (int i = 0; i < 2; ++i) {
      if (!row.starts_with(' ')) return {};
      row.remove_prefix(1);
      if (!take_whole<std::uint64_t>(row)) return {};
    }
  }
  return row.empty() || row.starts_with(" *") ? ordinal : std::nullopt;
}

/// Reads the order file of a record, and finds where its last step ends of which the dataset has
/// all sequences. What a death has left behind that is no line, or has a zero: pages that were
/// never written.
class OrderScan {
 public:
  OrderScan(const KeptFile& file, std::uint32_t world, std::uint64_t sequences)
      : file_(file), header_(header_of(world)), world_(world), sequences_(sequences) {}

  /// Errors: io_error, bad_configuration.
  Result<std::uint64_t> end() {
    std::string text;  // from the line that is read on
    std::vector<char> chunk(kChunkBytes);
    for (std::uint64_t offset = 0;;) {
      const auto got = file_.read(std::as_writable_bytes(std::span(chunk)), offset);
      if (!got) return got.error();
      text.append(chunk.data(), *got);
      offset += *got;
      std::size_t from = 0;
      for (std::size_t at = text.find('\n'); at != text.npos; at = text.find('\n', from)) {
        const std::string_view line = std::string_view(text).substr(from, at - from);
        const auto goes_on = take(line);
        if (!goes_on) return goes_on.error();
        if (!*goes_on) return end_;
        from = at + 1;
      }
      text.erase(0, from);
      if (*got < chunk.size() || text.size() > kMostOrderLineBytes) return check_rest(text);
    }
  }

 private:
  static constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

  Error bad(const std::string& found, const std::string& allowed) const {
    return {ErrorCode::bad_configuration,
            fmt::format("{}: line {}: found {}; allowed: {}", file_.name(), line_, found, allowed)};
  }

  /// False where nothing behind it counts.
  Result<bool> take(std::string_view line) {
    ++line_;
    at_ += line.size() + 1;
    if (line.find('\0') != line.npos) return false;
    if (line_ == 1) {
      if (line != header_) return not_its_header(line);
      end_ = at_;
      return true;
    }
    if (line.starts_with("# ")) return true;
    for (const std::string_view row : split(line, '\t')) {
      if (row == "-") continue;  // a free lane
      const auto ordinal = ordinal_in(row);
      if (!ordinal) {
        return bad(
            fmt::format("\"{}\"", printable(std::string(row.substr(0, 60)))),
            "#ORDINAL, #ORDINAL *WEIGHT, the same with START COUNT behind the ordinal, or -, as "
            "a record writes it");
      }
      if (*ordinal >= sequences_) return false;
    }
    if (++lines_ == world_) {
      lines_ = 0;
      end_ = at_;
    }
    return true;
  }

  Error not_its_header(std::string_view line) const {
    const bool is_other = line.starts_with(kHeader);
    return bad(fmt::format("\"{}\"", printable(std::string(line.substr(0, 60)))),
               is_other ? fmt::format("\"{}\", as plan.world is, or another record", header_)
                        : "a file that a record began");
  }

  /// Of the last line, which has no end. A file without a line may be anybody's.
  Result<std::uint64_t> check_rest(std::string_view rest) const {
    const bool is_own = rest.find('\0') != rest.npos || header_.starts_with(rest);
    if (line_ != 0 || is_own) return end_;
    return not_its_header(rest);
  }

  const KeptFile& file_;
  const std::string header_;
  const std::uint32_t world_;
  const std::uint64_t sequences_;
  std::uint64_t line_ = 0;
  std::uint64_t at_ = 0;     ///< Where the next line begins.
  std::uint64_t end_ = 0;    ///< Of the last whole step, or of the header.
  std::uint32_t lines_ = 0;  ///< Of batches of the step that is read.
};

/// What is joined to a sequence, in memory of its own: what lies in a map is not safe to copy.
class JoinedValues {
 public:
  /// The fields of `sequence`, all of them. Errors: those of JoinedRows.
  Result<std::span<const FieldValue>> of(const PushedSequence& sequence) {
    fields_ = sequence.fields;
    if (!sequence.of) return std::span<const FieldValue>(fields_);
    const std::uint32_t frames = fields_.front().length;
    JoinedRows rows({{&*sequence.of, frames, 0, frames}});
    if (auto read = rows.read(0, fields_); !read) return read.error();
    const std::size_t first = fields_.size() - sequence.of->join->fields.size();
    memory_.resize(fields_.size());
    for (std::size_t f = first; f < fields_.size(); ++f) {
      memory_[f].resize(fields_[f].bytes.size());
      if (auto copied = copy_from_map(memory_[f], fields_[f].bytes); !copied) return copied.error();
      fields_[f].bytes = memory_[f];
    }
    if (auto whole = rows.check_unchanged(); !whole) return whole.error();
    return std::span<const FieldValue>(fields_);
  }

 private:
  std::vector<FieldValue> fields_;
  std::vector<std::vector<std::byte>> memory_;
};

Result<void> sync_order(const KeptFile& file) {
  if (::fdatasync(file.descriptor()) != 0) return file.failed("sync");
  return {};
}

/// Begins the file, so that its name is on the disk, too.
Result<std::uint64_t> begin_order(KeptFile& file, std::uint32_t world) {
  const std::string header = header_of(world) + "\n";
  if (auto written = file.write(std::as_bytes(std::span(header))); !written) return written.error();
  if (auto synced = sync_order(file); !synced) return synced.error();
  sync_folder(std::filesystem::path(file.path()).parent_path());
  return header.size();
}

}  // namespace

std::filesystem::path order_file_of(const std::filesystem::path& dataset) {
  std::filesystem::path file = dataset.lexically_normal();
  if (!file.has_filename()) file = file.parent_path();  // "PATH/"
  file += ".order";
  return file;
}

Result<std::unique_ptr<StepRecord>> StepRecord::open(const std::filesystem::path& dataset,
                                                     const Schema& schema, std::uint32_t world) {
  WriterLimits limits;
  limits.wait = std::chrono::milliseconds{0};
  auto writer = DatasetWriter::open(dataset, schema, limits);
  if (!writer) return writer.error();
  auto file = KeptFile::open("order file", order_file_of(dataset).string());
  if (!file) return file.error();
  auto end = OrderScan(**file, world, writer->sequences()).end();
  if (!end) return end.error();
  if (auto cut = (*file)->cut(*end); !cut) return cut.error();
  if (*end == 0) end = begin_order(**file, world);
  if (!end) return end.error();
  if (auto room = (*file)->check_room(); !room) return room.error();
  return std::unique_ptr<StepRecord>(
      new StepRecord(dataset, std::move(*writer), std::move(*file), *end));
}

/// Lines of what was not committed would name what the dataset does not have.
Result<void> StepRecord::write(std::span<const RecordedStep* const> steps) {
  auto written = write_all(steps);
  if (!written) static_cast<void>(order_->cut(order_bytes_));
  return written;
}

Result<void> StepRecord::write_all(std::span<const RecordedStep* const> steps) {
  std::string lines;
  for (const RecordedStep* step : steps) lines += step->lines;
  if (auto written = order_->write(std::as_bytes(std::span(lines))); !written) return written;
  if (auto synced = sync_order(*order_); !synced) return synced;
  for (const RecordedStep* step : steps) {
    if (auto appended = append(*step); !appended) return appended;
  }
  if (auto committed = writer_.commit(); !committed) return committed;
  order_bytes_ += lines.size();
  return {};
}

Result<void> StepRecord::append(const RecordedStep& step) {
  JoinedValues values;
  for (std::size_t i = 0; i < step.sequences.size(); ++i) {
    const PushedSequence& sequence = *step.sequences[i];
    const Ordinal ordinal{step.first + i};
    const auto key = free_key(sequence.key, ordinal);
    if (!key) return key.error();
    const auto fields = values.of(sequence);
    if (!fields) {
      return Error{fields.error().code, fmt::format("{}: sequence {}: {}", name(), ordinal.value,
                                                    fields.error().message)};
    }
    const auto appended = writer_.append({*key, *fields});
    if (!appended) return appended.error();
    if (*appended == ordinal) continue;
    return Error{ErrorCode::internal, fmt::format("{}: sequence {} became its sequence {}", name(),
                                                  ordinal.value, appended->value)};
  }
  return {};
}

/// A dataset has each key once, and producers may push one again and again.
Result<std::string> StepRecord::free_key(const std::string& key, Ordinal ordinal) const {
  std::string name = key;
  for (std::uint64_t tries = 0;; ++tries) {
    const auto taken = writer_.contains(name);
    if (!taken) return taken.error();
    if (!*taken) return name;
    const std::string behind = tries == 0 ? fmt::format("~{}", ordinal.value)
                                          : fmt::format("~{}.{}", ordinal.value, tries);
    name = key.substr(0, kMaxKeyBytes - behind.size()) + behind;
  }
}

}  // namespace batchwright
