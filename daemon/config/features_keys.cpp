// The rows of [feed.features] and of [[feed.style]].

#include "daemon/config/features_keys.h"

#include <array>
#include <utility>

namespace batchwright {

namespace {

Fault read_conventions(const ConfigNode& node, std::string& out) {
  std::string name;
  if (const Fault fault = read_text(node, name)) return fault;
  if (!name.empty() && !front_end_like(name, FeatureKind::logmel)) return &node;
  out = std::move(name);
  return nullptr;
}

Fault read_kind(const ConfigNode& node, FeatureKind& out) {
  return read_word(
      node, out,
      {{"logmel", FeatureKind::logmel}, {"mfcc", FeatureKind::mfcc}, {"plp", FeatureKind::plp}});
}

/// Whether a value is sensible beside the others check_recipe() says.
Fault read_options(const ConfigNode& node, std::vector<std::pair<std::string, std::string>>& out) {
  if (node.table() == nullptr) return &node;
  std::vector<std::pair<std::string, std::string>> options;
  for (const ConfigNode& entry : node.table()->entries) {
    const auto text = plain_text(entry);
    FrontEndOptions scratch;
    if (!text || !set_option(scratch, entry.key, *text)) return &entry;
    options.emplace_back(entry.key, *text);
  }
  out = std::move(options);
  return nullptr;
}

Fault read_field_name(const ConfigNode& node, std::string& out) {
  std::string name;
  if (const Fault fault = read_text(node, name)) return fault;
  if (name.empty()) return &node;
  out = std::move(name);
  return nullptr;
}

Fault read_resampler(const ConfigNode& node, ResamplerKind& out) {
  return read_word(node, out, {{"soxr", ResamplerKind::soxr}, {"sinc", ResamplerKind::sinc}});
}

Fault read_speeds(const ConfigNode& node, std::vector<Speed>& out) {
  if (node.list() == nullptr) return &node;
  std::vector<Speed> speeds;
  for (const ConfigNode& entry : *node.list()) {
    double factor = 0;
    if (const Fault fault = read_real(entry, factor)) return fault;
    const auto speed = parse_speed(factor);
    if (!speed) return &entry;
    speeds.push_back(*speed);
  }
  out = std::move(speeds);
  return nullptr;
}

Fault read_dither(const ConfigNode& node, double& out) {
  double dither = 0;
  if (const Fault fault = read_real(node, dither)) return fault;
  if (!check_dither(dither)) return &node;
  out = dither;
  return nullptr;
}

Fault read_dc_offset(const ConfigNode& node, bool& out) {
  return read_word(node, out, {{"keep", false}, {"remove", true}});
}

Fault read_sound(const ConfigNode& node, DType& out) {
  return read_word(node, out, {{"float32", DType::float32}, {"int16", DType::int16}});
}

/// A share that is not set where it is 0.
Fault read_optional_share(const ConfigNode& node, std::optional<double>& out) {
  double share = 0;
  if (const Fault fault = read_probability(node, share)) return fault;
  out = share > 0 ? std::optional(share) : std::nullopt;
  return nullptr;
}

Fault read_cmvn(const ConfigNode& node, RecipeSettings& out) {
  const std::string* text = node.text();
  if (text != nullptr && text->empty()) {
    out.cmvn = false;
    return nullptr;
  }
  CmvnKind kind = CmvnKind::global;
  const Fault fault = read_word(node, kind,
                                {{"global", CmvnKind::global},
                                 {"speaker", CmvnKind::speaker},
                                 {"utterance", CmvnKind::utterance},
                                 {"sliding", CmvnKind::sliding}});
  if (fault != nullptr) return fault;
  out.cmvn = true;
  out.normalise.options.kind = kind;
  return nullptr;
}

Fault read_delta_edges(const ConfigNode& node, DeltaEdges& out) {
  return read_word(node, out, {{"htk", DeltaEdges::htk}, {"kaldi", DeltaEdges::kaldi}});
}

Fault read_splice(const ConfigNode& node, Splicing& out) {
  if (node.list() == nullptr || node.list()->size() != 2) return &node;
  Splicing splice;
  if (const Fault fault = read_whole((*node.list())[0], splice.left, 0, 1024)) return fault;
  if (const Fault fault = read_whole((*node.list())[1], splice.right, 0, 1024)) return fault;
  out = splice;
  return nullptr;
}

Fault read_align(const ConfigNode& node, StackAlign& out) {
  return read_word(
      node, out,
      {{"right", StackAlign::right}, {"centre", StackAlign::centre}, {"left", StackAlign::left}});
}

Fault read_end(const ConfigNode& node, StackEnd& out) {
  return read_word(
      node, out,
      {{"repeat", StackEnd::repeat}, {"zeros", StackEnd::zeros}, {"drop", StackEnd::drop}});
}

/// A number, or "random".
Fault read_offset(const ConfigNode& node, RecipeSettings& out) {
  if (node.text() != nullptr && *node.text() == "random") {
    out.keep_random = true;
    out.keep.offset = 0;
    return nullptr;
  }
  if (const Fault fault = read_whole(node, out.keep.offset, 0, 1023)) return fault;
  out.keep_random = false;
  return nullptr;
}

/// Whether anything of it is drawn check_recipe() says.
Fault read_drawn(const ConfigNode& node, std::vector<DrawnField>& out) {
  if (node.list() == nullptr) return &node;
  std::vector<DrawnField> fields;
  for (const ConfigNode& entry : *node.list()) {
    DrawnField field = DrawnField::style;
    const Fault fault = read_word(entry, field,
                                  {{"style", DrawnField::style},
                                   {"snr_db", DrawnField::snr_db},
                                   {"speed", DrawnField::speed},
                                   {"room", DrawnField::room}});
    if (fault != nullptr) return &entry;
    fields.push_back(field);
  }
  out = std::move(fields);
  return nullptr;
}

const std::array kFeaturesKeys{
    key<RecipeSettings, read_conventions>(
        {"like",
         R"(htk kaldi kaldi-lhotse kaldi-hires whisper nemo librosa torchaudio tacotron2 hifigan )"
         R"(variani; "" for none)",
         R"("")", Applies::anew, "Convention by which features are made of sound"},
        [](auto& r) -> auto& { return r.like; }),
    key<RecipeSettings, read_kind>(
        {"features", "logmel mfcc plp", R"("logmel")", Applies::anew,
         "Log-mel energies, or cepstra of them"},
        [](auto& r) -> auto& { return r.features; }),
    key<RecipeSettings, read_options>(
        {"options", "a table with options of a front end, such as { mel_bands = 40 }", "{}",
         Applies::anew, "What differs from the convention"},
        [](auto& r) -> auto& { return r.options; }),
    key<RecipeSettings, read_field_name>(
        {"field", "a name of 1 byte or more", R"("features")", Applies::anew,
         "What the features are called in a batch"},
        [](auto& r) -> auto& { return r.field; }),
    key<RecipeSettings, read_whole<0, kMostRate>>(
        {"sample_rate", "0 to 1048576", "0", Applies::anew,
         "Rate in Hz that sound is resampled to; 0 for the one that all of it has"},
        [](auto& r) -> auto& { return r.sample_rate; }),
    key<RecipeSettings, read_resampler>(
        {"resampler", "soxr sinc", R"("soxr")", Applies::anew,
         "How sound is resampled; sinc as torchaudio does it"},
        [](auto& r) -> auto& { return r.resampler; }),
    key<RecipeSettings, read_speeds>(
        {"speeds", "a list of factors from 0.5 to 2, such as [0.9, 1.0, 1.1]", "[]", Applies::anew,
         "Speeds of which one is drawn for each sequence in each epoch"},
        [](auto& r) -> auto& { return r.speeds; }),
    key<RecipeSettings, read_dc_offset>(
        {"dc_offset", "keep remove", R"("keep")", Applies::anew,
         "Whether the mean of a sequence's samples is subtracted from them"},
        [](auto& r) -> auto& { return r.dc_offset_removed; }),
    key<RecipeSettings, read_dither>(
        {"dither", "0 and up", "0.0", Applies::anew,
         "Deviation of the noise added to each sample, in the convention's scale"},
        [](auto& r) -> auto& { return r.dither; }),
    key<RecipeSettings, read_sound>(
        {"sound", "float32 int16", R"("float32")", Applies::anew, "Samples of rows that are sound"},
        [](auto& r) -> auto& { return r.sound; }),
    key<RecipeSettings, read_list>(
        {"aligned", "a list of fields; [] for none", "[]", Applies::anew,
         "Independent fields beside sound that have a value a frame, such as labels"},
        [](auto& r) -> auto& { return r.aligned; }),
    key<RecipeSettings, read_cmvn>(
        {"cmvn", R"(global speaker utterance sliding; "" for none)", R"("")", Applies::anew,
         "What mean and variance are normalised over"},
        [](auto& r) -> auto& { return r; },
        [](auto& r) { return std::pair(r.cmvn, r.normalise.options.kind); }),
    key<RecipeSettings, read_bool>(
        {"cmvn_variance", "true or false", "true", Applies::anew,
         "Whether the variance is normalised, too"},
        [](auto& r) -> auto& { return r.normalise.options.variance; }),
    key<RecipeSettings, read_whole<1, 65536>>(
        {"cmvn_window", "1 to 65536", "600", Applies::anew, "Frames of sliding"},
        [](auto& r) -> auto& { return r.normalise.options.window; }),
    key<RecipeSettings, read_path>(
        {"cmvn_statistics", R"(path of a file; "" for none)", R"("")", Applies::anew,
         "Sums for global and speaker, as batchwright cmvn writes them"},
        [](auto& r) -> auto& { return r.normalise.statistics; }),
    key<RecipeSettings, read_text>(
        {"cmvn_speaker", R"(a scalar field of whole numbers; "" for none)", R"("")", Applies::anew,
         "Field that tells speakers apart"},
        [](auto& r) -> auto& { return r.normalise.speaker; }),
    key<RecipeSettings, read_bool>(
        {"spec_augment", "true or false", "false", Applies::anew,
         "Whether frames and bands are masked (Park et al.)"},
        [](auto& r) -> auto& { return r.spec_augment; }),
    key<RecipeSettings, read_probability>(
        {"mask_probability", "0 to 1", "1.0", Applies::anew,
         "Share of the sequences that are masked"},
        [](auto& r) -> auto& { return r.masks.probability; }),
    key<RecipeSettings, read_whole<0, 1'048'576>>(
        {"time_warp", "0 to 1048576", "0", Applies::anew,
         "Frames by which time is warped at most; 0 for none"},
        [](auto& r) -> auto& { return r.masks.time_warp; }),
    key<RecipeSettings, read_whole<0, 1000>>(
        {"time_masks", "0 to 1000", "2", Applies::anew, "Masks of frames"},
        [](auto& r) -> auto& { return r.masks.time_masks; }),
    key<RecipeSettings, read_whole<0, 1'000'000>>(
        {"time_width", "0 to 1000000", "100", Applies::anew, "Most frames of a mask"},
        [](auto& r) -> auto& { return r.masks.time_width; }),
    key<RecipeSettings, read_probability>(
        {"time_share", "0 to 1", "1.0", Applies::anew,
         "Most of a sequence's frames that a mask takes"},
        [](auto& r) -> auto& { return r.masks.time_share; }),
    key<RecipeSettings, read_optional_share>(
        {"adaptive_masks", "0 to 1", "0.0", Applies::anew,
         "Masks a frame, in place of time_masks, time_width and time_share; 0 for those"},
        [](auto& r) -> auto& { return r.masks.adaptive_masks; }),
    key<RecipeSettings, read_optional_share>(
        {"adaptive_width", "0 to 1", "0.0", Applies::anew,
         "Their most frames, as a share of the sequence's"},
        [](auto& r) -> auto& { return r.masks.adaptive_width; }),
    key<RecipeSettings, read_whole<0, 1000>>(
        {"freq_masks", "0 to 1000", "2", Applies::anew, "Masks of bands"},
        [](auto& r) -> auto& { return r.masks.freq_masks; }),
    key<RecipeSettings, read_whole<0, 65536>>(
        {"freq_width", "0 to 65536", "27", Applies::anew, "Most bands of a mask"},
        [](auto& r) -> auto& { return r.masks.freq_width; }),
    key<RecipeSettings, read_bool>(
        {"mask_mean", "true or false", "false", Applies::anew,
         "Whether masked values become the mean of the sequence, or mask_value"},
        [](auto& r) -> auto& { return r.masks.mean; }),
    key<RecipeSettings, read_real>(
        {"mask_value", "a finite number, such as -1.5", "0.0", Applies::anew,
         "What masked values become"},
        [](auto& r) -> auto& { return r.masks.mask_value; }),
    key<RecipeSettings, read_whole<0, 3>>(
        {"deltas", "0 to 3", "0", Applies::anew, "Orders of slopes behind the values of a frame"},
        [](auto& r) -> auto& { return r.deltas.order; }),
    key<RecipeSettings, read_whole<1, 64>>(
        {"delta_window", "1 to 64", "2", Applies::anew, "Frames on each side of a slope"},
        [](auto& r) -> auto& { return r.deltas.window; }),
    key<RecipeSettings, read_delta_edges>(
        {"delta_edges", "htk kaldi", R"("htk")", Applies::anew,
         "Whose slopes at the ends of a sequence"},
        [](auto& r) -> auto& { return r.deltas.edges; }),
    key<RecipeSettings, read_splice>(
        {"splice", "two numbers, 0 to 1024", "[0, 0]", Applies::anew,
         "Frames beside each frame, left and right"},
        [](auto& r) -> auto& { return r.splice; }),
    key<RecipeSettings, read_whole<1, 1024>>(
        {"stack", "1 to 1024", "1", Applies::anew, "Frames that become one"},
        [](auto& r) -> auto& { return r.stacking.stack; }),
    key<RecipeSettings, read_whole<1, 1024>>(
        {"stride", "1 to 1024", "1", Applies::anew, "Frames from one stack to the next"},
        [](auto& r) -> auto& { return r.stacking.stride; }),
    key<RecipeSettings, read_align>(
        {"stack_align", "right centre left", R"("right")", Applies::anew,
         "Where in its stack a frame lies: the others follow it, surround it, or come before"},
        [](auto& r) -> auto& { return r.stacking.align; }),
    key<RecipeSettings, read_end>(
        {"stack_end", "repeat zeros drop", R"("repeat")", Applies::anew,
         "What follows the last frame"},
        [](auto& r) -> auto& { return r.stacking.end; }),
    key<RecipeSettings, read_whole<0, 1023>>(
        {"target_offset", "0 to stride - 1", "0", Applies::anew,
         "Frame of a stride whose target a stack has"},
        [](auto& r) -> auto& { return r.stacking.target_offset; }),
    key<RecipeSettings, read_whole<1, 1024>>(
        {"keep_one_of", "1 to 1024", "1", Applies::anew, "Frames of which one is kept"},
        [](auto& r) -> auto& { return r.keep.of; }),
    key<RecipeSettings, read_offset>(
        {"keep_offset", R"(0 to keep_one_of - 1, or "random")", "0", Applies::anew, "Which one"},
        [](auto& r) -> auto& { return r; },
        [](auto& r) { return std::pair(r.keep_random, r.keep.offset); }),
    key<RecipeSettings, read_whole<0, 65536>>(
        {"label_delay", "0 to 65536", "0", Applies::anew, "Frames by which targets come later"},
        [](auto& r) -> auto& { return r.delay.frames; }),
    key<RecipeSettings, read_bool>(
        {"label_extend", "true or false", "true", Applies::anew,
         "Whether the last frame is repeated, so that no target is lost"},
        [](auto& r) -> auto& { return r.delay.extend; }),
    key<RecipeSettings, read_real>(
        {"ignore_value", "a number that the field can hold, such as -1", "-100.0", Applies::anew,
         "Targets of frames that have none"},
        [](auto& r) -> auto& { return r.ignore_value; }),
    key<RecipeSettings, read_whole<0, 1'000'000>>(
        {"label_slack", "0 to 1000000", "2", Applies::anew,
         "Values that an aligned field may have more or fewer than frames"},
        [](auto& r) -> auto& { return r.label_slack; }),
    key<RecipeSettings, read_drawn>(
        {"drawn", R"(a list of style snr_db speed room; [] for none)", "[]", Applies::anew,
         "Scalar fields that say what was drawn for a row"},
        [](auto& r) -> auto& { return r.drawn; }),
    key<RecipeSettings, read_whole<1, 2>>(
        {"draws", "1 or 2", "2", Applies::anew,
         "Version of the random numbers by which rows are made"},
        [](auto& r) -> auto& { return r.draws; }),
    key<RecipeSettings, read_whole<1, 1'000'000>>(
        {"max_seconds", "1 to 1000000", "3600", Applies::anew,
         "Seconds of the longest sound that rows are made of"},
        [](auto& r) -> auto& { return r.max_seconds; }),
};

}  // namespace

std::span<const Key<RecipeSettings>> features_keys() { return kFeaturesKeys; }

}  // namespace batchwright
