#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "daemon/assembly/assembly.h"
#include "daemon/delivery/feed/feed_settings.h"
#include "formats/formats.h"

namespace batchwright {

/// Where the last fields of a live feed come from.
struct Join {
  std::shared_ptr<const StoredRows> rows;
  std::vector<std::size_t> fields;  ///< Their places among those of the rows.
};

/// Errors: schema_mismatch: the rows lack a field, or have another one of its name.
Result<std::shared_ptr<const Join>> make_join(const LiveFeedSettings& live,
                                              std::shared_ptr<const StoredRows> rows);

/// The row that a pushed sequence belongs to. It keeps its feed's data and recipe.
struct JoinedRow {
  std::shared_ptr<const Join> join;
  Epoch epoch;
  Ordinal ordinal;
  std::uint32_t start = 0;  ///< The row's frame that is the sequence's first.
  std::uint32_t use = 0;
  std::uint32_t length = 0;  ///< Of all of the row.
};

/// Finds the row of a sequence of so many frames, and puts the lengths of its fields behind
/// `values`; their bytes are read later. Errors: invalid_argument, schema_mismatch.
Result<JoinedRow> join_row(const LiveFeedSettings& live, std::shared_ptr<const Join> join,
                           const wire::JoinedRow& named, std::uint32_t frames,
                           std::vector<FieldValue>& values);

/// The frames [start, start + length) of a sequence of `frames`, whose row is joined.
struct JoinedPart {
  const JoinedRow* row = nullptr;  ///< Null: it has none.
  std::uint32_t frames = 0;
  std::uint32_t start = 0;
  std::uint32_t length = 0;
};

/// Reads the rows that are joined to the rows of one batch. Lifetime: their JoinedRows stay.
/// Threads: one at a time.
class JoinedRows {
 public:
  /// One for each row of the batch; none where no row is joined.
  explicit JoinedRows(const std::vector<JoinedPart>& parts);
  JoinedRows(const JoinedRows&) = delete;
  JoinedRows& operator=(const JoinedRows&) = delete;

  /// Brings what they are made of into memory. Waits for the disk.
  void prepare() const;
  /// Puts what is joined to row `r` into the last of `fields`: all frames of the sequence, of which
  /// those of the part are to be used. The bytes stay as long as this object. Errors: those of
  /// BatchReader::read().
  Result<void> read(std::size_t r, std::vector<FieldValue>& fields);
  /// As BatchReader has them.
  Result<void> check_unchanged() const;
  MadeRows made();

 private:
  /// Rows of the same data.
  struct Group {
    std::vector<Row> rows;
    std::vector<Epoch> epochs;
    std::unique_ptr<BatchReader> reader;  ///< Null until the first is read.
  };
  struct Place {
    JoinedPart part;
    Group* group = nullptr;  ///< Null: no row is joined.
    std::size_t at = 0;      ///< Within the group.
  };

  std::map<const StoredRows*, Group> groups_;
  std::vector<Place> places_;
  RowBytes row_;  ///< The current one.
};

}  // namespace batchwright
