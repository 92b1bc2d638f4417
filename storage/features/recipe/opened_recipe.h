#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/formats.h"
#include "storage/features/recipe/draw_keys.h"
#include "storage/features/recipe/sources/stored_sound.h"
#include "storage/features/recipe/step_table.h"
#include "storage/features/recipe/steps/step.h"

namespace batchwright {

/// Lengths of all rows, by ordinal.
using SharedLengths = std::shared_ptr<const std::vector<std::uint32_t>>;

/// Values of a frame, all steps done: 16 MiB, the most that a frame of a dataset may have.
inline constexpr std::uint64_t kMostFrameValues = std::uint64_t{1} << 22;

/// The rate that all sequences have. Errors: bad_configuration: they have several.
Result<std::uint32_t> common_rate(std::span<const std::uint32_t> rates);

/// A recipe with the data that it needs, for the sequences of one dataset.
///
/// A row depends on its own sequence and its draws' key, and on nothing else.
/// Immutable. Threads: any.
class Recipe {
 public:
  /// `of` is the dataset whose sequences become rows. Blocks on the disk.
  /// Errors: bad_configuration, naming the setting, what was found and what is allowed; those of
  /// opening noise, rooms and statistics.
  static Result<std::shared_ptr<const Recipe>> open(const RecipeSettings& settings,
                                                    const Snapshot& of, std::uint64_t seed,
                                                    Catalog& catalog);

  /// Whether rows are sound, or else frames of features.
  bool makes_sound() const { return sound_ && !front_end_; }
  /// Values of a frame of features, before any step behind them.
  std::uint32_t dimensions() const { return data_.dimensions; }
  /// The fields of the rows, in their order.
  const Schema& schema() const { return fields_.schema; }
  /// The stored field that a field of the rows comes from.
  std::size_t stored_field(std::size_t field) const { return fields_.stored[field]; }
  /// Whether RowMaker makes the field, or else it is what is stored.
  bool makes(std::size_t field) const { return fields_.made[field]; }
  /// Whether RowMaker makes it, with a value a frame; otherwise what it makes has one a row.
  bool makes_frames(std::size_t field) const {
    return makes(field) && fields_.schema.fields[field].kind != FieldKind::scalar;
  }

  /// Bytes of a frame of all that is made of a row.
  std::uint64_t frame_bytes() const;

  const RecipeSettings& settings() const { return data_.settings; }
  /// Hz, of the sound that rows or their features are made of; 0 where none is.
  std::uint32_t rate() const { return data_.rate; }
  /// What makes features of sound; null where nothing does.
  const FrontEnd* front_end() const { return front_end_ ? &*front_end_ : nullptr; }
  /// Which noise, or room, a draw for a style stands for: dataset and key.
  std::string noise_name(std::size_t style, const NoiseDraw& draw) const;
  std::string room_name(std::size_t style, const RoomDraw& draw) const;

  /// The rows' lengths in an epoch; 0 for sequences too short for the front end. Without random
  /// speeds and offsets all epochs share them.
  /// Errors: bad_configuration: sequences of other rates than the front end's, and no sample_rate.
  Result<SharedLengths> lengths(const Snapshot& of, Epoch epoch) const;
  /// The length of one sequence's row, as lengths() has it. Errors: those of measure().
  Result<std::uint32_t> length(const Snapshot& of, Ordinal ordinal, const DrawKey& key) const;
  /// Every length that a row can have in any epoch: lists by ordinal, one for each speed, and two
  /// for each where the offset of keep_one_of is drawn.
  Result<std::vector<SharedLengths>> possible_lengths(const Snapshot& of) const;
  /// What making the longest row of these data takes a thread, of sound: as stored, decoded,
  /// resampled, with noise. And what is kept of noise and rooms for all of them.
  std::uint64_t thread_bytes(const Snapshot& of) const;
  std::uint64_t kept_bytes() const;
  /// Frames of [start, start + count) whose targets are not ignored.
  std::uint64_t real_frames(std::uint64_t start, std::uint64_t count) const;

