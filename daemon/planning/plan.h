#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "daemon/planning/settings.h"
#include "formats/formats.h"

namespace batchwright {

/// One row of a batch: a sequence, or a chunk of one.
struct Row {
  std::uint64_t ordinal = 0;  ///< Place of the sequence in the dataset.
  std::uint32_t start = 0;    ///< First frame of the chunk; 0 for a whole sequence.
  std::uint32_t length = 0;   ///< Frames; 0 only for a lane of truncated unrolling that ran out.
  std::uint8_t flags = 0;     ///< kRowReset, kRowLast; whole sequences have both.
  std::uint32_t use = 0;      ///< Earlier rows of the epoch with this ordinal and start.
  float weight = 1.0F;        ///< One of weight 0 counts in no total.
};

/// The figures of one batch.
struct BatchFigures {
  std::uint32_t rows = 0;
  std::uint32_t batch_length = 0;  ///< L: the longest row, up to a multiple of length_multiple.
  std::uint64_t frames = 0;        ///< Sum of the rows' lengths; padded frames are rows * L.
  // Of them, those that have weight 0.
  std::uint32_t unweighted_rows = 0;
  std::uint64_t unweighted_frames = 0;

  /// Rows that have a weight, and their frames.
  std::uint32_t counted_rows() const { return rows - unweighted_rows; }
  std::uint64_t counted_frames() const { return frames - unweighted_frames; }
};

/// The sequences that an epoch uses.
struct PlanCounts {
  std::uint64_t left_out = 0;  ///< Shorter than min_length or longer than max_length.
  std::uint64_t kept = 0;      ///< All others; of order = file those that the file names.
  std::uint64_t selected = 0;  ///< Those drawn for this epoch.
  /// Of cut = real-frames: batches that max_padded ended before max_frames did. As cut, before the
  /// remainder is dropped, spread or wrapped.
  std::optional<std::uint64_t> cut_by_padding;
};

/// The batches of one epoch. A pure function of (lengths, settings, seed, epoch): the same on
/// every platform, compiler and number of threads.
///
/// Lifetime: it refers to the lengths it was planned from; keep them.
/// Threads: immutable, so any number may read.
class EpochPlan {
 public:
  std::uint64_t batches() const;  ///< A multiple of world: what is delivered in all.
  std::uint64_t steps() const;    ///< batches() / world().
  std::uint32_t world() const;
  /// L of a batch whose longest row has so many frames.
  std::uint32_t padded_length(std::uint32_t longest) const;
  /// The rows of batch `index` < batches(), put into `rows`, whose memory is used again.
  void rows(BatchIndex index, std::vector<Row>& rows) const;
  BatchFigures figures(BatchIndex index) const;
  /// Chunks that `chunk` cuts a sequence into; 0 where it does not.
  std::uint32_t chunks_of(Ordinal ordinal) const;

  /// Calls `use` with the figures of every batch, in the order in which they lie in memory: several
  /// times as fast as by index. 4 bytes a batch meanwhile.
  void each_figures(const std::function<void(BatchIndex, const BatchFigures&)>& use) const;
  PlanCounts counts() const;
  /// The longest length of each bucket, of bucket_span and bucket_optimal; otherwise empty. Of
  /// equal spans only those that have batches.
  std::vector<std::uint32_t> bucket_limits() const;

  struct State;  ///< Private to the room; see plan.cpp.
  explicit EpochPlan(std::shared_ptr<const State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<const State> state_;
};

/// `datasets`: how many of the lengths belong to each dataset, in their order; mix_weights needs
/// it. Cost: O(n) time except for the sorts; at most 16 bytes a sequence at its peak, or where rows
/// are far more than sequences mostly 9 a row (README.md). Any epoch takes the same, for none
/// depends on another. Errors: infeasible, invalid_argument, and those of check_settings(); the
/// message names setting, value and range.
Result<EpochPlan> plan_epoch(std::span<const std::uint32_t> lengths, const PlanSettings& settings,
                             Epoch epoch, std::span<const std::uint64_t> datasets = {});

/// The shares of the kept sequences that the epochs use (Deng et al.).
struct DataUsage {
  double epoch = 1;      ///< s(epoch), of this epoch alone.
  double so_far = 1;     ///< DUR of epochs 0 to this one.
  double all = 1;        ///< DUR of all epochs; of those so far if `epochs` is not set.
  double parameter = 0;  ///< alpha, beta or lambda, as given or solved; 0 for select = full.
};
/// Errors: as plan_epoch().
Result<DataUsage> data_usage(const PlanSettings& settings, Epoch epoch);

/// Bounds that hold in every epoch, whatever the seed. The arena is sized by them.
/// Errors: as plan_epoch(), and those of later epochs, which may use fewer sequences or cut them
/// into fewer batches: the message says which epoch. An epoch past those that were tried can still
/// turn out infeasible where its draw or its order alone decides that (README.md).
struct PlanBound {
  std::uint64_t rows = 0;           ///< Rows of the batch with most rows.
  std::uint64_t padded_frames = 0;  ///< Largest rows * L.
};
Result<PlanBound> plan_bound(std::span<const std::uint32_t> lengths, const PlanSettings& settings,
                             std::span<const std::uint64_t> datasets = {});

/// Counted up with every change by which the same settings give another plan: a job begun under an
/// older version cannot be resumed, instead of silently getting other batches.
inline constexpr std::uint64_t kPlannerVersion = 1;

/// A sentence for people about valid settings with an effect that is seldom meant; empty: none.
/// Settings that check_settings() or the sweep refuse have none.
std::string plan_note(const PlanSettings& settings);

/// Calls `use` with each setting on which a plan depends, in the order of setting_rows(). In place
/// of order_file and row_weight there is order_rows, a number for what was read of them.
void each_term(const PlanSettings& settings,
               const std::function<void(std::string_view name, const std::string& value)>& use);

/// Hash of kPlannerVersion and each_term() but the seed, for Fingerprint::settings. Equal on every
/// platform.
std::uint64_t settings_hash(const PlanSettings& settings);

}  // namespace batchwright
