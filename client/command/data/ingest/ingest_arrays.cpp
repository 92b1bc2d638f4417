#include <filesystem>
#include <system_error>
#include <utility>

#include "client/command/data/ingest/ingest_kind.h"

// .npy and .npz files.

namespace batchwright {
namespace {

namespace fs = std::filesystem;

struct NpyOptions {
  FolderOptions folder;
  ArrayOptions arrays;
};

struct NpzOptions {
  std::vector<fs::path> files;  ///< And folders of them.
  NpzSourceOptions source;
};

Result<IngestInput> with_source(IngestInput input, Result<std::unique_ptr<IngestSource>> source) {
  if (!source) return source.error();
  input.source = std::move(*source);
  return input;
}

Result<IngestInput> open_npy(const NpyOptions& options, const IngestOptions& common) {
  auto input = input_of_folder(options.folder, common, npy_extensions());
  if (!input) return input;
  auto source = npy_source(options.arrays, input->files);
  return with_source(std::move(*input), std::move(source));
}

IngestKind::Open add_npy(CLI::App& command, const std::shared_ptr<IngestOptions>& common) {
  const auto options = std::make_shared<NpyOptions>();
  add_folder(command, options->folder, *common);
  add_ingest_options(command, *common);
  add_array_options(command, options->arrays);
  return [options, common] { return open_npy(*options, *common); };
}

/// Files as they are, and those below folders. A file's key is its name without extension.
Result<IngestInput> input_of_npz(const NpzOptions& options, const IngestOptions& common) {
  IngestInput input;
  input.named_for = options.files.front();
  input.annotations = common.annotations;
  for (const fs::path& path : options.files) {
    std::error_code ignored;  // a file that is not there is named when it is read
    // A file that is named is taken, whatever its extension: that is what was asked for.
    if (!fs::is_directory(path, ignored)) {
      input.files.push_back({path.stem().string(), path});
      continue;
    }
    auto list = find_files(path, npz_extensions(), common.excluded);
    if (!list) return list.error();
    add_files(input, std::move(*list));
  }
  return input;
}

Result<IngestInput> open_npz(const NpzOptions& options, const IngestOptions& common) {
  auto input = input_of_npz(options, common);
  if (!input) return input;
  auto source = npz_source(options.source, input->files);
  return with_source(std::move(*input), std::move(source));
}

IngestKind::Open add_npz(CLI::App& command, const std::shared_ptr<IngestOptions>& common) {
  const auto options = std::make_shared<NpzOptions>();
  command.add_option("FILE", options->files, "Files, or folders of them, searched recursively")
      ->required();
  add_ingest_options(command, *common);
  add_array_options(command, options->source.arrays);
  add_several(command, "--field", options->source.fields, "NAME",
              "Take this array; by default all are taken");
  command
      .add_option("--primary", options->source.primary, "Array [T, D...] that sets the length T")
      ->type_name("NAME")
      ->default_str("the only array, or features");
  return [options, common] { return open_npz(*options, *common); };
}

}  // namespace

const IngestKind kIngestNpy = {
    "npy", ".npy files of [T] or [T, D...]",
    "A key is the path below DIR without extension. All files have one dtype and D...; arrays\n"
    "in Fortran order are put into C order.\n"
    "Example: batchwright ingest npy /data/features --into /data/train --on-error skip",
    add_npy};

const IngestKind kIngestNpz = {
    "npz", ".npz files, whose arrays are the fields",
    "A file is a sequence. Its key is the name without extension, or the path below a folder.\n"
    "Example: batchwright ingest npz a.npz b.npz --into /data/train --cast float32",
    add_npz};

}  // namespace batchwright
