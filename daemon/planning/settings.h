#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/planning/order_rows.h"
#include "formats/formats.h"

namespace batchwright {

enum class Select : std::uint8_t { full, fixed, linear, cosine };
enum class Order : std::uint8_t {
  random,
  sorted,
  bucket,          ///< Buckets by rank, `bucket_size` sequences each (Ge et al.).
  bucket_span,     ///< Buckets by length, `bucket_span` frames wide or at given boundaries (MXNet).
  bucket_optimal,  ///< Boundaries by dynamic programming (Khomenko et al.).
  alternated,      ///< `bins` (Doetsch et al.).
  semi_sorted,     ///< `randomization` is the LRF (Ge et al.).
  file             ///< As `order_file` has the rows.
};
enum class Cut : std::uint8_t {
  fixed,
  dynamic,
  frames,  ///< Padding counts (RETURNN's rule).
  quadratic,
  real_frames,  ///< Padding does not count, so that an epoch has as many batches whatever the
                ///< order.
  file          ///< A line of `order_file` is a batch.
};
enum class CutRule : std::uint8_t { strict, overrun };
enum class LastBatch : std::uint8_t { keep, drop };
enum class Shuffle : std::uint8_t { off, batches, groups };
enum class Remainder : std::uint8_t { drop, spread, wrap };
/// The effect of a mixed dataset that has no sequence left in an epoch.
enum class Exhausted : std::uint8_t { wrap, end };

/// The planning of a feed's epochs. Names, values and ranges as on the command line and in
/// `[feed.plan]`; the table in settings.cpp is the one place that knows how they are written.
struct PlanSettings {
  Select select = Select::full;
  std::optional<double> usage;  ///< DUR; alpha, beta or lambda follow from it.
  std::optional<double> alpha;
  std::optional<double> beta;
  std::optional<double> lambda;
  std::uint32_t flat_after = 0;  ///< l, an epoch.
  double floor = 0.0;            ///< c
  std::uint32_t epochs = 0;      ///< E, of stochastic data sweeping.

  std::uint32_t chunk = 0;      ///< Frames of a chunk; 0: whole sequences.
  std::uint32_t hop = 0;        ///< Frames between chunk starts; 0: as `chunk`.
  std::uint32_t min_chunk = 0;  ///< Frames; a last chunk that is shorter is left out.
  std::uint32_t lanes = 0;      ///< b of truncated unrolling; 0: off.
  std::uint32_t unroll = 0;     ///< u, frames of a row in truncated unrolling.

  std::vector<double> mix_weights;  ///< One a dataset; empty: all sequences, unweighted.
  Exhausted mix_exhausted = Exhausted::wrap;

  std::uint32_t min_length = 0;  ///< Frames; shorter sequences are left out, and counted.
  std::uint32_t max_length = 0;  ///< Frames; 0: no limit.

  Order order = Order::random;
  double randomization = 0.1;                    ///< LRF of semi_sorted.
  std::uint32_t bins = 0;                        ///< Bins of `alternated`.
  std::uint32_t bucket_size = 0;                 ///< Ranks, of bucket.
  std::uint32_t bucket_span = 0;                 ///< Frames, of bucket_span.
  std::uint32_t bucket_count = 0;                ///< k, of bucket_optimal.
  std::vector<std::uint32_t> bucket_boundaries;  ///< Upper lengths, growing, of bucket_span.
  std::string order_file;                        ///< Path of the rows of file.
  std::string row_weight;                        ///< A scalar field, of file.
  /// What order_file has, with the weights of row_weight, once it has been read for the data that
  /// are planned; read_order() of the assembly room does that. Null: it has not.
  std::shared_ptr<const OrderRows> order_rows;

  Cut cut = Cut::fixed;
  std::uint32_t size = 16;  ///< B0, rows.
  CutRule rule = CutRule::strict;
  std::uint64_t max_frames = 0;       ///< Budget of frames, quadratic and real_frames.
  std::uint64_t max_padded = 0;       ///< Padded frames at most, of real_frames; 0: 4 max_frames.
  std::uint32_t quadratic_scale = 0;  ///< a in frames + frames^2 / a, of quadratic.
  std::uint32_t length_multiple = 0;  ///< Frames that a batch's length is a multiple of; 0: any.
  std::uint32_t size_multiple = 1;
  std::uint32_t max_size = 0;  ///< Rows; 0: no limit.
  LastBatch last = LastBatch::keep;

  std::uint64_t seed = 0;
  Shuffle shuffle = Shuffle::off;
  std::uint32_t world = 1;  ///< Batches of a global step.
  Remainder remainder = Remainder::drop;
};

/// One setting, as people write it.
struct SettingRow {
  std::string_view name;     ///< Name in the configuration; `--` and `-` for `_` on a command line.
  std::string_view allowed;  ///< "random sorted ..." or "1 and up", for help and errors.
  std::string_view help;     ///< One sentence, with the unit and the source.
};

/// The kind of a setting's value, for texts that treat numbers and words differently.
enum class SettingType : std::uint8_t { word, whole, real, whole_list, real_list, text };

/// The type of a setting that setting_rows() names.
SettingType setting_type(std::string_view name);

/// All settings, in the order they are documented in.
std::span<const SettingRow> setting_rows();

/// Sets one setting from text. Errors: bad_configuration, which says what was found and what is
/// allowed; an unknown name gets the nearest known one.
Result<void> set_setting(PlanSettings& settings, std::string_view name, std::string_view value);

/// The setting as text that set_setting() reads back; empty for one that is not set.
std::string get_setting(const PlanSettings& settings, std::string_view name);

/// `length` up to the next multiple; 0: it stays.
inline std::uint32_t rounded_up(std::uint32_t length, std::uint32_t multiple) {
  const std::uint32_t over = multiple == 0 ? 0 : length % multiple;
  return over == 0 ? length : length + (multiple - over);
}
/// The length that counts for cut and padding.
inline std::uint32_t on_grid(const PlanSettings& settings, std::uint32_t length) {
  return rounded_up(length, settings.length_multiple);
}

/// Whether rows may be parts of sequences.
bool makes_parts(const PlanSettings& settings);

/// Checks what concerns several settings at once. Errors: bad_configuration.
Result<void> check_settings(const PlanSettings& settings);

}  // namespace batchwright
