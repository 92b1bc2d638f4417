#include <memory>

#include "client/command/command_options.h"
#include "client/command/commands.h"

// The options of the commands about recipes, as command_line.cpp has those of the others.

namespace batchwright {
namespace {

void add_cmvn(CLI::App& app, Action& action) {
  const auto options = std::make_shared<CmvnCommandOptions>();
  CLI::App* command =
      app.add_subcommand("cmvn", "Gather the statistics of CMVN from a feed's data");
  command
      ->add_option("--feed-config", options->config,
                   "Configuration of a daemon, whose feed says data and front end")
      ->type_name("FILE")
      ->required();
  command->add_option("--feed", options->feed, "Its feed, where it has several");
  command->add_option("--into", options->into, "File to write")->type_name("FILE")->required();
  command->add_option("--by", options->by, "Scalar field whose values are speakers");
  command->add_option("--threads", options->threads, "Threads; 0: one a core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer(
      "Sums over all frames of the features, without noise, speeds and whatever else is drawn.\n"
      "Example: batchwright cmvn --feed-config batchwrightd.toml --by speaker --into train.cmvn");
  on_chosen(*command, action, options, run_cmvn);
}

void add_show(CLI::App& app, Action& action) {
  const auto options = std::make_shared<ShowOptions>();
  CLI::App* command = app.add_subcommand("show", "Show what a feed makes of its sequences");
  command
      ->add_option("--feed-config", options->config,
                   "Configuration of a daemon: data and recipe of a feed")
      ->type_name("FILE")
      ->required();
  command->add_option("--feed", options->feed, "Its feed, where it has several");
  auto* keys = command->add_option("KEY", options->keys, "Sequences to show");
  command->add_option("--random", options->random, "Show so many, the same ones each time")
      ->type_name("N")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str()
      ->excludes(keys);
  command->add_option("--epoch", options->epoch, "Epoch whose draws are shown, from 0")
      ->check(from_zero());
  command
      ->add_option("--html", options->html,
                   "Write one self-contained page: sound to listen to, pictures, labels")
      ->type_name("FILE");
  command->add_flag("--json", options->json, "Print one JSON object a row");
  command->footer(
      "Prints what was drawn for each row: style, speed, room, noise, masks.\n"
      "Example: batchwright show --feed-config batchwrightd.toml --random 4 --html rows.html");
  on_chosen(*command, action, options, run_show);
}

}  // namespace

void add_recipe_commands(CLI::App& app, Action& action) {
  add_cmvn(app, action);
  add_show(app, action);
}

}  // namespace batchwright
