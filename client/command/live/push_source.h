#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/library/batchwright/client.h"
#include "formats/formats.h"

namespace batchwright {

/// A sequence to push, with values of its own.
struct SequenceToPush {
  std::uint64_t number = 0;                    ///< Counts from 0 as those of a producer.
  std::string key;                             ///< Empty: the producer names it.
  std::vector<std::vector<std::byte>> values;  ///< One for each field of the live feed.
  std::vector<std::uint32_t> lengths;
  bw_origin origin = BW_ORIGIN_INIT;
  std::string row_feed;  ///< Of `row`; empty: it names none.
  bw_of row{};           ///< All but its feed.

  std::uint64_t bytes() const;
};

/// Sequences in the order of their numbers, with the fields of a live feed.
class PushSource {
 public:
  virtual ~PushSource() = default;
  /// The next one whose number is `from` or above; empty: there is none. Errors: those of the file,
  /// which is named with the place, what was found, and what is allowed.
  virtual Result<std::optional<SequenceToPush>> next(std::uint64_t from) = 0;
  virtual std::optional<std::uint64_t> total() const = 0;  ///< Empty: not known before the end.
};

/// The sequences of a dataset, whose fields are found by name; the ordinal is the number.
/// Errors: those of Catalog::open(); schema_mismatch (a field is lacking, or is another one).
/// Lifetime: the feed must live as long.
Result<std::unique_ptr<PushSource>> open_dataset_to_push(const std::filesystem::path& path,
                                                         const bw_feed& feed);

/// JSON lines, one object a sequence: each field by name as nested lists of numbers, a scalar as a
/// number, and where it has them `key` `number` `version` `version_newest` `group` `group_size`
/// `weight` `of`. Without `number` lines count from 0. "-" is standard input.
/// Errors: invalid_argument (it cannot be read). Lifetime: the feed must live as long.
Result<std::unique_ptr<PushSource>> open_lines_to_push(const std::filesystem::path& path,
                                                       const bw_feed& feed);

}  // namespace batchwright
