#include "client/command/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "client/command/commands.h"
#include "client/command/exit_code.h"
#include "daemon/planning/planning.h"

// Every option of every command is here, and nothing else is. A command is one add_ function:
// it makes the subcommand, ties options to a struct of commands.h, and sets the action.

namespace batchwright {
namespace {

using Action = std::function<int()>;

/// Has `action` run `run` with the options as they stand after parsing.
template <class Options>
void on_chosen(CLI::App& command, Action& action, std::shared_ptr<Options> options,
               int (*run)(const Options&)) {
  command.callback([&action, options, run] { action = [options, run] { return run(*options); }; });
}

/// An option whose values are words.
template <class Value>
CLI::Option* add_choice(CLI::App& command, const char* name, Value& value,
                        const std::map<std::string, Value>& choices) {
  std::string chosen;
  for (const auto& [word, meaning] : choices) {
    if (meaning == value) chosen = word;
  }
  return command
      .add_option_function<std::string>(
          name, [&value, choices](const std::string& word) { value = choices.at(word); })
      ->check(CLI::IsMember(choices))
      ->type_name("")
      ->default_str(chosen);
}

/// For unsigned options, into which CLI11 would read -1 as the largest number there is.
CLI::Validator from_zero() {
  return {[](std::string& text) {
            return text.starts_with('-') ? "found " + text + ", allowed: 0 and up" : std::string();
          },
          ""};
}

/// What both kinds of ingest take.
void add_ingest_options(CLI::App& command, IngestOptions& options) {
  command.add_option("DIR", options.folder, "Folder of files, however deep")->required();
  command.add_option("--into", options.dataset, "Dataset; made when it is not there")
      ->type_name("DATASET")
      ->required();
  add_choice<OnError>(command, "--on-error", options.on_error,
                      {{"stop", OnError::stop}, {"skip", OnError::skip}})
      ->description("A file that cannot be taken stops the work, or is listed at the end");
  command.add_flag("--resume", options.resume, "Pass over files whose key is in the dataset");
  command.add_flag("--label-from-folder", options.annotations.label_from_folder,
                   "Store the first folder below DIR as scalar field `label`");
  command
      .add_option("--transcripts", options.annotations.transcripts,
                  "Lines of key TAB text, stored as field `text` (UTF-8 bytes)")
      ->type_name("FILE");
  command.add_option("--exclude", options.excluded, "Leave out files and folders of this name")
      ->type_name("NAME")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--threads", options.threads, "Threads that read files; 0: one a core")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  command.add_flag("--json", options.json, "Print one JSON object");
}

void add_front_end(CLI::App& command, FrontEndOptions& options) {
  const auto number = [&command](const char* name, auto& value, const char* unit,
                                 const char* what) {
    command.add_option(name, value, what)
        ->type_name(unit)
        ->capture_default_str()
        ->group("Front end");
  };
  add_choice<FeatureKind>(command, "--features", options.features,
                          {{"logmel", FeatureKind::logmel}, {"mfcc", FeatureKind::mfcc}})
      ->description("Log-mel energies, or cepstra of them")
      ->group("Front end");
  number("--window-ms", options.window_ms, "MS", "Length of a frame's window");
  number("--hop-ms", options.hop_ms, "MS", "From frame to frame");
  add_choice<WindowShape>(command, "--window", options.window,
                          {{"hamming", WindowShape::hamming}, {"hann", WindowShape::hann}})
      ->description("Shape of the window")
      ->group("Front end");
  number("--fft-size", options.fft_size, "POINTS", "0: the next power of two above the window");
  number("--mel-bands", options.mel_bands, "N", "Mel bands");
  number("--fmin", options.fmin_hz, "HZ", "Lower end of the lowest band");
  number("--fmax", options.fmax_hz, "HZ", "Upper end of the highest band; 0: half the rate");
  number("--pre-emphasis", options.pre_emphasis, "K", "s(n) - K s(n-1); 0: off");
  number("--log-floor", options.log_floor, "ENERGY", "Energies below it are raised to it");
  number("--cepstra", options.cepstra, "N", "Coefficients of a frame, for mfcc");
}

void add_ingest_audio(CLI::App& ingest, Action& action) {
  const auto options = std::make_shared<IngestOptions>();
  CLI::App* command = ingest.add_subcommand("audio", "wav, flac and ogg files to features");
  add_ingest_options(*command, *options);
  add_choice<ChannelChoice>(
      *command, "--channel", options->audio.channels,
      {{"only", ChannelChoice::only}, {"first", ChannelChoice::first}, {"mix", ChannelChoice::mix}})
      ->description("Of several channels: refuse the file, take the first, or the mean");
  add_front_end(*command, options->audio.front_end);
  command->footer(
      "A key is the path below DIR without extension. All files have one sample rate.\n"
      "Example: batchwright ingest audio /data/wav --into /data/train --label-from-folder");
  on_chosen(*command, action, options, run_ingest_audio);
}

void add_ingest_npy(CLI::App& ingest, Action& action) {
  const auto options = std::make_shared<IngestOptions>();
  CLI::App* command = ingest.add_subcommand("npy", ".npy files of [T] or [T, D...], as they are");
  add_ingest_options(*command, *options);
  command->footer(
      "A key is the path below DIR without extension. All files have one dtype and D...\n"
      "Example: batchwright ingest npy /data/features --into /data/train --on-error skip");
  on_chosen(*command, action, options, run_ingest_npy);
}

void add_ingest(CLI::App& app, Action& action) {
  CLI::App* ingest = app.add_subcommand("ingest", "Append files to a dataset");
  ingest->require_subcommand(1);
  add_ingest_audio(*ingest, action);
  add_ingest_npy(*ingest, action);
}

void add_inspect(CLI::App& app, Action& action) {
  const auto options = std::make_shared<InspectOptions>();
  CLI::App* command = app.add_subcommand("inspect", "Show what a dataset holds");
  command->add_option("DATASET", options->dataset, "Folder of the dataset")->required();
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer("Example: batchwright inspect /data/train --json");
  on_chosen(*command, action, options, run_inspect);
}

void add_verify(CLI::App& app, Action& action) {
  const auto options = std::make_shared<VerifyOptions>();
  CLI::App* command = app.add_subcommand("verify", "Check every record of a dataset");
  command->add_option("DATASET", options->dataset, "Folder of the dataset")->required();
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer("Example: batchwright verify /data/train");
  on_chosen(*command, action, options, run_verify);
}

/// One option for each row of the planning room's table, spelled with `-` for `_`.
void add_plan_settings(CLI::App& command, const std::shared_ptr<PlanOptions>& options) {
  for (const SettingRow& row : setting_rows()) {
    std::string option = "--" + std::string(row.name);
    std::replace(option.begin(), option.end(), '_', '-');
    command
        .add_option_function<std::string>(
            option,
            [options, name = std::string(row.name)](const std::string& value) {
              options->settings.emplace_back(name, value);
            },
            std::string(row.help) + ". Allowed: " + std::string(row.allowed))
        ->group("Planning settings");
  }
}

void add_plan(CLI::App& app, Action& action) {
  const auto options = std::make_shared<PlanOptions>();
  CLI::App* command = app.add_subcommand("plan", "Plan an epoch's batches without serving them");
  auto* dataset =
      command->add_option("--dataset", options->datasets, "Dataset; several to mix them");
  command
      ->add_option("--lengths", options->lengths,
                   "Text file with one length a line, - for standard input; several to mix them")
      ->excludes(dataset);
  command->add_option("--epoch", options->epoch, "Epoch to plan, from 0")->check(from_zero());
  command->add_flag("--json", options->json, "Print one JSON object");
  command->add_flag("--batches", options->batches, "Print the batches, by ordinal from 0");
  command->add_flag("--compare", options->compare,
                    "Print one table over all orders, with fixed and dynamic batches");
  command
      ->add_option("--step-cost", options->step_cost,
                   "Frames that a step costs beside its batches, for estimated times")
      ->check(from_zero());
  command->add_option("--html", options->html, "Write one self-contained page of charts");
  add_plan_settings(*command, options);
  command->footer(
      "Example: batchwright plan --dataset /data/train --order semi-sorted --cut dynamic");
  on_chosen(*command, action, options, run_plan);
}

void add_tail(CLI::App& app, Action& action) {
  const auto options = std::make_shared<TailOptions>();
  CLI::App* command = app.add_subcommand("tail", "Show the batches of a feed as they are served");
  command->add_option("--feed", options->feed, "Name of the feed")->required();
  command->add_option("--endpoint", options->endpoint, "Of the daemon")->capture_default_str();
  auto* rank = command->add_option("--rank", options->rank, "Take one rank's share of every step");
  auto* ranks = command->add_option("--ranks", options->ranks, "Number of ranks");
  rank->check(CLI::NonNegativeNumber)->needs(ranks);
  ranks->check(CLI::PositiveNumber)->needs(rank);
  command->add_option("--epochs", options->epochs, "Epochs to show, 0 for no end")
      ->check(from_zero())
      ->capture_default_str();
  command->add_option("--epoch", options->epoch, "Epoch to start with")
      ->check(from_zero())
      ->capture_default_str();
  command->add_option("--step", options->step, "Global step to start with")
      ->check(from_zero())
      ->capture_default_str();
  command->add_option("--window", options->window, "Batches in flight")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print one JSON object a batch");
  command->footer(
      "With --json: epoch step index size length frames keys lengths ordinals, and checksum, the\n"
      "CRC-32C of the primary field's real frames, row after row. A batch with parts of sequences\n"
      "has starts, the first frame of each row, and flags: 1 for the first part of a sequence, 2\n"
      "for the last, 3 for a whole one. A lane that ran out is a row of length 0.\n\n"
      "Example: batchwright tail --feed train --epochs 1 --json");
  on_chosen(*command, action, options, run_tail);
}

void add_bench(CLI::App& app, Action& action) {
  const auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "Measure how fast a daemon serves a feed");
  command->add_option("--feed", options->feed, "Name of the feed")->required();
  command->add_option("--endpoint", options->endpoint, "Of the daemon")->capture_default_str();
  command->add_option("--clients", options->clients, "Replicas that take batches at once")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--seconds", options->seconds, "How long they take batches")
      ->check(CLI::Range(0.01, 86'400.0))
      ->capture_default_str();
  const std::map<std::string, BenchTouch> touches = {
      {"header", BenchTouch::header}, {"page", BenchTouch::page}, {"all", BenchTouch::all}};
  command->add_option("--touch", options->touch, "What clients read: header, page or all")
      ->transform(CLI::CheckedTransformer(touches));
  command->add_option("--window", options->window, "Batches in flight, of each client")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--dataset", options->dataset,
                      "Dataset for the memcpy; by default as the daemon's stats say");
  command->add_option("--stats", options->stats, "Where the daemon's stats are")
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer("Example: batchwright bench --feed train --clients 4 --seconds 10");
  on_chosen(*command, action, options, run_bench);
}

void add_keygen(CLI::App& app, Action& action) {
  const auto options = std::make_shared<KeygenOptions>();
  CLI::App* command = app.add_subcommand("keygen", "Make a pair of keys for tcp:// endpoints");
  command->add_option("--into", options->into, "Writes PREFIX.secret and PREFIX.public")
      ->type_name("PREFIX")
      ->required();
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer(
      "The daemon reads its secret key (curve_secret_key_file) and the public keys of its clients\n"
      "(authorized_keys_file); a client needs the daemon's public key and a pair of its own.\n"
      "Example: batchwright keygen --into /etc/batchwright/server");
  on_chosen(*command, action, options, run_keygen);
}

void add_events(CLI::App& app, Action& action) {
  const auto options = std::make_shared<EventsOptions>();
  CLI::App* command = app.add_subcommand("events", "Show what happens at a daemon");
  auto* endpoint = command->add_option("--endpoint", options->endpoint, "Of the daemon");
  endpoint->capture_default_str();
  command->add_option("--events", options->events, "Where events are told, when no daemon is asked")
      ->type_name("ENDPOINT")
      ->excludes(endpoint);
  command->add_option("--feed", options->feed, "Of one feed only, without clients");
  auto* server_key = command->add_option("--server-key", options->server_key,
                                         "The daemon's public key, 40 characters, for tcp://");
  command->add_option("--key-file", options->key_file, "Own secret key, as keygen wrote it")
      ->type_name("FILE")
      ->needs(server_key);
  command->add_option("--count", options->count, "End after so many events, 0 for no end");
  command->add_flag("--json", options->json, "Print one JSON object an event");
  command->footer("Example: batchwright events --feed train --json");
  on_chosen(*command, action, options, run_events);
}

void add_top(CLI::App& app, Action& action) {
  const auto options = std::make_shared<TopOptions>();
  CLI::App* command = app.add_subcommand("top", "Show what a daemon does, live");
  command->add_option("--stats", options->stats, "Where the daemon's pages are, http:// or unix://")
      ->type_name("URL")
      ->capture_default_str();
  command
      ->add_option_function<double>(
          "--interval",
          [options](double seconds) { options->interval = std::chrono::duration<double>(seconds); },
          "From one look to the next")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 3600.0))
      ->default_str("1");
  command->add_flag("--once", options->once, "Print one snapshot and end");
  command->add_flag("--json", options->json, "Print the daemon's JSON object, one a line");
  command->footer(
      "q or Ctrl-C ends it. When standard output is no terminal, snapshots are plain text.\n"
      "Example: batchwright top --stats unix:///run/batchwright/stats.sock");
  on_chosen(*command, action, options, run_top);
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  CLI::App app("Builds, inspects and serves batches of variable-length sequences.", "batchwright");
  app.set_version_flag("--version", "batchwright " BATCHWRIGHT_VERSION);
  app.require_subcommand(1);
  Action action;
  add_ingest(app, action);
  add_inspect(app, action);
  add_verify(app, action);
  add_plan(app, action);
  add_tail(app, action);
  add_bench(app, action);
  add_keygen(app, action);
  add_events(app, action);
  add_top(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kWrongInput;  // help and version come as "errors" of 0
  }
  return action();
}

}  // namespace batchwright
