#include <fmt/core.h>

#include <filesystem>
#include <utility>

#include "client/command/data/ingest/ingest_kind.h"

namespace batchwright {
namespace {

namespace fs = std::filesystem;

struct AudioOptions {
  FolderOptions folder;
  std::shared_ptr<SoundOptions> sound = std::make_shared<SoundOptions>();
  fs::path segments;  ///< A table of parts of files; empty: whole files.
};

/// Puts the segments of a table in the place of the files, where one is given.
Result<void> cut_into_segments(const fs::path& table, ChannelChoice channels, IngestInput& input) {
  if (table.empty()) return {};
  const bool by_channel = channels == ChannelChoice::each;
  auto segments = read_segments(table, input.files, by_channel);
  if (!segments) return segments.error();
  input.files = std::move(segments->files);
  if (!segments->unmatched.empty()) input.unmatched.push_back(std::move(segments->unmatched));
  if (segments->files_without > 0) {
    input.unmatched.push_back(
        fmt::format("{} files have no segment in {}", segments->files_without, table.string()));
  }
  return {};
}

Result<IngestInput> open_audio(const AudioOptions& options, const IngestOptions& common) {
  auto input = input_of_folder(options.folder, common, audio_extensions());
  if (!input) return input;
  const ChannelChoice channels = options.sound->audio.channels;
  if (auto cut = cut_into_segments(options.segments, channels, *input); !cut) return cut.error();
  if (channels == ChannelChoice::each) {
    input->files = by_channels(std::move(input->files), common.read_threads());
  }
  auto source = sound_source_for(*options.sound, common, input->files);
  if (!source) return source.error();
  input->source = std::move(*source);
  return input;
}

IngestKind::Open add_audio(CLI::App& command, const std::shared_ptr<IngestOptions>& common) {
  const auto options = std::make_shared<AudioOptions>();
  add_folder(command, options->folder, *common);
  add_ingest_options(command, *common);
  add_sound_source_options(command, *options->sound);
  command
      .add_option("--segments", options->segments,
                  "Cut files into parts: lines key, recording, begin and end in seconds")
      ->type_name("FILE")
      ->excludes(command.get_option("--label-from-folder"));
  add_stored_sound_options(command, options->sound, true);
  return [options, common] { return open_audio(*options, *common); };
}

}  // namespace

const IngestKind kIngestAudio = {
    "audio", "wav, flac, mp3, ogg and opus files to features, or as sound",
    "For features, files of another sample rate are refused; sound of any rates is stored with\n"
    "a rate each.\n"
    "Example: batchwright ingest audio /data/wav --into /data/train --label-from-folder",
    add_audio};

}  // namespace batchwright
