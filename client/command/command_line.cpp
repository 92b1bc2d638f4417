#include "client/command/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "client/command/command_options.h"
#include "client/command/commands.h"
#include "client/command/completion.h"
#include "client/command/exit_code.h"
#include "daemon/config/config.h"
#include "daemon/planning/planning.h"

// Every option of every command is here, those of ingest, recipes, live feeds and jobs apart, and
// nothing else is. A command is one add_ function: it makes the subcommand, ties options to a
// struct of commands.h, and sets the action.

namespace batchwright {
namespace {

#ifdef BATCHWRIGHT_MINIMAL  // which leaves out what takes its libraries, or pages that it lacks
constexpr bool kHasAllCommands = false;
#else
constexpr bool kHasAllCommands = true;
#endif

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
  CLI::App* command =
      app.add_subcommand("verify", "Check every record of a dataset, and decode stored sound");
  command->add_option("DATASET", options->dataset, "Folder of the dataset")->required();
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer("Example: batchwright verify /data/train");
  on_chosen(*command, action, options, run_verify);
}

void add_journal(CLI::App& app, Action& action) {
  const auto options = std::make_shared<JournalOptions>();
  CLI::App* command = app.add_subcommand("journal", "Show what the journal of a queue holds");
  command->add_option("FILE", options->journal, "The journal, as the feed names it")->required();
  command
      ->add_option("--salvage", options->salvage,
                   "Write a journal with all of its sound records; the file must not exist")
      ->type_name("OUT");
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer("Example: batchwright journal /var/lib/batchwright/jobs --salvage /tmp/jobs");
  on_chosen(*command, action, options, run_journal);
}

/// One option for each row of the planning room's table, spelled with `-` for `_`.
void add_plan_settings(CLI::App& command, const std::shared_ptr<PlanOptions>& options) {
  for (const SettingRow& row : setting_rows()) {
    // A setting that the planning room gains is an option from then on, with its help.
    std::string option = "--" + std::string(row.name);
    std::replace(option.begin(), option.end(), '_', '-');
    command
        .add_option_function<std::string>(
            option,
            [options, name = std::string(row.name)](const std::string& value) {
              options->settings.emplace_back(name, value);
            },
            fmt::format("{}. Allowed: {}", row.help, row.allowed))
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
  auto* config = command->add_option("--feed-config", options->config,
                                     "Configuration of a daemon: data, recipe and plan of a feed");
  config->type_name("FILE")->excludes(dataset)->excludes("--lengths");
  command->add_option("--feed", options->feed, "Its feed, where it has several")->needs(config);
  command->add_option("--epoch", options->epoch, "Epoch to plan, from 0")->check(from_zero());
  command->add_flag("--json", options->json, "Print one JSON object");
  command->add_flag("--batches", options->batches, "Print the batches, by ordinal from 0");
  command->add_flag("--compare", options->compare,
                    "Print one table: as configured, and all orders with each way to cut");
  command
      ->add_option("--step-cost", options->step_cost,
                   "Frames that a step costs beside its batches, for estimated times")
      ->check(from_zero());
  command->add_option("--html", options->html, "Write one self-contained page of charts");
  add_plan_settings(*command, options);
  command->footer(
      "ZPR is the zero-padding rate and ABL the average batch length in frames, both means over "
      "the\n"
      "batches weighted by their sizes; APR the average padding ratio, the plain mean of padded\n"
      "shares; DUR the data usage rate, the share of all sequences that an epoch uses.\n\n"
      "Example: batchwright plan --dataset /data/train --order semi-sorted --cut dynamic");
  on_chosen(*command, action, options, run_plan);
}

void add_tail(CLI::App& app, Action& action) {
  const auto options = std::make_shared<TailOptions>();
  CLI::App* command = app.add_subcommand("tail", "Show the batches of a feed as they are served");
  command->add_option("--feed", options->feed, "Name of the feed")->required();
  add_endpoint(*command, options->endpoint, kUsualEndpoint);
  add_keys(*command, options->keys);
  // Either says nothing without the other; without both tail takes every batch, as a replica.
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
  add_endpoint(*command, options->endpoint, kUsualEndpoint);
  add_keys(*command, options->keys);
  command->add_option("--clients", options->clients, "Replicas that take batches at once")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  auto* producers =
      command->add_option("--producers", options->producers,
                          "Producers that push made-up sequences into a live feed at once");
  producers->check(CLI::Range(1, 10'000));
  command
      ->add_option("--length", options->length, "Frames of such a sequence; by default up to 100")
      ->check(CLI::PositiveNumber)
      ->needs(producers);
  command->add_option("--seconds", options->seconds, "How long they take batches, or push")
      ->check(CLI::Range(0.01, 86'400.0))
      ->capture_default_str();
  add_choice<BenchTouch>(
      *command, "--touch", options->touch,
      {{"header", BenchTouch::header}, {"page", BenchTouch::page}, {"all", BenchTouch::all}})
      ->description("What clients read: headers, a byte of each page too, or every byte");
  command->add_option("--window", options->window, "Batches in flight, of each client")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--dataset", options->dataset,
                      "Dataset for the memcpy; by default the one named in the daemon's stats");
  command->add_option("--memcpy-threads", options->memcpy_threads, "Threads that do the memcpy")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--stats", options->stats,
                      "Where the daemon's stats are; by default the daemon is asked");
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
  auto* endpoint = add_endpoint(*command, options->endpoint, kUsualEndpoint);
  command
      ->add_option("--events", options->events,
                   "Endpoint of the events, where no daemon is asked for it")
      ->type_name("ENDPOINT")
      ->excludes(endpoint);
  command->add_option("--feed", options->feed, "Of one feed only, without clients");
  add_keys(*command, options->keys);
  command->add_option("--count", options->count, "End after so many events, 0 for no end");
  command->add_flag("--json", options->json, "Print one JSON object an event");
  command->footer("Example: batchwright events --feed train --json");
  on_chosen(*command, action, options, run_events);
}

void add_top(CLI::App& app, Action& action) {
  const auto options = std::make_shared<TopOptions>();
  CLI::App* command = app.add_subcommand("top", "Show a daemon's work, live");
  command
      ->add_option("--stats", options->stats,
                   "Where the daemon's pages are, http:// or unix://; several are added up")
      ->type_name("URL,...")
      ->delimiter(',')
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_endpoint(*command, options->endpoint, "BATCHWRIGHT_ENDPOINT")->excludes("--stats");
  command
      ->add_option_function<double>(
          "--interval",
          [options](double seconds) { options->interval = std::chrono::duration<double>(seconds); },
          "Time between two looks")
      ->type_name("SECONDS")
      ->transform(a_time(0.1, 3600.0))
      ->default_str("1");
  command->add_flag("--once", options->once, "Print one snapshot and end");
  // The page as it came, unlike the JSON of other commands: programs know its keys already.
  command->add_flag("--json", options->json, "Print each daemon's JSON object, one a line");
  command->footer(
      "Arrows, j, k, PgUp, PgDn, Home and End move, Enter opens the feed at the cursor with its\n"
      "clients, Esc or Backspace goes back; < and > sort by another column, r the other way "
      "round;\n"
      "? shows the keys, q or Ctrl-C ends it. When standard output is no terminal, snapshots are\n"
      "plain text. Without --stats and an endpoint the pages are those at http://127.0.0.1:9477.\n"
      "Example: batchwright top --stats unix:///run/batchwright/stats.sock");
  on_chosen(*command, action, options, run_top);
}

/// The words of a choice: CLI11 keeps them as "{a,b}", the planning room as "a b".
std::vector<std::string> words_of(const CLI::Option& option) {
  // CLI11 has no call for the words of an option: they are read from what --help shows.
  std::string type = option.get_type_name();
  std::string name = option.get_name().substr(2);
  std::replace(name.begin(), name.end(), '-', '_');
  for (const SettingRow& row : setting_rows()) {
    if (row.name == name && setting_type(row.name) == SettingType::word) {
      return CLI::detail::split(std::string(row.allowed), ' ');
    }
  }
  const std::size_t open = type.find('{'), close = type.find('}');
  if (open == type.npos || close == type.npos) return {};
  return CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
}

CompletedCommand completed(const CLI::App& app, const std::string& path) {
  CompletedCommand command{path, app.get_description(), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    // What has no name is a file or a folder, which the scripts offer anyway.
    if (option->get_positional() || option->get_lnames().empty()) continue;
    // The first sentence: a menu has one line for each option.
    const std::string help = option->get_description();
    command.options.push_back({"--" + option->get_lnames()[0], help.substr(0, help.find(". ")),
                               option->get_items_expected_min() > 0, words_of(*option)});
  }
  // Given a filter, be it an empty one, CLI11 lists all commands, and else those of the call.
  for (const CLI::App* below : app.get_subcommands({})) {
    const std::string name = below->get_name();
    command.commands.push_back(completed(*below, path.empty() ? name : path + " " + name));
  }
  return command;
}

void add_completion(CLI::App& app, Action& action) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("completion", "Print a script that completes commands in a shell");
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer("Example: source <(batchwright completion bash)");
  command->callback([&app, &action, shell] {
    // Run after parsing, so the commands that are added behind this one are in the script.
    action = [&app, shell] {
      const auto script = completion_script(*shell, completed(app, ""));
      if (!script) return fail(script.error());
      fmt::print("{}", *script);
      return kDone;
    };
  });
}

/// CLI11 takes the word behind an option for its value, whatever that is: `--into --help` would
/// make a dataset of that name.
void refuse_options_as_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_positional() || option->get_expected_max() == 0) continue;
    option->check([](const std::string& value) {
      return value.starts_with("--")
                 ? fmt::format("found {}, which is no value; allowed: ./{} for such a path", value,
                               value)
                 : std::string();
    });
  }
  for (CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; })) {
    refuse_options_as_values(*below);
  }
}

