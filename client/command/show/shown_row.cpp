#include "client/command/show/shown_row.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

namespace batchwright {
namespace {

std::vector<float> floats_of(std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

std::string masks_text(const std::vector<Mask>& masks) {
  std::vector<std::string> ranges;
  for (const Mask& mask : masks) {
    if (mask.width > 0) ranges.push_back(fmt::format("{}+{}", mask.start, mask.width));
  }
  return fmt::format("{}", fmt::join(ranges, " "));
}

void add_masks(const SpecAugmentDraw& masks, Facts& facts) {
  if (!masks.applies) return;
  if (masks.warp) {
    facts.emplace_back("time warp",
                       fmt::format("{} to {}", masks.warp->centre, masks.warp->moved_to));
  }
  facts.emplace_back("time masks", masks_text(masks.time));
  facts.emplace_back("band masks", masks_text(masks.bands));
}

/// What the sound went through, in the order of the steps.
void add_style(const Recipe& recipe, const RowDraws& draws, Facts& facts) {
  const RecipeSettings& settings = recipe.settings();
  if (settings.styles.empty()) return;
  const StyleSettings& style = settings.styles[draws.style];
  facts.emplace_back("style", fmt::format("{} of {}", draws.style + 1, settings.styles.size()));
  if (draws.room.applies) facts.emplace_back("room", recipe.room_name(draws.style, draws.room));
  if (draws.noise.applies) {
    facts.emplace_back("noise", recipe.noise_name(draws.style, draws.noise));
    facts.emplace_back("SNR", draws.mix.added ? fmt::format("{:.1f} dB", draws.noise.snr_db)
                                              : "not added: sound or noise is silent");
  }
  if (style.gain != GainOptions{}) {
    facts.emplace_back("gain", fmt::format("{:.1f} dB", draws.gain_db));
  }
  if (draws.telephone.applies) {
    facts.emplace_back("telephone", draws.telephone.law == TelephoneLaw::mu ? "mu law" : "A law");
  }
}

/// What was drawn; `stored_rate` is 0 where the dataset has features.
Facts drawn_facts(const Recipe& recipe, const RowDraws& draws, std::uint32_t stored_rate) {
  Facts facts;
  if (!recipe.settings().speeds.empty() && stored_rate != 0) {
    const double ratio =
        static_cast<double>(draws.ratio.from) / static_cast<double>(draws.ratio.to);
    facts.emplace_back("speed", fmt::format("{:.3g}", ratio * recipe.rate() / stored_rate));
  }
  add_style(recipe, draws, facts);
  add_masks(draws.masks, facts);
  if (recipe.settings().keep.of > 1) {
    facts.emplace_back("frames kept",
                       fmt::format("one of {}, from {}", draws.keep.of, draws.keep.offset));
  }
  if (draws.saturated > 0) facts.emplace_back("saturated samples", std::to_string(draws.saturated));
  return facts;
}

std::string name_or_number(const FieldSpec& spec, std::int64_t number) {
  const bool named = number >= 0 && static_cast<std::size_t>(number) < spec.categories.size();
  return named ? spec.categories[static_cast<std::size_t>(number)] : std::to_string(number);
}

/// Adds one field of the row, but the primary one, to labels or values.
void add_field(const FieldSpec& spec, std::span<const std::byte> bytes, std::uint32_t length,
               ShownRow& shown) {
  const std::size_t width = dtype_bytes(spec.dtype);
  const bool one_a_frame = frame_bytes(spec) == width;
  const bool whole = one_a_frame && bytes.size() >= width && whole_number(spec.dtype, bytes);
  if (spec.kind == FieldKind::aligned && whole) {
    ShownLabels labels{spec.name, {}, spec.categories};
    for (std::size_t at = 0; at + width <= bytes.size(); at += width) {
      labels.values.push_back(*whole_number(spec.dtype, bytes.subspan(at)));
    }
    shown.labels.push_back(std::move(labels));
  } else if (spec.kind == FieldKind::scalar && whole) {
    shown.values.emplace_back(spec.name, name_or_number(spec, *whole_number(spec.dtype, bytes)));
  } else if (spec.kind == FieldKind::independent && spec.dtype == DType::uint8 && one_a_frame) {
    shown.values.emplace_back(
        spec.name, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  } else {
    shown.values.emplace_back(
        spec.name,
        fmt::format("{} [{}]", dtype_name(spec.dtype),
                    fmt::join(spec.shape.empty() ? std::vector{length} : spec.shape, ", ")));
  }
}

/// A record's content in memory of its own: the map may be cut while it is looked at.
struct Stored {
  std::string key;
  std::vector<FieldValue> values;
  std::vector<std::vector<std::byte>> bytes;
};

Result<Stored> read_stored(const Snapshot& snapshot, Ordinal ordinal) {
  const auto record = snapshot.record(ordinal);
  if (!record) return record.error();
  Stored stored;
  stored.key.resize(record->key().size());
  auto copied = copy_from_map(std::as_writable_bytes(std::span(stored.key)),
                              std::as_bytes(std::span(record->key())));
  if (!copied) return copied.error();
  stored.values.resize(snapshot.schema().fields.size());
  if (auto read = fields_from_map(*record, stored.values); !read) return read.error();
  for (FieldValue& value : stored.values) {
    stored.bytes.emplace_back(value.bytes.size());
    if (copied = copy_from_map(stored.bytes.back(), value.bytes); !copied) return copied.error();
    value.bytes = stored.bytes.back();  // a vector that moves keeps its memory
  }
  return stored;
}

/// Of sound without a front end, a spectrogram all the same.
Grid spectrogram(const Recipe& recipe, const ShownSound& sound) {
  if (const FrontEnd* front_end = recipe.front_end()) {
    return {front_end->dimensions(), front_end->compute(sound.samples)};
  }
  FrontEndOptions options = *front_end_like("kaldi", FeatureKind::logmel);
  options.empty_bands = true;  // of low rates
  const auto front_end = FrontEnd::create(options, sound.rate);
  if (!front_end) return {};
  return {front_end->dimensions(), front_end->compute(sound.samples)};
}

Result<void> make(const ConfiguredFeed& feed, Epoch epoch, const Stored& stored, ShownRow& shown) {
  const Recipe& recipe = *feed.recipe;
  const Schema& schema = recipe.schema();
  RowMaker maker;
  std::vector<MadeField> row;
  const auto keys = recipe.draw_keys(*feed.snapshot, epoch);
  if (!keys) return keys.error();
  // As it comes first, where an epoch has the sequence several times.
  auto made = maker.make(recipe, keys->of(shown.ordinal, 0), stored.values, row);
  if (!made) return made;
  const RowDraws& draws = maker.draws();
  shown.masks = draws.masks;
  const bool has_sound = recipe.rate() != 0;
  const std::vector<std::byte>& primary = row[schema.primary()].bytes;
  if (has_sound) {
    const auto sound = StoredSound::of(feed.snapshot->schema());
    const auto before = maker.stored_sound();
    const auto after = maker.sound();
    shown.stored = {stored.values[sound->rate_field()].length, {before.begin(), before.end()}};
    shown.heard = {recipe.rate(), {after.begin(), after.end()}};
    shown.features = spectrogram(recipe, shown.heard);
  } else {
    const std::size_t field = feed.snapshot->schema().primary();
    shown.features = {recipe.dimensions(), floats_of(stored.values[field].bytes)};
  }
  if (!recipe.makes_sound()) {
    shown.row = {frame_bytes(schema.fields[schema.primary()]) / sizeof(float), floats_of(primary)};
  }
  shown.drawn = drawn_facts(recipe, draws, shown.stored.rate);
  for (std::size_t f = 0; f < schema.fields.size(); ++f) {
    if (schema.fields[f].kind == FieldKind::primary) continue;
    const FieldValue& value = stored.values[recipe.stored_field(f)];
    if (recipe.makes(f)) {
      add_field(schema.fields[f], row[f].bytes, row[f].length, shown);
    } else {
      add_field(schema.fields[f], value.bytes, value.length, shown);
    }
  }
  return {};
}

}  // namespace

ShownRow look_at_row(const ConfiguredFeed& feed, Epoch epoch, Ordinal ordinal) {
  ShownRow shown;
  shown.ordinal = ordinal;
  const auto stored = read_stored(*feed.snapshot, ordinal);
  if (!stored) {
    shown.wrong = stored.error().message;
    return shown;
  }
  shown.key = stored->key;
  if (auto made = make(feed, epoch, *stored, shown); !made) shown.wrong = made.error().message;
  return shown;
}

}  // namespace batchwright
