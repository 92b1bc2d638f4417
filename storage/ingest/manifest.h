#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/formats.h"
#include "storage/ingest/file_list.h"
#include "storage/ingest/transcripts.h"

namespace batchwright {

/// What a manifest of JSON lines lists: files of sound or parts of them, with texts and labels.
struct Manifest {
  std::vector<SourceFile> files;        ///< In the order of the lines; parts of a file together.
  std::optional<Texts> texts;           ///< By key; empty: no line has one.
  std::map<std::string, Texts> labels;  ///< By member, then by key; a line may lack it.
  bool numbered = false;                ///< Some key is the number of a line.
};

/// Reads a manifest with one object a line, as NeMo's (nemo/collections/common/parts/preprocessing/
/// manifest.py): `audio_filepath` (or audio_filename, path, audio), a path that may be relative to
/// the manifest's folder; optional `offset` and `duration` in seconds; `text` (or normalized_text).
/// null stands for a member that is missing; lines of blanks are passed over. `labels` names
/// members that are texts. The key is the member `key`; without one it is `id`, or the number of
/// the line among those that are no blanks, from 0. Threads: any. Errors: invalid_argument, naming
/// manifest and line: not readable, not an object of JSON, no path, a member of another kind or out
/// of range, a key twice; no line at all; no line with a label.
Result<Manifest> read_manifest(const std::filesystem::path& path, const std::string& key,
                               std::span<const std::string> labels);

}  // namespace batchwright
