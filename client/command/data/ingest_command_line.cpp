#include <fmt/core.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/command/command_options.h"
#include "client/command/commands.h"
#include "client/command/data/front_end_options.h"

// Every option of `ingest`, as command_line.cpp has those of the other commands.

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

/// What all kinds of ingest take.
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

/// What the kinds that read a folder take.
void add_folder(CLI::App& command, IngestOptions& options) {
  command.add_option("DIR", options.folder, "Folder, searched recursively")->required();
  CLI::Option* key = add_choice<bool>(command, "--key", options.key_by_basename,
                                      {{"path", false}, {"basename", true}});
  key->description("Keys: the path below DIR, or the name of the file, without extension");
  // The label is a part of the path that a name does not have.
  command
      .add_flag("--label-from-folder", options.annotations.label_from_folder,
                "Store the first folder below DIR as scalar field `label`")
      ->excludes(key);
}

/// What the kinds that read arrays take.
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

/// What sound is stored as, and its refusals: an option that decides nothing is a slip.
void add_sound(CLI::App& command, const std::shared_ptr<IngestOptions>& options,
               const std::shared_ptr<FrontEndCall>& front_end) {
  add_choice<StoreAs>(
      command, "--store", options->store,
      {{"features", StoreAs::features}, {"pcm", StoreAs::pcm}, {"encoded", StoreAs::encoded}})
      ->description("Features; the samples; or the bytes of the files as they are");
  add_choice<DType>(command, "--samples", options->sound.samples,
                    {{"auto", DType::none}, {"int16", DType::int16}, {"float32", DType::float32}})
      ->description("For pcm; auto: float32 where a file has more than 16 bits, else int16");
  command
      .add_option("--max-seconds", options->sound.max_seconds,
                  "For pcm and encoded: a longer sequence is an error of its file")
      ->type_name("S")
      ->check(CLI::Range(1e-3, 1e9))
      ->capture_default_str();
  command.parse_complete_callback([&command, options, front_end] {
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
    if (command.count("--max-seconds") > 0 && features) refuse("--max-seconds", "pcm or encoded");
    if (command.count("--samples") > 0 && options->store != StoreAs::pcm) {
      refuse("--samples", "pcm");
    }
    if (command.count("--segments") > 0 && options->store == StoreAs::encoded) {
      refuse("--segments", "features or pcm");
    }
    if (options->audio.channels == ChannelChoice::each && options->store == StoreAs::encoded) {
      refuse("--channel each", "features or pcm");
    }
  });
}

void add_ingest_audio(CLI::App& ingest, Action& action) {
  // Shared with the callback: CLI11 writes into it while it parses, behind this function.
  const auto options = std::make_shared<IngestOptions>();
  CLI::App* command =
      ingest.add_subcommand("audio", "wav, flac, mp3, ogg and opus files to features, or as sound");
  add_folder(*command, *options);
  add_ingest_options(*command, *options);
  command
      ->add_option("--sample-rate", options->audio.sample_rate,
                   "Rate that all files have; 0: that of the dataset, or of most files")
      ->type_name("HZ")
      ->check(CLI::Range(0, 10'000'000))
      ->capture_default_str();
  add_choice<ChannelChoice>(*command, "--channel", options->audio.channels,
                            {{"only", ChannelChoice::only},
                             {"first", ChannelChoice::first},
                             {"mix", ChannelChoice::mix},
                             {"each", ChannelChoice::each}})
      ->description(
          "Files of several channels: refuse the file, take the first, the mean, or each as a "
          "sequence, KEY#1, KEY#2, ...");
  command
      ->add_option("--segments", options->segments,
                   "Cut files into parts: lines key, recording, begin and end in seconds")
      ->type_name("FILE")
      ->excludes(command->get_option("--label-from-folder"));
  const auto front_end = std::make_shared<FrontEndCall>();
  add_front_end(*command, front_end);
  add_sound(*command, options, front_end);
  command->footer(
      "For features, files of another sample rate are refused; sound of any rates is stored with\n"
      "a rate each.\n"
      "Example: batchwright ingest audio /data/wav --into /data/train --label-from-folder");
  on_chosen(*command, action, options, run_ingest_audio);
}

