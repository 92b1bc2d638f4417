#include "daemon/delivery/feed/live/joins/joined_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>

namespace batchwright {
namespace {

/// How many frames a field has, in words of a live feed: its primary field is one that is pushed.
std::string_view frames_of(const FieldSpec& field) {
  return per_frame(field) ? "one value a frame" : kind_name(field.kind);
}

std::string describe(const FieldSpec& field) {
  return fmt::format("{} [{}], {}", dtype_name(field.dtype), fmt::join(field.shape, ", "),
                     frames_of(field));
}

/// The part of the row that a batch needs, as a row of its feed.
Row row_of(const JoinedPart& part) {
  const JoinedRow& of = *part.row;
  const std::uint32_t start = of.start + part.start;
  std::uint8_t flags = start == 0 ? kRowReset : 0;
  if (start + part.length == of.length) flags |= kRowLast;
  return {of.ordinal.value, start, part.length, flags, of.use};
}

}  // namespace

Result<std::shared_ptr<const Join>> make_join(const LiveFeedSettings& live,
                                              std::shared_ptr<const StoredRows> rows) {
  const Schema& theirs = rows->schema();
  auto join = std::make_shared<Join>();
  for (std::size_t f = live.pushed(); f < live.schema.fields.size(); ++f) {
    const FieldSpec& wanted = live.schema.fields[f];
    const auto place = theirs.find(wanted.name);
    if (!place) {
      return Error{ErrorCode::schema_mismatch,
                   fmt::format("rows of feed {}: {}", live.join.from, place.error().message)};
    }
    const FieldSpec& found = theirs.fields[*place];
    if (found.dtype != wanted.dtype || found.shape != wanted.shape ||
        frames_of(found) != frames_of(wanted)) {
      return Error{ErrorCode::schema_mismatch,
                   fmt::format("field \"{}\" of feed {} is {}; the fields of this feed say {}",
                               wanted.name, live.join.from, describe(found), describe(wanted))};
    }
    join->fields.push_back(*place);
  }
  join->rows = std::move(rows);
  return std::shared_ptr<const Join>(std::move(join));
}

Result<JoinedRow> join_row(const LiveFeedSettings& live, std::shared_ptr<const Join> join,
                           const wire::JoinedRow& named, std::uint32_t frames,
                           std::vector<FieldValue>& values) {
  const StoredRows& rows = *join->rows;
  const Ordinal ordinal{named.ordinal()};
  const auto wrong = [&](const std::string& what) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("row {} of feed {}: {}", ordinal.value, live.join.from, what)};
  };
  if (ordinal.value >= rows.sequences()) {
    return wrong(fmt::format("allowed: below {}", rows.sequences()));
  }
  const auto length = rows.length(Epoch{named.epoch()}, ordinal);
  if (!length) return wrong(length.error().message);
  if (std::uint64_t{named.start()} + frames > *length) {
    return Error{
        ErrorCode::schema_mismatch,
        fmt::format("{} frames are pushed, and row {} of feed {} has {} in epoch {}, of "
                    "which {} lie before them",
                    frames, ordinal.value, live.join.from, *length, named.epoch(), named.start())};
  }
  for (std::size_t i = 0; i < join->fields.size(); ++i) {
    const FieldSpec& field = live.schema.fields[live.pushed() + i];
    std::uint32_t own = 1;
    if (per_frame(field)) own = frames;
    if (field.kind == FieldKind::independent) own = rows.own_length(join->fields[i], ordinal);
    values.push_back({{}, own});
  }
  return JoinedRow{std::move(join), Epoch{named.epoch()}, ordinal,
                   named.start(),   named.use(),          *length};
}

JoinedRows::JoinedRows(const std::vector<JoinedPart>& parts) {
  for (const JoinedPart& part : parts) {
    places_.push_back({part});
    if (part.row == nullptr) continue;
    Group& group = groups_[part.row->join->rows.get()];
    places_.back().group = &group;
    places_.back().at = group.rows.size();
    group.rows.push_back(row_of(part));
    group.epochs.push_back(part.row->epoch);
  }
}

void JoinedRows::prepare() const {
  for (const auto& [stored, group] : groups_) stored->prepare(group.rows);
}

Result<void> JoinedRows::read(std::size_t r, std::vector<FieldValue>& fields) {
  if (places_.empty() || places_[r].group == nullptr) return {};
  const Place& place = places_[r];
  const Join& join = *place.part.row->join;
  Group& group = *place.group;
  if (!group.reader) group.reader = join.rows->read(group.rows, group.epochs);
  if (auto read = group.reader->read(place.at, row_); !read) return read;
  const std::size_t first = fields.size() - join.fields.size();
  for (std::size_t i = 0; i < join.fields.size(); ++i) {
    const FieldSpec& field = join.rows->schema().fields[join.fields[i]];
    FieldValue value = row_.fields[join.fields[i]];
    if (per_frame(field)) {
      const std::size_t start = place.part.row->start * frame_bytes(field);
      const std::size_t bytes = place.part.frames * frame_bytes(field);
      if (start > value.bytes.size() || bytes > value.bytes.size() - start) {
        return Error{ErrorCode::internal, "a row that is joined ends before its sequence"};
      }
      value = {value.bytes.subspan(start, bytes), place.part.frames};
    }
    fields[first + i] = value;
  }
  return {};
}

Result<void> JoinedRows::check_unchanged() const {
  for (const auto& [stored, group] : groups_) {
    if (!group.reader) continue;
    if (auto whole = group.reader->check_unchanged(); !whole) return whole;
  }
  return {};
}

MadeRows JoinedRows::made() {
  MadeRows sum;
  for (auto& [stored, group] : groups_) {
    if (!group.reader) continue;
    const MadeRows made = group.reader->made();
    for (std::size_t i = 0; i < kRecipeSteps; ++i) sum.step_seconds[i] += made.step_seconds[i];
    sum.sound_seconds += made.sound_seconds;
    sum.noise_left_out += made.noise_left_out;
    sum.samples_saturated += made.samples_saturated;
  }
  return sum;
}

}  // namespace batchwright
