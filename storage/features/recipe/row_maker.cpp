#include "storage/features/recipe/row_maker.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace batchwright {
std::array<double, kRecipeSteps> RowMaker::take_seconds() {
  return std::exchange(row_.seconds, {});
}

Result<void> RowMaker::make(const Recipe& recipe, const DrawKey& key,
                            std::span<const FieldValue> values, std::vector<MadeField>& row) {
  row_.start_time();
  row.resize(recipe.fields_.schema.fields.size());
  // All but the memory of the masks.
  RowDraws fresh;
  std::swap(fresh.masks, row_.draws.masks);
  fresh.masks.applies = false;
  row_.draws = std::move(fresh);
  const std::uint64_t stored = values[recipe.fields_.primary].length;
  const std::uint32_t rate = recipe.sound_ ? values[recipe.sound_->rate_field()].length : 0;
  const auto lengths = recipe.measure(stored, rate, key);
  if (!lengths) return lengths.error();
  row_.draws.ratio = lengths->ratio;
  row_.draws.speed = lengths->speed;
  row_.draws.stored_seconds = rate == 0 ? 0.0 : static_cast<double>(stored) / rate;
  row_.draws.keep = lengths->keep;
  const StepInput input{recipe.data_, key, values, *lengths};
  if (recipe.sound_) {
    if (auto made = make_sound(recipe, input); !made) return made;
  }
  if (!recipe.makes_sound()) {
    if (auto made = make_frames(recipe, input); !made) return made;
  }
  const std::size_t first_drawn = row.size() - recipe.data_.settings.drawn.size();
  for (std::size_t f = 0; f < row.size(); ++f) {
    if (!recipe.fields_.made[f]) continue;
    if (f >= first_drawn) {
      put_drawn(recipe.data_.settings.drawn[f - first_drawn], row[f]);
    } else if (recipe.fields_.schema.fields[f].kind == FieldKind::primary) {
      put_primary(recipe, row[f]);
    } else if (auto put =
                   put_aligned(recipe, f, values[recipe.fields_.stored[f]], *lengths, row[f]);
               !put) {
      return put;
    }
  }
  row_.note_time(recipe.makes_sound() ? RecipeStep::features : RecipeStep::frames);
  return {};
}

Result<void> RowMaker::make_sound(const Recipe& recipe, const StepInput& input) {
  RowInWork::SoundScratch& scratch = row_.sound_scratch;
  // The record's own length, which agrees with the length index: so does what is allocated.
  stored_.resize(input.values[recipe.fields_.primary].length);
  auto read = recipe.sound_->read(input.values, 0, stored_, scratch.bytes);
  if (!read) return read;
  row_.note_time(RecipeStep::decode);
  row_.sound.resize(input.lengths.samples);
  Resampler& resampler =
      recipe.data_.settings.resampler == ResamplerKind::soxr ? scratch.soxr : scratch.sinc;
  auto resampled = resampler.resample(input.lengths.ratio, stored_, row_.sound);
  if (!resampled) return resampled;
  row_.note_time(RecipeStep::resample);
  if (auto applied = apply(recipe.sound_steps_, input); !applied) return applied;
  if (!recipe.front_end_) return {};
  row_.frames = recipe.front_end_->compute(row_.sound);
  row_.note_time(RecipeStep::features);
  return {};
}

Result<void> RowMaker::make_frames(const Recipe& recipe, const StepInput& input) {
  row_.dimensions = recipe.data_.dimensions;
  if (!recipe.sound_) {
    const auto bytes = input.values[recipe.fields_.primary].bytes;
    row_.frames.resize(bytes.size() / sizeof(float));
    auto copied = copy_from_map(std::as_writable_bytes(std::span(row_.frames)), bytes);
    if (!copied) return copied;
  }
  return apply(recipe.frame_steps_, input);
}

Result<void> RowMaker::apply(std::span<const RowStep* const> steps, const StepInput& input) {
  for (const RowStep* step : steps) {
    if (auto applied = step->apply(input, row_); !applied) return applied;
    row_.note_time(step->timed);
  }
  return {};
}

void RowMaker::put_primary(const Recipe& recipe, MadeField& out) {
  const bool is_sound = recipe.makes_sound();
  if (is_sound && recipe.data_.settings.sound == DType::int16) {
    std::vector<std::int16_t> whole(row_.sound.size());
    row_.draws.saturated = to_whole_samples(row_.sound, whole);
    out.length = static_cast<std::uint32_t>(whole.size());
    const auto bytes = std::as_bytes(std::span(whole));
    out.bytes.assign(bytes.begin(), bytes.end());
    return;
  }
  const std::span<const float> values = is_sound ? std::span<const float>(row_.sound) : row_.frames;
  out.length = static_cast<std::uint32_t>(is_sound ? row_.sound.size()
                                                   : row_.frames.size() / row_.dimensions);
  const auto bytes = std::as_bytes(values);
  out.bytes.assign(bytes.begin(), bytes.end());
}

void RowMaker::put_drawn(DrawnField drawn, MadeField& out) const {
  const auto put = [&out](auto value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    out.bytes.assign(bytes.begin(), bytes.end());
  };
  out.length = 1;
  switch (drawn) {
    case DrawnField::style: return put(static_cast<std::int32_t>(row_.draws.style));
    case DrawnField::snr_db:
      // Noise that is not there is infinitely far below the sound.
      return put(row_.draws.mix.added ? static_cast<float>(row_.draws.noise.snr_db)
                                      : std::numeric_limits<float>::infinity());
    case DrawnField::speed: return put(static_cast<float>(row_.draws.speed.thousandths) / 1000);
    case DrawnField::room:
      return put(row_.draws.room.applies ? static_cast<std::int32_t>(row_.draws.room.room) : -1);
  }
}

Result<void> RowMaker::put_aligned(const Recipe& recipe, std::size_t field, const FieldValue& value,
                                   const RowLengths& lengths, MadeField& out) {
  const RecipeSettings& settings = recipe.data_.settings;
  const FieldSpec& spec = recipe.fields_.schema.fields[field];
  AlignedSteps steps{lengths.unperturbed, lengths.frames, settings.stacking, settings.delay};
  if (settings.keep.of > 1) steps.reduced = lengths.keep;
  const auto rows = AlignedRows::create(steps, value.length, settings.label_slack);
  if (!rows) {
    return Error{rows.error().code,
                 fmt::format("field \"{}\": {}", spec.name, rows.error().message)};
  }
  std::vector<std::byte>& bytes = row_.frame_scratch.values;
  bytes.resize(value.bytes.size());
  if (auto copied = copy_from_map(bytes, value.bytes); !copied) return copied;
  const std::size_t width = frame_bytes(spec);
  std::vector<std::byte> ignored;
  const NumberBytes element = number_bytes(spec.dtype, settings.ignore_value);
  for (std::size_t i = 0; i < width; ++i) ignored.push_back(element.element[i % element.bytes]);
  out.length = static_cast<std::uint32_t>(rows->size());
  out.bytes.resize(rows->size() * width);
  rows->copy(bytes, width, ignored, out.bytes);
  return {};
}

}  // namespace batchwright