void add_ingest_npy(CLI::App& ingest, Action& action) {
  const auto options = std::make_shared<IngestOptions>();
  CLI::App* command = ingest.add_subcommand("npy", ".npy files of [T] or [T, D...]");
  add_folder(*command, *options);
  add_ingest_options(*command, *options);
  add_array_options(*command, options->arrays);
  command->footer(
      "A key is the path below DIR without extension. All files have one dtype and D...; arrays\n"
      "in Fortran order are put into C order.\n"
      "Example: batchwright ingest npy /data/features --into /data/train --on-error skip");
  on_chosen(*command, action, options, run_ingest_npy);
}

void add_ingest_npz(CLI::App& ingest, Action& action) {
  const auto options = std::make_shared<IngestOptions>();
  CLI::App* command = ingest.add_subcommand("npz", ".npz files, whose arrays are the fields");
  command->add_option("FILE", options->files, "Files, or folders of them, however deep")
      ->required();
  add_ingest_options(*command, *options);
  add_array_options(*command, options->arrays);
  add_several(*command, "--field", options->fields, "NAME",
              "Take this array; by default all are taken");
  command->add_option("--primary", options->primary, "Array [T, D...] that sets the length T")
      ->type_name("NAME")
      ->default_str("the only array, or features");
  command->footer(
      "A file is a sequence. Its key is the name without extension, or the path below a folder.\n"
      "Example: batchwright ingest npz a.npz b.npz --into /data/train --cast float32");
  on_chosen(*command, action, options, run_ingest_npz);
}

void add_ingest_kaldi(CLI::App& ingest, Action& action) {
  const auto options = std::make_shared<IngestOptions>();
  CLI::App* command = ingest.add_subcommand("kaldi", "Kaldi's matrices and vectors, by scp or ark");
  command->add_option("DIR|SCP|ARK", options->table, "Data folder, scp file or archive")
      ->required();
  add_ingest_options(*command, *options);
  add_array_options(*command, options->arrays);
  add_several(*command, "--field", options->fields, "NAME=TABLE",
              "Another field, from an scp file or an archive");
  command->footer(
      "A folder has feats.scp; its text, utt2spk, utt2lang and utt2gender become the fields text,\n"
      "speaker, language and gender, or are left out by --exclude. ark:FILE and scp:FILE say what\n"
      "a file is whose name does not end in .ark or .scp. Commands (...|) are never run.\n"
      "Example: batchwright ingest kaldi data/train --into /data/train --field ali=ali.scp");
  on_chosen(*command, action, options, run_ingest_kaldi);
}

void add_gather(CLI::App& app, Action& action) {
  const auto options = std::make_shared<GatherOptions>();
  CLI::App* command =
      app.add_subcommand("gather", "Check the parts that ingest --part made, and join them");
  command->add_option("PARTS", options->folder, "Folder of the parts")->required();
  auto* into = command->add_option("--into", options->into,
                                   "Write one dataset; by default the parts stay its shards");
  into->type_name("DATASET");
  command->add_flag("--resume", options->resume, "Go on with a dataset that is there")->needs(into);
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer(
      "Without --into it prints the line `dataset = [...]` for the daemon's configuration.\n"
      "Example: batchwright gather /data/parts --into /data/train");
  on_chosen(*command, action, options, run_gather);
}

}  // namespace

void add_ingest(CLI::App& app, Action& action) {
  CLI::App* ingest = app.add_subcommand("ingest", "Append files to a dataset");
  // `ingest` alone has nothing that it could read.
  ingest->require_subcommand(1);
  add_ingest_audio(*ingest, action);
  add_ingest_npy(*ingest, action);
  add_ingest_npz(*ingest, action);
  add_ingest_kaldi(*ingest, action);
  add_gather(app, action);
}

}  // namespace batchwright
