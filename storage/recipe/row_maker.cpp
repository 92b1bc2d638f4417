#include "storage/recipe/row_maker.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace batchwright {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

void RowMaker::step_done(RecipeStep step) {
  const double end = now();
  seconds_[static_cast<std::size_t>(step)] += end - begun_;
  begun_ = end;
}

std::array<double, kRecipeSteps> RowMaker::take_seconds() { return std::exchange(seconds_, {}); }

Result<void> RowMaker::make(const Recipe& recipe, const DrawKey& key,
                            std::span<const FieldValue> values, std::vector<MadeField>& row) {
  begun_ = now();
  row.resize(recipe.fields_.schema.fields.size());
  // All but the memory of the masks.
  RowDraws fresh;
  std::swap(fresh.masks, draws_.masks);
  fresh.masks.applies = false;
  draws_ = std::move(fresh);
  const std::uint64_t stored = values[recipe.fields_.primary].length;
  const std::uint32_t rate = recipe.sound_ ? values[recipe.sound_->rate_field()].length : 0;
  const auto lengths = recipe.measure(stored, rate, key);
  if (!lengths) return lengths.error();
  draws_.ratio = lengths->ratio;
  draws_.speed = lengths->speed;
  draws_.stored_seconds = rate == 0 ? 0.0 : static_cast<double>(stored) / rate;
  draws_.keep = lengths->keep;
  if (recipe.sound_) {
    if (auto made = make_sound(recipe, key, values, *lengths); !made) return made;
  }
  if (!recipe.makes_sound()) {
    if (auto made = make_frames(recipe, key, values, *lengths); !made) return made;
  }
  const std::size_t first_drawn = row.size() - recipe.settings_.drawn.size();
  for (std::size_t f = 0; f < row.size(); ++f) {
    if (!recipe.fields_.made[f]) continue;
    if (f >= first_drawn) {
      put_drawn(recipe.settings_.drawn[f - first_drawn], row[f]);
    } else if (recipe.fields_.schema.fields[f].kind == FieldKind::primary) {
      put_primary(recipe, row[f]);
    } else if (auto put =
                   put_aligned(recipe, f, values[recipe.fields_.stored[f]], *lengths, row[f]);
               !put) {
      return put;
    }
  }
  step_done(recipe.makes_sound() ? RecipeStep::features : RecipeStep::frames);
  return {};
}

Result<void> RowMaker::make_sound(const Recipe& recipe, const DrawKey& key,
                                  std::span<const FieldValue> values, const RowLengths& lengths) {
  // The record's own length, which agrees with the length index: so does what is allocated.
  stored_.resize(values[recipe.fields_.primary].length);
  auto read = recipe.sound_->read(values, 0, stored_, sound_scratch_.bytes);
  if (!read) return read;
  step_done(RecipeStep::decode);
  sound_.resize(lengths.samples);
  Resampler& resampler =
      recipe.settings_.resampler == ResamplerKind::soxr ? sound_scratch_.soxr : sound_scratch_.sinc;
  auto resampled = resampler.resample(lengths.ratio, stored_, sound_);
  if (!resampled) return resampled;
  step_done(RecipeStep::resample);
  if (!recipe.settings_.styles.empty()) {
    if (auto applied = apply_style(recipe, key); !applied) return applied;
  }
  if (recipe.settings_.dither > 0) {
    add_dither(key, recipe.settings_.dither, recipe.sample_scale_, sound_);
    step_done(RecipeStep::noise);
  }
  if (!recipe.front_end_) return {};
  frames_ = recipe.front_end_->compute(sound_);
  step_done(RecipeStep::features);
  return {};
}

Result<void> RowMaker::apply_style(const Recipe& recipe, const DrawKey& key) {
  draws_.style = Draws(key, DrawStage::style).pick(recipe.styles_.weights);
  const StyleSettings& style = recipe.settings_.styles[draws_.style];
  const Recipe::Sources& sources = recipe.styles_.sources[draws_.style];
  if (sources.rooms) {
    draws_.room = draw_room(key, style.reverberation, sources.rooms->size());
    if (draws_.room.applies) {
      const auto room = sources.rooms->room(draws_.room.room, sound_scratch_.sets);
      if (!room) return room.error();
      sound_scratch_.reverberation.apply(**room, style.reverberation.normalise, sound_);
    }
    step_done(RecipeStep::reverberation);
  }
  if (sources.noise) {
    if (auto added = add_noise_of(*sources.noise, style.noise_draw, key); !added) return added;
  }
  if (style.gain != GainOptions{}) {
    draws_.gain_db = draw_gain_db(key, style.gain);
    apply_gain(draws_.gain_db, sound_);
  }
  step_done(RecipeStep::noise);
  if (style.telephone.probability > 0) {
    draws_.telephone = draw_telephone(key, style.telephone);
    if (draws_.telephone.applies) {
      auto called = call_by_telephone(draws_.telephone.law, recipe.rate_, sound_,
                                      sound_scratch_.soxr, sound_scratch_.telephone);
      if (!called) return called;
    }
    step_done(RecipeStep::telephone);
  }
  return {};
}

Result<void> RowMaker::add_noise_of(const SoundSet& set, const NoiseOptions& options,
                                    const DrawKey& key) {
  Draws draws(key, DrawStage::noise);
  draws_.noise = draw_noise(draws, options, set.size());
  if (!draws_.noise.applies || sound_.empty()) return {};
  const std::uint64_t there = set.samples(draws_.noise.source);
  draws_.noise_offset = draw_offset(draws, there, sound_.size());
  // Of long noise the piece alone.
  const bool is_long = there >= sound_.size();
  auto read = set.read(draws_.noise.source, is_long ? draws_.noise_offset : 0,
                       is_long ? sound_.size() : there, sound_scratch_.noise, sound_scratch_.sets);
  if (!read) return read;
  draws_.mix = add_noise(sound_scratch_.noise, is_long ? 0 : draws_.noise_offset,
                         draws_.noise.snr_db, sound_);
  return {};
}

