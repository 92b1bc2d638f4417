#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "client/command/commands.h"
#include "client/command/exit_code.h"
#include "client/command/interrupt.h"
#include "client/command/output.h"
#include "client/command/progress.h"
#include "storage/dataset/dataset.h"
#include "storage/ingest/ingest.h"

namespace batchwright {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using Clock = std::chrono::steady_clock;

/// The parts as one dataset.
struct Gathered {
  std::vector<fs::path> parts;
  std::shared_ptr<const Snapshot> snapshot;
  Schema schema;  ///< With the settings of the parts.
};

Result<Gathered> open_parts(const fs::path& folder) {
  auto parts = find_parts(folder);
  if (!parts) return parts.error();
  Catalog catalog;
  const auto dataset = catalog.open(*parts);
  if (!dataset) return dataset.error();
  auto snapshot = (*dataset)->snapshot();
  if (!snapshot) return snapshot.error();
  if ((*snapshot)->sequences() == 0) {
    return Error{ErrorCode::invalid_argument, fmt::format("{}: no sequence in any of its {} parts",
                                                          folder.string(), parts->size())};
  }
  return Gathered{std::move(*parts), std::move(*snapshot), (*dataset)->schema()};
}

/// Keys of earlier parts, which a later one may not have: shards are looked up in their order.
Result<void> check_keys(const Gathered& gathered) {
  for (std::uint64_t i = 0; i < gathered.snapshot->sequences(); ++i) {
    const auto record = gathered.snapshot->record(Ordinal{i});
    if (!record) return record.error();
    std::string key;
    if (!guarded([&] { key.assign(record->key()); })) {
      return Error{ErrorCode::store_unavailable, fmt::format("sequence {} cannot be read", i)};
    }
    const auto first = gathered.snapshot->find(key);
    if (!first) return first.error();
    if (*first && (*first)->value < i) {
      return Error{ErrorCode::already_exists,
                   fmt::format("key \"{}\" is in two parts, as sequence {} and {}", key,
                               (*first)->value, i)};
    }
  }
  return {};
}

/// Copies sequences into one dataset.
class Merge {
 public:
  Merge(const Gathered& gathered, DatasetWriter& writer)
      : snapshot_(*gathered.snapshot), writer_(writer), values_(gathered.schema.fields.size()) {}

  /// Errors: already_exists (a key of two parts), and those of reading and writing.
  Result<void> take(Ordinal ordinal) {
    const auto record = snapshot_.record(ordinal);
    if (!record) return record.error();
    if (auto read = fields_from_map(*record, values_); !read) return read;
    key_.assign(record->key());
    auto added = writer_.append({key_, values_});
    if (!added) return added.error();
    snapshot_.let_go(ordinal);
    return {};
  }

 private:
  const Snapshot& snapshot_;
  DatasetWriter& writer_;
  std::vector<FieldValue> values_;
  std::string key_;
};

/// The sequences that an interrupted call has written: a prefix of the parts.
Result<std::uint64_t> begun(const Gathered& gathered, const DatasetWriter& writer,
                            const GatherOptions& options) {
  const std::uint64_t there = writer.sequences();
  if (there == 0) return there;
  const auto refused = [&options](const std::string& what) {
    return Error{ErrorCode::already_exists, fmt::format("{}: {}", options.into.string(), what)};
  };
  if (!options.resume) return refused("there is a dataset; --resume goes on with it");
  if (there > gathered.snapshot->sequences()) {
    return refused(fmt::format("found {} sequences; the parts have {}", there,
                               gathered.snapshot->sequences()));
  }
  const auto last = gathered.snapshot->record(Ordinal{there - 1});
  if (!last) return last.error();
  const auto has = writer.contains(std::string(last->key()));
  if (!has) return has.error();
  if (!*has) return refused("it does not begin with the sequences of these parts");
  return there;
}

/// Writes all that is missing. False: a signal has ended it, and what was copied is committed.
Result<bool> copy(const Gathered& gathered, DatasetWriter& writer, std::uint64_t from) {
  const Interrupt interrupt;
  const auto start = Clock::now();
  ProgressLine progress(stderr, start);
  Merge merge(gathered, writer);
  const std::uint64_t all = gathered.snapshot->sequences();
  Result<void> done;
  for (std::uint64_t i = from; i < all && done && !interrupt.came(); ++i) {
    done = merge.take(Ordinal{i});
    const auto now = Clock::now();
    if (!progress.due(now, i + 1, all)) continue;
    progress.print(now, i + 1, all, fmt::format("{} of {} sequences", i + 1, all));
  }
  // What was copied is a prefix, with which --resume goes on.
  const auto committed = writer.commit();
  if (!done) return done.error();
  if (!committed) return committed.error();
  return writer.sequences() == all;
}

/// The one dataset. Its content is that of an ingest without parts.
Result<bool> merge(const Gathered& gathered, const GatherOptions& options) {
  auto writer = DatasetWriter::open(options.into, gathered.schema);
  if (!writer) return writer.error();
  const auto there = begun(gathered, *writer, options);
  if (!there) return there.error();
  return copy(gathered, *writer, *there);
}

std::uint64_t frames_of(const Snapshot& snapshot) {
  std::uint64_t frames = 0;
  for (const std::uint32_t length : snapshot.lengths()) frames += length;
  return frames;
}

int report(const Gathered& gathered, const GatherOptions& options, const Snapshot& made) {
  json::array shards;
  for (const fs::path& part : gathered.parts) shards.emplace_back(fs::absolute(part).string());
  if (options.json) {
    print_json_line(json::object{
        {"parts", gathered.parts.size()},
        {"sequences", made.sequences()},
        {"frames", frames_of(made)},
        {"content", fmt::format("{:016x}", made.content())},
        {"dataset", options.into.empty() ? json::value(std::move(shards))
                                         : json::value(fs::absolute(options.into).string())}});
  } else if (options.into.empty()) {
    // On standard output nothing but the line: it goes into a file.
    fmt::print("dataset = {}\n", json_text(shards));
    fmt::print(stderr, "{} parts with {} sequences of {} frames, content {:016x}\n",
               gathered.parts.size(), made.sequences(), frames_of(made), made.content());
  } else {
    fmt::print("{} parts: {} sequences of {} frames in {}, content {:016x}\n",
               gathered.parts.size(), made.sequences(), frames_of(made), options.into.string(),
               made.content());
  }
  return kDone;
}

}  // namespace

int run_gather(const GatherOptions& options) {
  const auto gathered = open_parts(options.folder);
  if (!gathered) return fail(gathered.error());
  if (options.into.empty()) {
    if (const auto checked = check_keys(*gathered); !checked) return fail(checked.error());
    return report(*gathered, options, *gathered->snapshot);
  }
  const auto whole = merge(*gathered, options);
  if (!whole) return fail(whole.error());
  if (!*whole) {
    warn("interrupted: what was copied is committed; --resume goes on after it");
    return kFailed;
  }
  Catalog catalog;
  const auto dataset = catalog.open({options.into});
  if (!dataset) return fail(dataset.error());
  const auto made = (*dataset)->snapshot();
  if (!made) return fail(made.error());
  return report(*gathered, options, **made);
}

}  // namespace batchwright
