#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client/command/command_options.h"
#include "storage/ingest/ingest.h"

namespace batchwright {

/// What a kind of ingest opens: files, and what makes sequences of them.
struct IngestInput {
  std::filesystem::path named_for;  ///< The folder whose name the dataset keeps as `source_folder`.
  std::unique_ptr<IngestSource> source;
  std::vector<SourceFile> files;
  AnnotationOptions annotations;
  std::string passed_over;             ///< Files of other kinds; empty: none.
  std::string left_out;                ///< Names and links that were not read; empty: none.
  std::vector<std::string> unmatched;  ///< Lines for the report.
};

/// All that the command knows of one kind of ingest: command line, manual and completion follow. It
/// has a file of its own here, and a place in the list of ingest_kinds.cpp.
struct IngestKind {
  using Open = std::function<Result<IngestInput>()>;

  const char* name;  ///< The command's word, and the dataset's `source`.
  const char* help;
  const char* footer;
  /// Adds its options to the command, those that all kinds take among them (add_ingest_options()).
  /// What it returns is called once they are parsed.
  Open (*add)(CLI::App& command, const std::shared_ptr<IngestOptions>& options);
};

extern const IngestKind kIngestAudio, kIngestNpy, kIngestNpz, kIngestKaldi, kIngestJsonl;

/// What all kinds of ingest take.
void add_ingest_options(CLI::App& command, IngestOptions& options);

/// Takes in what a kind has opened. Returns the exit code.
int run_ingest(const IngestOptions& options, const char* kind, IngestInput input);

/// What kinds that read arrays take.
void add_array_options(CLI::App& command, ArrayOptions& options);

/// What kinds that read a folder take.
struct FolderOptions {
  std::filesystem::path folder;
  bool key_by_basename = false;  ///< Otherwise keys are paths below the folder.
};
void add_folder(CLI::App& command, FolderOptions& folder, IngestOptions& options);

/// Appends a folder's files, and what is to be told of the others.
void add_files(IngestInput& input, FileList list);

/// What kinds that read a folder begin with. Errors: those of find_files().
Result<IngestInput> input_of_folder(const FolderOptions& folder, const IngestOptions& options,
                                    std::span<const std::string_view> extensions);

/// What sound is stored as.
enum class StoreAs : std::uint8_t { features, pcm, encoded };

/// What kinds that read sound take.
struct SoundOptions {
  AudioSourceOptions audio;
  StoreAs store = StoreAs::features;
  SoundSourceOptions sound;  ///< Where it is stored as sound; channels are `audio`'s.
};

/// Rate and channels.
void add_sound_source_options(CLI::App& command, SoundOptions& options);
/// Front end, and what is stored. `may_be_encoded`: whole files may be stored as they are.
void add_stored_sound_options(CLI::App& command, const std::shared_ptr<SoundOptions>& options,
                              bool may_be_encoded);

/// The source for files of sound; an existing dataset's rate and samples go before those of the
/// files. Errors: those of audio_source().
Result<std::unique_ptr<IngestSource>> sound_source_for(const SoundOptions& options,
                                                       const IngestOptions& common,
                                                       std::span<const SourceFile> files);

}  // namespace batchwright
