#include <fmt/core.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "client/command/data/ingest/ingest_kind.h"

// The options that several kinds of ingest take.

namespace batchwright {
namespace {

/// Texts and labels by key.
void add_annotations(CLI::App& command, IngestOptions& options) {
  command
      .add_option("--transcripts", options.annotations.transcripts,
                  "Texts by key, stored as field `text` (UTF-8 bytes)")
      ->type_name("FILE")
      ->group("Texts and labels");
  add_choice<TranscriptFormat>(command, "--transcript-format",
                               options.annotations.transcript_format,
                               {{"detect", TranscriptFormat::detect},
                                {"tab", TranscriptFormat::tab},
                                {"kaldi", TranscriptFormat::kaldi},
                                {"ljspeech", TranscriptFormat::ljspeech},
                                {"librispeech", TranscriptFormat::librispeech}})
      ->description("Separator of key and text; librispeech: FILE may be a folder")
      ->group("Texts and labels");
  command
      .add_option("--transcript-key", options.annotations.transcript_columns.key,
                  "Column of the key or the file's name: a number from 1, or a name in the first "
                  "line")
      ->type_name("COLUMN")
      ->group("Texts and labels");
  command
      .add_option("--transcript-text", options.annotations.transcript_columns.text,
                  "Column of the text; by default path and sentence, where the first line has both")
      ->type_name("COLUMN")
      ->group("Texts and labels");
  add_named_values(command, "--label-table",
                   "Store the labels of a table, lines key blank label, as scalar field NAME",
                   [&options](const std::string& field, const std::string& table) {
                     options.annotations.label_tables.push_back({field, table});
                   })
      ->type_name("NAME=FILE")
      ->group("Texts and labels");
  // Refused rather than added: an evaluation set must not get numbers that training lacks.
  add_several(command, "--labels", options.labels, "[NAME=]FILE",
              "Names of the labels 0, 1, ..., one a line; others are refused")
      ->group("Texts and labels");
  command
      .add_option("--labels-like", options.labels_like,
                  "Number the labels as this dataset does; others are refused")
      ->type_name("DATASET")
      ->group("Texts and labels");
}

}  // namespace

void add_ingest_options(CLI::App& command, IngestOptions& options) {
  command.add_option("--into", options.into, "Dataset, created if missing")
      ->type_name("DATASET")
      ->required();
  command
      .add_option_function<std::string>(
          "--part",
          [&options](const std::string& text) {
            const auto part = read_part(text);
            if (!part) throw CLI::ValidationError("--part", part.error().message);
            options.part = *part;
          },
          "Take this part of the files alone, 0/N to N-1/N, into a dataset below --into")
      ->type_name("I/N");
  add_choice<OnError>(command, "--on-error", options.on_error,
                      {{"stop", OnError::stop}, {"skip", OnError::skip}})
      ->description("A file that cannot be taken stops the work, or is listed at the end");
  command.add_flag("--resume", options.resume, "Skip files whose key is in the dataset");
  add_several(command, "--exclude", options.excluded, "NAME",
              "Leave out files and folders of this name");
  command.add_option("--threads", options.threads, "Threads that read files; 0: one a core")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  command.add_flag("--json", options.json, "Print one JSON object");
  add_annotations(command, options);
}

void add_array_options(CLI::App& command, ArrayOptions& options) {
  // One value each time it is given: CLI11 would else take the words behind it, up to DIR.
  const auto each = [&command](const char* name, const char* type, const char* what,
                               std::function<void(const std::string&)> take) {
    command
        .add_option_function<std::vector<std::string>>(
            name,
            [take = std::move(take)](const std::vector<std::string>& texts) {
              for (const std::string& text : texts) take(text);
            },
            what)
        ->type_name(type)
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  };
  each("--cast", "[NAME=]DTYPE",
       "Convert elements, each of which must fit; without NAME: floats to a float type, integers "
       "to an integer type",
       [&options](const std::string& text) {
         auto [field, word] = optionally_named_value("--cast", text);
         // Checked here, so that a slip is told before files are looked for.
         const auto dtype = parse_dtype(word);
         if (!dtype) throw CLI::ValidationError("--cast", dtype.error().message);
         options.casts.push_back({std::move(field), *dtype});
       });
  each("--kind", "NAME=KIND",
       "Kind of a field: aligned, independent or scalar; by default it follows from the shapes",
       [&options](const std::string& text) {
         auto [field, word] = named_value("--kind", text);
         for (const auto kind : {FieldKind::aligned, FieldKind::independent, FieldKind::scalar}) {
           if (kind_name(kind) != word) continue;
           options.kinds.emplace_back(field, kind);
           return;
         }
         throw CLI::ValidationError(
             "--kind", fmt::format("found {}, allowed: aligned, independent, scalar", word));
       });
  command.add_flag("--allow-nonfinite", options.allow_nonfinite,
                   "Accept NaN and infinity, which are refused by default");
}

}  // namespace batchwright