Result<void> RowMaker::make_frames(const Recipe& recipe, const DrawKey& key,
                                   std::span<const FieldValue> values, const RowLengths& lengths) {
  const RecipeSettings& settings = recipe.settings_;
  std::vector<float>& other = frame_scratch_.other;
  dimensions_ = recipe.dimensions_;
  if (!recipe.sound_) {
    const auto bytes = values[recipe.fields_.primary].bytes;
    frames_.resize(bytes.size() / sizeof(float));
    auto copied = copy_from_map(std::as_writable_bytes(std::span(frames_)), bytes);
    if (!copied) return copied;
  }
  if (auto done = normalise(recipe, values); !done) return done;
  if (settings.spec_augment) {
    draw_spec_augment(key, settings.masks, static_cast<std::uint32_t>(lengths.frames),
                      recipe.dimensions_, draws_.masks);
    apply_spec_augment(draws_.masks, settings.masks, recipe.dimensions_, frames_,
                       frame_scratch_.warp);
  }
  const std::size_t frames = lengths.frames;
  if (settings.deltas.order > 0) {
    other.resize(frames_.size() * (settings.deltas.order + 1));
    append_deltas(settings.deltas, dimensions_, frames_, other, frame_scratch_.deltas);
    dimensions_ *= settings.deltas.order + 1;
    frames_.swap(other);
  }
  if (settings.splice != Splicing{}) {
    const std::size_t beside = settings.splice.left + 1 + settings.splice.right;
    other.resize(frames_.size() * beside);
    splice_frames(settings.splice, dimensions_, frames_, other);
    dimensions_ *= beside;
    frames_.swap(other);
  }
  std::size_t count = frames;
  if (settings.keep.of > 1) {
    count = kept_length(frames, lengths.keep);
    other.resize(count * dimensions_);
    keep_frames(lengths.keep, dimensions_, frames_, other);
    frames_.swap(other);
  } else if (settings.stacking != Stacking{}) {
    count = stacked_length(frames, settings.stacking);
    other.resize(count * dimensions_ * settings.stacking.stack);
    stack_frames(settings.stacking, dimensions_, frames_, other);
    dimensions_ *= settings.stacking.stack;
    frames_.swap(other);
  }
  frames_.resize(lengths.row * dimensions_);
  extend_frames(count, dimensions_, frames_);
  return {};
}

Result<void> RowMaker::normalise(const Recipe& recipe, std::span<const FieldValue> values) {
  if (!recipe.settings_.cmvn || frames_.empty()) return {};
  const CmvnOptions& options = recipe.settings_.normalise.options;
  if (!recipe.cmvn_.statistics) {
    normalise_own(options, recipe.dimensions_, frames_, frame_scratch_.cmvn);
    return {};
  }
  const CmvnSums* sums = &recipe.cmvn_.statistics->all;
  if (options.kind == CmvnKind::speaker) {
    const auto speaker = speaker_name(recipe.cmvn_.speaker, values);
    if (!speaker) return speaker.error();
    const auto found = recipe.cmvn_.statistics->speakers.find(*speaker);
    if (found == recipe.cmvn_.statistics->speakers.end()) {
      return Error{ErrorCode::not_found,
                   fmt::format("speaker {} has no statistics in {}", *speaker,
                               recipe.settings_.normalise.statistics.string())};
    }
    sums = &found->second;
  }
  normalise_by(*sums, options.variance, frames_, frame_scratch_.cmvn);
  return {};
}

void RowMaker::put_primary(const Recipe& recipe, MadeField& out) {
  const bool is_sound = recipe.makes_sound();
  if (is_sound && recipe.settings_.sound == DType::int16) {
    std::vector<std::int16_t> whole(sound_.size());
    draws_.saturated = to_whole_samples(sound_, whole);
    out.length = static_cast<std::uint32_t>(whole.size());
    const auto bytes = std::as_bytes(std::span(whole));
    out.bytes.assign(bytes.begin(), bytes.end());
    return;
  }
  const std::span<const float> values = is_sound ? std::span<const float>(sound_) : frames_;
  out.length = static_cast<std::uint32_t>(is_sound ? sound_.size() : frames_.size() / dimensions_);
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
    case DrawnField::style: return put(static_cast<std::int32_t>(draws_.style));
    case DrawnField::snr_db:
      // Noise that is not there is infinitely far below the sound.
      return put(draws_.mix.added ? static_cast<float>(draws_.noise.snr_db)
                                  : std::numeric_limits<float>::infinity());
    case DrawnField::speed: return put(static_cast<float>(draws_.speed.thousandths) / 1000);
    case DrawnField::room:
      return put(draws_.room.applies ? static_cast<std::int32_t>(draws_.room.room) : -1);
  }
}

Result<void> RowMaker::put_aligned(const Recipe& recipe, std::size_t field, const FieldValue& value,
                                   const RowLengths& lengths, MadeField& out) {
  const RecipeSettings& settings = recipe.settings_;
  const FieldSpec& spec = recipe.fields_.schema.fields[field];
  AlignedSteps steps{lengths.unperturbed, lengths.frames, settings.stacking, settings.delay};
  if (settings.keep.of > 1) steps.reduced = lengths.keep;
  const auto rows = AlignedRows::create(steps, value.length, settings.label_slack);
  if (!rows) {
    return Error{rows.error().code,
                 fmt::format("field \"{}\": {}", spec.name, rows.error().message)};
  }
  std::vector<std::byte>& bytes = frame_scratch_.values;
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
