#include "storage/features/recipe/opened_recipe.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/formats.h"

namespace batchwright {
namespace {

Error cannot_open(const std::string& what) { return {ErrorCode::bad_configuration, what}; }

/// The first line of one text that the other does not have.
std::string first_difference(const std::string& wanted, const std::string& found) {
  auto left = split_lines(wanted);
  auto right = split_lines(found);
  const std::size_t lines = std::max(left.size(), right.size());
  left.resize(lines, "nothing");
  right.resize(lines, "nothing");
  const auto [here, there] = std::mismatch(left.begin(), left.end(), right.begin());
  return here == left.end() ? "" : fmt::format("{} here, {} there", *here, *there);
}

}  // namespace

Recipe::Recipe(RecipeSettings settings) {
  data_.settings = std::move(settings);
  for (const RowStep* step : recipe_steps()) {
    if (!step->is_asked(data_.settings)) continue;
    (step->on == RowStep::On::sound ? sound_steps_ : frame_steps_).push_back(step);
  }
}

Result<std::shared_ptr<const Recipe>> Recipe::open(const RecipeSettings& settings,
                                                   const Snapshot& of, std::uint64_t seed,
                                                   Catalog& catalog) {
  if (auto sound = check_recipe(settings); !sound) return sound.error();
  const std::shared_ptr<Recipe> recipe(new Recipe(settings));
  recipe->seed_ = seed;
  recipe->kept_ = std::make_shared<Kept>();
  recipe->text_ = recipe_text(settings);
  recipe->fields_.primary = of.schema().primary();
  recipe->sound_ = StoredSound::of(of.schema());
  auto opened = recipe->sound_ ? recipe->open_sound(of) : recipe->open_frames(of);
  if (!opened) return opened.error();
  if (opened = recipe->open_styles(catalog); !opened) return opened.error();
  if (opened = recipe->open_statistics(of.schema()); !opened) return opened.error();
  if (opened = recipe->build_schema(of.schema()); !opened) return opened.error();
  if (auto keys = recipe->draw_keys(of, Epoch{0}); !keys) return keys.error();
  // All rates are seen before the first batch.
  if (auto lengths = recipe->lengths(of, Epoch{0}); !lengths) return lengths.error();
  return std::shared_ptr<const Recipe>(recipe);
}

Result<void> Recipe::open_sound(const Snapshot& of) {
  const auto rates = of.field_lengths(sound_->rate_field());
  if (data_.settings.sample_rate != 0) {
    data_.rate = data_.settings.sample_rate;
  } else {
    const auto rate = common_rate(rates);
    if (!rate) return rate.error();
    data_.rate = *rate;
  }
  if (auto there = check_libraries(rates); !there) return there;
  if (auto fits = check_seconds(of); !fits) return fits;
  if (data_.settings.like.empty()) {
    if (!frame_steps_.empty() || !data_.settings.aligned.empty()) {
      return cannot_open(
          "steps for frames of features, and none are made: the dataset has sound, and like is "
          "not set; allowed: like = a convention, or no such step");
    }
    made_by_ = fmt::format("sample_rate_hz = {}\n", data_.rate);
    return {};
  }
  // check_recipe() has set them once.
  FrontEndOptions options = *front_end_like(data_.settings.like, data_.settings.features);
  for (const auto& [name, text] : data_.settings.options) {
    static_cast<void>(set_option(options, name, text));
  }
  auto front_end = FrontEnd::create(options, data_.rate);
  if (!front_end) return cannot_open(front_end.error().message);
  front_end_ = *std::move(front_end);
  data_.sample_scale = options.sample_scale;
  data_.dimensions = front_end_->dimensions();
  for (const auto& [name, text] : front_end_->settings()) {
    made_by_ += fmt::format("{} = {}\n", name, text);
  }
  if (data_.settings.dc_offset_removed) made_by_ += "dc_offset = remove\n";
  return {};
}

/// Before any batch: a minimal build has neither decoders nor libsoxr.
Result<void> Recipe::check_libraries(std::span<const std::uint32_t> rates) const {
  if (kHasSoundLibraries) return {};
  if (auto there = sound_->check_decodable(); !there) {
    return cannot_open("the dataset has " + there.error().message);
  }
  const bool resamples =
      std::any_of(rates.begin(), rates.end(), [this](auto rate) { return rate != data_.rate; }) ||
      std::any_of(data_.settings.speeds.begin(), data_.settings.speeds.end(),
                  [](Speed speed) { return speed != Speed{}; });
  if (resamples && data_.settings.resampler == ResamplerKind::soxr) {
    return cannot_open(fmt::format(
        "resampler: found \"soxr\", which a minimal build does not have; allowed: \"sinc\", or "
        "sound of {} Hz and no speeds",
        data_.rate));
  }
  const bool calls = std::any_of(
      data_.settings.styles.begin(), data_.settings.styles.end(),
      [](const auto& style) { return style.weight > 0 && style.telephone.probability > 0; });
  if (calls && data_.rate != kTelephoneRate) {
    return cannot_open(fmt::format(
        "telephone_probability: sound of {} Hz comes to a telephone's {} by libsoxr, which a "
        "minimal build does not have; allowed: 0, or sample_rate = {}",
        data_.rate, kTelephoneRate, kTelephoneRate));
  }
  return {};
}

Result<void> Recipe::open_frames(const Snapshot& of) {
  const FieldSpec& primary = of.schema().fields[of.schema().primary()];
  const RecipeSettings& settings = data_.settings;
  if (!sound_steps_.empty() || settings.sample_rate != 0 || !settings.speeds.empty() ||
      !settings.like.empty() || settings.sound != DType::float32) {
    return cannot_open(
        "steps need sound, and the dataset has none; allowed: a dataset that `batchwright ingest "
        "audio --store pcm` or `--store encoded` made, one whose field `rate` tells the rate of "
        "each sound, or steps after the features");
  }
  if (!data_.settings.aligned.empty()) {
    return cannot_open(
        "aligned: the dataset has features, whose aligned fields are known; allowed: "
        "with sound");
  }
  if (primary.dtype != DType::float32 || primary.shape.size() > 1) {
    return cannot_open(
        fmt::format("field \"{}\" is {} of {} dimensions a frame; steps of frames "
                    "take float32 of one dimension",
                    primary.name, dtype_name(primary.dtype), primary.shape.size()));
  }
  data_.dimensions = primary.shape.empty() ? 1 : primary.shape.front();
  for (const auto& [name, text] : of.schema().settings) {
    made_by_ += fmt::format("{} = {}\n", name, text);
  }
  return {};
}

Result<void> Recipe::open_styles(Catalog& catalog) {
  for (const StyleSettings& style : data_.settings.styles) {
    StepData::Sources sources;
    const auto open = [&](const std::vector<std::filesystem::path>& paths, const char* what,
                          std::shared_ptr<const SoundSet>& set) -> Result<void> {
      if (paths.empty()) return {};
      const bool rooms = &set == &sources.rooms;
      // Styles that share a set share what is kept of it.
      for (std::size_t k = 0; k < data_.sources.size() && !set; ++k) {
        const StyleSettings& other = data_.settings.styles[k];
        if (!rooms && other.noise == paths) set = data_.sources[k].noise;
        if (rooms && other.rooms == paths) set = data_.sources[k].rooms;
      }
      if (!set) {
        auto opened =
            SoundSet::open(paths, {data_.rate, data_.settings.max_seconds, rooms}, catalog);
        if (!opened) {
          return Error{opened.error().code, fmt::format("{}: {}", what, opened.error().message)};
        }
        set = *std::move(opened);
      }
      return {};
    };
    if (auto opened = open(style.noise, "noise", sources.noise); !opened) return opened;
    if (auto opened = open(style.rooms, "rooms", sources.rooms); !opened) return opened;
    const auto tell = [&](const std::shared_ptr<const SoundSet>& set, const char* what) {
      if (!set) return;
      text_ += fmt::format("features.style{}.{}_content = {:016x}\n", data_.sources.size(), what,
                           set->content());
    };
    tell(sources.noise, "noise");
    tell(sources.rooms, "rooms");
    data_.sources.push_back(std::move(sources));
    data_.weights.push_back(style.weight);
  }
  return {};
}

Result<void> Recipe::open_statistics(const Schema& stored) {
  if (!data_.settings.cmvn || data_.settings.normalise.statistics.empty()) return {};
  const CmvnSettings& cmvn = data_.settings.normalise;
  auto statistics = read_statistics(cmvn.statistics);
  if (!statistics) {
    return cannot_open(fmt::format("cmvn_statistics: {}", statistics.error().message));
  }
  const auto bad = [&](const std::string& what) {
    return cannot_open(fmt::format("cmvn_statistics: {}: {}", cmvn.statistics.string(), what));
  };
  const std::string other = first_difference(made_by_, statistics->made_by);
  if (!other.empty()) return bad(fmt::format("made with other settings: {}", other));
  if (auto fits = check(statistics->all, data_.dimensions); !fits) return bad(fits.error().message);
  for (const auto& [speaker, sums] : statistics->speakers) {
    if (auto fits = check(sums, data_.dimensions); !fits) {
      return bad(fmt::format("speaker {}: {}", speaker, fits.error().message));
    }
  }
  if (cmvn.options.kind == CmvnKind::speaker) {
    const auto field = find_speaker(stored, cmvn.speaker);
    if (!field) return field.error();
    data_.speaker = *field;
    if (statistics->speakers.empty())
      return bad("no speakers; make them with `batchwright cmvn --by`");
  }
  text_ += fmt::format("features.cmvn_content = {:016x}\n", content_of(*statistics));
  data_.statistics = *std::move(statistics);
  return {};
}

Result<void> Recipe::check_aligned(const Schema& stored) const {
  for (const std::string& name : data_.settings.aligned) {
    const auto field = stored.find(name);
    if (!field) return cannot_open(fmt::format("aligned: {}", field.error().message));
    if (stored.fields[*field].kind != FieldKind::independent || sound_->owns(*field)) {
      return cannot_open(
          fmt::format("aligned: field \"{}\"; allowed: an independent field with a "
                      "value a frame",
                      name));
    }
  }
  return {};
}

Result<std::uint32_t> Recipe::frame_values() const {
  // Each factor is far below 2^21, so that no product passes 64 bits before it is compared.
  std::uint64_t values = data_.dimensions;
  for (const RowStep* step : frame_steps_) {
    if (step->values != nullptr) values *= step->values(data_.settings);
    if (values <= kMostFrameValues) continue;
    return cannot_open(fmt::format(
        "a frame of {} values with {} orders of deltas, splice = [{}, {}] and stack = {} has more "
        "than {}; allowed: up to that",
        data_.dimensions, data_.settings.deltas.order, data_.settings.splice.left,
        data_.settings.splice.right, data_.settings.stacking.stack, kMostFrameValues));
  }
  return static_cast<std::uint32_t>(values);
}

/// Behind all others, so that these keep their places.
Result<void> Recipe::add_drawn() {
  for (const DrawnField drawn : data_.settings.drawn) {
    const std::string name(drawn_name(drawn));
    if (fields_.schema.find(name)) {
      return cannot_open(fmt::format(
          "drawn: \"{}\", and the dataset has a field of that name; allowed: without it", name));
    }
    const bool whole = drawn == DrawnField::style || drawn == DrawnField::room;
    fields_.schema.fields.push_back(
        {name, FieldKind::scalar, whole ? DType::int32 : DType::float32, {}, {}});
    fields_.stored.push_back(fields_.primary);
    fields_.made.push_back(true);
  }
  return {};
}

Result<void> Recipe::build_schema(const Schema& stored) {
  if (auto sound = check_aligned(stored); !sound) return sound;
  fields_.schema.settings = stored.settings;
  for (std::size_t f = 0; f < stored.fields.size(); ++f) {
    FieldSpec field = stored.fields[f];
    bool made = field.kind == FieldKind::aligned;
    if (f == stored.primary()) {
      made = true;
      field.dtype = DType::float32;
      if (sound_) field.name = front_end_ ? data_.settings.field : "audio";
      if (makes_sound()) {
        field.dtype = data_.settings.sound;
        field.shape.clear();
      } else {
        const auto values = frame_values();
        if (!values) return values.error();
        field.shape = {*values};
      }
    } else if (sound_ && sound_->owns(f)) {
      continue;
    } else if (std::find(data_.settings.aligned.begin(), data_.settings.aligned.end(),
                         field.name) != data_.settings.aligned.end()) {
      field.kind = FieldKind::aligned;
      made = true;
    }
    if (made && field.kind == FieldKind::aligned && data_.settings.delay.frames > 0) {
      if (const std::string refused = refused_number(field.dtype, data_.settings.ignore_value);
          !refused.empty()) {
        return cannot_open(fmt::format("ignore_value of field \"{}\": {}", field.name, refused));
      }
    }
    fields_.schema.fields.push_back(std::move(field));
    fields_.stored.push_back(f);
    fields_.made.push_back(made);
  }
  if (auto added = add_drawn(); !added) return added;
  if (auto sound = validate(fields_.schema); !sound) return cannot_open(sound.error().message);
  return {};
}

std::uint64_t Recipe::frame_bytes() const {
  std::uint64_t bytes = 0;
  for (std::size_t f = 0; f < fields_.made.size(); ++f) {
    if (makes_frames(f)) bytes += batchwright::frame_bytes(fields_.schema.fields[f]);
  }
  return bytes;
}

std::string Recipe::first_draws_text() const {
  RecipeSettings first = data_.settings;
  first.draws = 1;
  // What follows the settings, the contents of what is read beside the dataset, has its own lines.
  return recipe_text(first) + text_.substr(recipe_text(data_.settings).size());
}

std::string Recipe::noise_name(std::size_t style, const NoiseDraw& draw) const {
  return data_.sources[style].noise->name(draw.source);
}

std::string Recipe::room_name(std::size_t style, const RoomDraw& draw) const {
  return data_.sources[style].rooms->name(draw.room);
}

}  // namespace batchwright
