#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "client/command/data/ingest/ingest_kind.h"

namespace batchwright {
namespace {

struct JsonlOptions {
  std::filesystem::path manifest;
  std::string key;
  std::vector<std::string> labels;
  std::shared_ptr<SoundOptions> sound = std::make_shared<SoundOptions>();
};

/// Whether a part of its path has one of these names.
bool is_excluded(const SourceFile& file, const std::vector<std::string>& names) {
  return std::any_of(file.path.begin(), file.path.end(), [&names](const auto& part) {
    return std::find(names.begin(), names.end(), part.string()) != names.end();
  });
}

Result<IngestInput> open_jsonl(const JsonlOptions& options, const IngestOptions& common) {
  auto manifest = read_manifest(options.manifest, options.key, options.labels);
  if (!manifest) return manifest.error();
  if (manifest->numbered && common.resume) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{}: --resume with keys that are numbers of lines, which another "
                             "manifest has too; allowed: lines with id, or --key MEMBER",
                             options.manifest.string())};
  }
  IngestInput input;
  input.named_for = std::filesystem::absolute(options.manifest).parent_path();
  input.files = std::move(manifest->files);
  const auto excluded = std::erase_if(input.files, [&common](const SourceFile& file) {
    return is_excluded(file, common.excluded);
  });
  if (excluded != 0) input.left_out = fmt::format("{} lines by --exclude", excluded);
  if (options.sound->audio.channels == ChannelChoice::each) {
    input.files = by_channels(std::move(input.files), common.read_threads());
  }
  input.annotations = common.annotations;
  // --transcripts and --label-table go before what the manifest has.
  auto& tables = input.annotations.label_tables;
  if (input.annotations.transcripts.empty()) input.annotations.texts = std::move(manifest->texts);
  for (auto& [field, names] : manifest->labels) {
    const bool has_table =
        std::any_of(tables.begin(), tables.end(),
                    [&name = field](const LabelTable& table) { return table.field == name; });
    if (!has_table) tables.push_back({field, options.manifest, std::move(names)});
  }
  auto source = sound_source_for(*options.sound, common, input.files);
  if (!source) return source.error();
  input.source = std::move(*source);
  return input;
}

IngestKind::Open add_jsonl(CLI::App& command, const std::shared_ptr<IngestOptions>& common) {
  const auto options = std::make_shared<JsonlOptions>();
  command.add_option("MANIFEST", options->manifest, "File with one JSON object a line")->required();
  add_ingest_options(command, *common);
  command
      .add_option("--key", options->key,
                  "Member with the key; by default id, or the number of the line from 0")
      ->type_name("MEMBER");
  add_several(command, "--label", options->labels, "MEMBER",
              "Store the texts of this member as scalar field MEMBER");
  add_sound_source_options(command, *options->sound);
  add_stored_sound_options(command, options->sound, false);
  return [options, common] { return open_jsonl(*options, *common); };
}

}  // namespace

const IngestKind kIngestJsonl = {
    "jsonl", "Sound that a manifest of JSON lines lists, such as NeMo's",
    "A line has audio_filepath, relative to the manifest; offset and duration in seconds, for a\n"
    "part of the file; text. Members that no option names are passed over.\n"
    "Example: batchwright ingest jsonl train.jsonl --into /data/train --label speaker",
    add_jsonl};

}  // namespace batchwright
