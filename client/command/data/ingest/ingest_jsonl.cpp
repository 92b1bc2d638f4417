#include <filesystem>
#include <utility>

#include "client/command/data/ingest/ingest_kind.h"

namespace batchwright {
namespace {

struct Options {
  std::filesystem::path manifest;
  std::string key;
  std::vector<std::string> labels;
  std::shared_ptr<SoundOptions> sound = std::make_shared<SoundOptions>();
};

Result<IngestInput> open(const Options& options, const IngestOptions& common) {
  auto manifest = read_manifest(options.manifest, options.key, options.labels);
  if (!manifest) return manifest.error();
  IngestInput input;
  input.named_for = std::filesystem::absolute(options.manifest).parent_path();
  input.files = std::move(manifest->files);
  if (options.sound->audio.channels == ChannelChoice::each) {
    input.files = by_channels(std::move(input.files), common.read_threads());
  }
  input.annotations = common.annotations;
  // --transcripts and --label-table go before what the manifest has.
  if (input.annotations.transcripts.empty()) input.annotations.texts = std::move(manifest->texts);
  for (auto& [field, names] : manifest->labels) {
    input.annotations.label_tables.push_back({field, options.manifest, std::move(names)});
  }
  auto source = sound_source_for(*options.sound, common, input.files);
  if (!source) return source.error();
  input.source = std::move(*source);
  return input;
}

IngestKind::Open add(CLI::App& command, const std::shared_ptr<IngestOptions>& common) {
  const auto options = std::make_shared<Options>();
  command.add_option("MANIFEST", options->manifest, "File with one JSON object a line")->required();
  add_ingest_options(command, *common);
  command
      .add_option("--key", options->key,
                  "Member with the key; by default id, or the number of the line from 0")
      ->type_name("MEMBER");
  add_several(command, "--label", options->labels, "MEMBER",
              "Store the texts of this member as scalar field MEMBER");
  add_sound_options(command, options->sound, false);
  return [options, common] { return open(*options, *common); };
}

}  // namespace

const IngestKind kIngestJsonl = {
    "jsonl", "Sound that a manifest of JSON lines lists, such as NeMo's",
    "A line has audio_filepath, relative to the manifest; offset and duration in seconds, for a\n"
    "part of the file; text. Members that no option names are passed over.\n"
    "Example: batchwright ingest jsonl train.jsonl --into /data/train --label speaker",
    add};

}  // namespace batchwright