/// The words of the call, the last one first, as CLI11 takes them. `help COMMAND` is
/// `COMMAND --help`: CLI11 would take the command's name for a second command.
std::vector<std::string> words_to_parse(int argc, const char* const* argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (!words.empty() && words[0] == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  std::reverse(words.begin(), words.end());
  return words;
}

/// What is wrong with the call, in one line and a hint.
int refuse_call(const CLI::App& app, const CLI::ParseError& error, int argc,
                const char* const* argv) {
  const std::string hint = hint_for_call(app, error, argc, argv);
  fmt::print(stderr, "batchwright: {}\nRun with --help for more information.\n",
             hint.empty() ? error.what() : hint);
  return kWrongInput;
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  CLI::App app("Builds, inspects and serves batches of variable-length sequences.", "batchwright");
  const std::string_view commit = build_commit();
  const std::string version =
      fmt::format("batchwright {}{}{}", BATCHWRIGHT_VERSION, commit.empty() ? "" : " ", commit);
  app.set_version_flag("--version", version);
  app.require_subcommand(1);
  // Set by the command that is called. It runs once the whole call has proved sound.
  Action action;
  if constexpr (kHasAllCommands) add_ingest(app, action);
  add_inspect(app, action);
  add_verify(app, action);
  if constexpr (kHasAllCommands) {
    add_recipe_commands(app, action);
    add_plan(app, action);
    add_live_commands(app, action);
  }
  add_tail(app, action);
  if constexpr (kHasAllCommands) {
    add_bench(app, action);
    add_keygen(app, action);
  }
  add_events(app, action);
  if constexpr (kHasAllCommands) add_top(app, action);
  add_journal(app, action);
  add_job_commands(app, action);
  add_completion(app, action);
  // For the list of commands alone: words_to_parse() turns it into --help.
  app.add_subcommand("help", "Show what a command does: help COMMAND");
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    command->set_version_flag("--version", version);
  }
  refuse_options_as_values(app);
  try {
    app.parse(words_to_parse(argc, argv));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return refuse_call(app, error, argc, argv);
    return app.exit(error) == 0 ? kDone : kWrongInput;  // help and version come as "errors" of 0
  }
  return action();
}

}  // namespace batchwright