  /// recipe_text(), and a line for the contents of each thing it reads beside the dataset.
  const std::string& text() const { return text_; }
  /// The same with draws = 1.
  std::string first_draws_text() const;
  /// What the features are made by, without what changes at random: a line a setting.
  const std::string& made_by() const { return made_by_; }

  /// What the draws of each row of an epoch depend on. Blocks on the disk, mostly the first time
  /// alone. Errors: those of shard_identity(), naming the sequence.
  Result<DrawKeys> draw_keys(const Snapshot& of, Epoch epoch) const;

  /// Of one sequence: `stored` samples or frames, of `rate` Hz where it is sound.
  Result<RowLengths> measure(std::uint64_t stored, std::uint32_t rate, const DrawKey& key) const;

 private:
  friend class RowMaker;
  explicit Recipe(RecipeSettings settings);

  Result<void> open_sound(const Snapshot& of);
  Result<void> check_seconds(const Snapshot& of) const;
  Result<void> check_libraries(std::span<const std::uint32_t> rates) const;
  Result<void> open_frames(const Snapshot& of);
  Result<void> open_styles(Catalog& catalog);
  Result<void> open_statistics(const Schema& stored);
  Result<void> build_schema(const Schema& stored);
  Result<std::uint32_t> frame_values() const;
  Result<void> add_drawn();
  Result<void> check_aligned(const Schema& stored) const;
  Result<RateRatio> ratio_of(std::uint32_t rate, Speed speed) const;
  /// Of one sequence whose ratio is known; `unperturbed` is that of speed 1.
  RowLengths lengths_by(std::uint64_t stored, const RateRatio& ratio,
                        std::uint32_t keep_offset) const;
  /// What of a row's length is drawn: which of the speeds, and the offset of keep_one_of.
  struct RowChoice {
    std::size_t speed = 0;
    std::uint32_t keep_offset = 0;
  };
  /// Of each speed.
  Result<std::vector<RateRatio>> ratios_of(std::uint32_t rate) const;
  Result<std::uint32_t> row_by(std::uint64_t stored, const RateRatio& ratio,
                               std::uint32_t keep_offset) const;
  /// Rows by the stored length, at a rate; empty where a table gains nothing.
  StepTable row_table(std::span<const std::uint32_t> stored, std::uint32_t rate,
                      std::span<const RowChoice> choices) const;
  template <class Choose>
  Result<void> some_lengths(const Snapshot& of, std::span<const RowChoice> choices,
                            const Choose& choose, const StepTable& table, std::size_t first,
                            std::span<std::uint32_t> out) const;
  template <class Choose>
  Result<SharedLengths> all_lengths(const Snapshot& of, std::span<const RowChoice> choices,
                                    const Choose& choose) const;

  /// The fields of rows, and where they come from.
  struct Fields {
    Schema schema;
    std::vector<std::size_t> stored;
    std::vector<bool> made;
    std::size_t primary = 0;  ///< The stored one.
  };
  StepData data_;
  std::vector<const RowStep*> sound_steps_, frame_steps_;  // those that are asked for
  std::uint64_t seed_ = 0;
  std::optional<StoredSound> sound_;
  std::optional<FrontEnd> front_end_;
  Fields fields_;
  std::string text_;
  std::string made_by_;
  struct Kept {
    Mutex mutex;
    /// The lengths of the last snapshot, while anything refers to them.
    std::uint64_t content GUARDED_BY(mutex) = 0;
    std::weak_ptr<const std::vector<std::uint32_t>> lengths GUARDED_BY(mutex);
    /// Sequences whose seconds were looked at: what follows was appended.
    std::uint64_t checked_sounds GUARDED_BY(mutex) = 0;
    /// Of the shards that have had a sequence, which is their first for good.
    std::vector<std::optional<std::uint64_t>> identities GUARDED_BY(mutex);
  };
  std::shared_ptr<Kept> kept_;
};

}  // namespace batchwright
