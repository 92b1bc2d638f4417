#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "client/command/data/ingest/ingest_annotations.h"
#include "client/command/data/ingest/ingest_kind.h"

namespace batchwright {
namespace {

namespace fs = std::filesystem;

struct KaldiOptions {
  std::string table;                ///< A data folder, scp file or archive.
  std::vector<std::string> fields;  ///< NAME=TABLE
  ArrayOptions arrays;
};

/// What a Kaldi data folder has beside its features.
void add_data_folder(const fs::path& folder, std::span<const std::string> excluded,
                     AnnotationOptions& annotations) {
  constexpr std::array<std::pair<const char*, const char*>, 3> kLabels = {
      {{"utt2spk", "speaker"}, {"utt2lang", "language"}, {"utt2gender", "gender"}}};
  const auto has = [&folder, excluded](const char* name) {
    std::error_code ignored;  // what is not there is not used
    return std::find(excluded.begin(), excluded.end(), name) == excluded.end() &&
           fs::is_regular_file(folder / name, ignored);
  };
  for (const auto& [file, field] : kLabels) {
    if (has(file)) annotations.label_tables.push_back({field, folder / file});
  }
  // --transcripts goes before what lies in the folder.
  if (annotations.transcripts.empty() && has("text")) {
    annotations.transcripts = folder / "text";
    annotations.transcript_format = TranscriptFormat::kaldi;
  }
}

/// The tables of all fields. Errors: invalid_argument: a folder without features.
Result<KaldiSourceOptions> kaldi_tables(const KaldiOptions& options) {
  KaldiSourceOptions kaldi;
  kaldi.arrays = options.arrays;
  std::error_code ignored;  // a table that is not there is named when it is read
  const fs::path folder(options.table);
  const bool is_folder = fs::is_directory(folder, ignored);
  // Kaldi's folders of raw sound look the same except for this.
  if (is_folder && !fs::exists(folder / "feats.scp", ignored)) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{}: no feats.scp in it{}", options.table,
                             fs::exists(folder / "wav.scp", ignored)
                                 ? "; it lists sound (wav.scp): compute features first, or give "
                                   "the folder of its files to ingest audio"
                                 : "")};
  }
  kaldi.tables.emplace_back("features",
                            is_folder ? (folder / "feats.scp").string() : options.table);
  for (const std::string& text : options.fields) {
    auto [name, table] = split_name(text);
    if (name.empty()) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("--field {}; allowed: NAME=TABLE, such as ali=ali.scp", text)};
    }
    kaldi.tables.emplace_back(std::move(name), std::move(table));
  }
  return kaldi;
}

Result<IngestInput> open_kaldi(const KaldiOptions& options, const IngestOptions& common) {
  const auto tables = kaldi_tables(options);
  if (!tables) return tables.error();
  auto kaldi = kaldi_source(*tables);
  if (!kaldi) return kaldi.error();
  IngestInput input;
  input.named_for = options.table;
  input.source = std::move(kaldi->source);
  input.files = std::move(kaldi->files);
  // Features decide which sequences there are; what a table has beyond them is told, not taken.
  for (const auto& [field, count] : kaldi->unmatched) {
    input.unmatched.push_back(
        fmt::format("{} keys of field \"{}\" have no features", count, field));
  }
  input.annotations = common.annotations;
  std::error_code ignored;  // seen above
  if (fs::is_directory(options.table, ignored)) {
    add_data_folder(options.table, common.excluded, input.annotations);
  }
  return input;
}

IngestKind::Open add_kaldi(CLI::App& command, const std::shared_ptr<IngestOptions>& common) {
  const auto options = std::make_shared<KaldiOptions>();
  command.add_option("DIR|SCP|ARK", options->table, "Data folder, scp file or archive")->required();
  add_ingest_options(command, *common);
  add_array_options(command, options->arrays);
  add_several(command, "--field", options->fields, "NAME=TABLE",
              "Another field, from an scp file or an archive");
  return [options, common] { return open_kaldi(*options, *common); };
}

}  // namespace

const IngestKind kIngestKaldi = {
    "kaldi", "Kaldi's matrices and vectors, by scp or ark",
    "A folder has feats.scp; its text, utt2spk, utt2lang and utt2gender become the fields text,\n"
    "speaker, language and gender, or are left out by --exclude. ark:FILE and scp:FILE say what\n"
    "a file is whose name does not end in .ark or .scp. Commands (...|) are never run.\n"
    "Example: batchwright ingest kaldi data/train --into /data/train --field ali=ali.scp",
    add_kaldi};

}  // namespace batchwright
