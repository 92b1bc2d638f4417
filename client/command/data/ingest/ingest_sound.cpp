#include <fmt/core.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "client/command/data/front_end_options.h"
#include "client/command/data/ingest/ingest_kind.h"

// What the kinds of ingest that read sound have in common.

namespace batchwright {
namespace {

namespace fs = std::filesystem;

/// What sound is stored as, and its refusals: an option that decides nothing is a slip.
void add_store(CLI::App& command, const std::shared_ptr<SoundOptions>& options,
               const std::shared_ptr<FrontEndCall>& front_end, bool may_be_encoded) {
  std::map<std::string, StoreAs> choices{{"features", StoreAs::features}, {"pcm", StoreAs::pcm}};
  if (may_be_encoded) choices.emplace("encoded", StoreAs::encoded);
  add_choice<StoreAs>(command, "--store", options->store, choices)
      ->description(may_be_encoded ? "Features; the samples; or the bytes of the files as they are"
                                   : "Features, or the samples");
  add_choice<DType>(command, "--samples", options->sound.samples,
                    {{"auto", DType::none}, {"int16", DType::int16}, {"float32", DType::float32}})
      ->description("For pcm; auto: float32 where a file has more than 16 bits, else int16");
  command
      .add_option("--max-seconds", options->sound.max_seconds,
                  may_be_encoded ? "For pcm and encoded: a longer sequence is an error of its file"
                                 : "For pcm: a longer sequence is an error of its file")
      ->type_name("S")
      ->check(CLI::Range(1e-3, 1e9))
      ->capture_default_str();
  command.parse_complete_callback([&command, options, front_end, may_be_encoded] {
    options->audio.front_end = front_end->options();
    const auto refuse = [](const std::string& name, const char* with) {
      throw CLI::ValidationError(name, fmt::format("goes with --store {} only", with));
    };
    const bool features = options->store == StoreAs::features;
    for (const CLI::Option* option : command.get_options()) {
      const bool of_features =
          option->get_group() == "Front end" || option->check_lname("sample-rate");
      if (of_features && option->count() > 0 && !features) refuse(option->get_name(), "features");
    }
    if (command.count("--max-seconds") > 0 && features) {
      refuse("--max-seconds", may_be_encoded ? "pcm or encoded" : "pcm");
    }
    if (command.count("--samples") > 0 && options->store != StoreAs::pcm) {
      refuse("--samples", "pcm");
    }
    const CLI::Option* segments = command.get_option_no_throw("--segments");
    if (segments != nullptr && segments->count() > 0 && options->store == StoreAs::encoded) {
      refuse("--segments", "features or pcm");
    }
    if (options->audio.channels == ChannelChoice::each && options->store == StoreAs::encoded) {
      refuse("--channel each", "features or pcm");
    }
  });
}

/// The rate that a dataset was made with goes before that of most files.
AudioSourceOptions with_rate_of(const fs::path& dataset, AudioSourceOptions options) {
  const auto schema = present_schema(dataset);
  // A rate on the command line goes first.
  if (!schema || options.sample_rate != 0) return options;
  for (const auto& [name, value] : schema->settings) {
    if (name != "sample_rate_hz") continue;
    std::string_view text(value);
    options.sample_rate = take_whole<std::uint32_t>(text).value_or(0);
    options.rate_origin = fmt::format("dataset {}", dataset.string());
  }
  return options;
}

/// A dataset of samples keeps their type; a file with more bits is an error of that file.
SoundSourceOptions with_samples_of(const fs::path& dataset, SoundSourceOptions options) {
  const auto schema = present_schema(dataset);
  if (schema && options.samples == DType::none) {
    options.present = schema->fields.front().dtype;
  }
  return options;
}

}  // namespace

void add_sound_source_options(CLI::App& command, SoundOptions& options) {
  command
      .add_option("--sample-rate", options.audio.sample_rate,
                  "Rate that all files have; 0: that of the dataset, or of most files")
      ->type_name("HZ")
      ->check(CLI::Range(0, 10'000'000))
      ->capture_default_str();
  add_choice<ChannelChoice>(command, "--channel", options.audio.channels,
                            {{"only", ChannelChoice::only},
                             {"first", ChannelChoice::first},
                             {"mix", ChannelChoice::mix},
                             {"each", ChannelChoice::each}})
      ->description(
          "Files of several channels: refuse the file, take the first, the mean, or each as a "
          "sequence, KEY#1, KEY#2, ...");
}

void add_stored_sound_options(CLI::App& command, const std::shared_ptr<SoundOptions>& options,
                              bool may_be_encoded) {
  const auto front_end = std::make_shared<FrontEndCall>();
  add_front_end(command, front_end);
  add_store(command, options, front_end, may_be_encoded);
}

Result<std::unique_ptr<IngestSource>> sound_source_for(const SoundOptions& options,
                                                       const IngestOptions& common,
                                                       std::span<const SourceFile> files) {
  if (options.store == StoreAs::features) {
    return audio_source(with_rate_of(common.dataset(), options.audio), files);
  }
  SoundSourceOptions sound = options.sound;
  sound.channels = options.audio.channels;
  sound.encoded = options.store == StoreAs::encoded;
  return sound_source(with_samples_of(common.dataset(), sound), files);
}

}  // namespace batchwright
