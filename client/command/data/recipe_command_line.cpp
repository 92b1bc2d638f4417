#include <memory>

#include "client/command/command_options.h"
#include "client/command/commands.h"

// The options of the commands about recipes, as command_line.cpp has those of the others.

namespace batchwright {
namespace {

/// A dataset in place of a feed, and its front end.
void add_dataset(CLI::App& command, CmvnCommandOptions& options, CLI::Option* config) {
  CLI::Option* dataset =
      command.add_option("DATASET", options.dataset, "Dataset, in place of a feed");
  dataset->excludes(config);
  RecipeSettings& front_end = options.front_end;
  command.add_option("--like", front_end.like, "Front end, of a dataset of sound")
      ->check(CLI::IsMember(
          std::vector<std::string>(front_end_names().begin(), front_end_names().end())))
      ->type_name("")
      ->excludes(config);
  add_choice<FeatureKind>(
      command, "--features", front_end.features,
      {{"logmel", FeatureKind::logmel}, {"mfcc", FeatureKind::mfcc}, {"plp", FeatureKind::plp}})
      ->description("Log-mel energies, or cepstra of them; plp: of kaldi")
      ->excludes(config);
  command
      .add_option("--sample-rate", front_end.sample_rate,
                  "Rate that sound is resampled to; 0: that of all sequences")
      ->type_name("HZ")
      ->excludes(config);
  add_named_values(command, "--option",
                   "An option of the front end, by the name that a recipe has for it",
                   [&front_end](const std::string& name, const std::string& value) {
                     front_end.options.emplace_back(name, value);
                   })
      ->excludes(config);
}

void add_cmvn(CLI::App& app, Action& action) {
  const auto options = std::make_shared<CmvnCommandOptions>();
  CLI::App* command =
      app.add_subcommand("cmvn", "Gather the statistics of CMVN from a feed's data, or a dataset");
  CLI::Option* config =
      command
          ->add_option("--feed-config", options->config,
                       "Configuration of a daemon, whose feed says data and front end")
          ->type_name("FILE");
  command->add_option("--feed", options->feed, "Its feed, where it has several")->needs(config);
  add_dataset(*command, *options, config);
  command->add_option("--into", options->into, "File to write")->type_name("FILE")->required();
  command->add_option("--by", options->by, "Scalar field whose values are speakers");
  command->add_option("--threads", options->threads, "Threads; 0: one a core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer(
      "Sums over all frames of the features, without noise, speeds and whatever else is drawn.\n"
      "Example: batchwright cmvn --feed-config batchwrightd.toml --by speaker --into train.cmvn\n"
      "Example: batchwright cmvn /data/train --like kaldi --into train.cmvn");
  command->parse_complete_callback([options] {
    if (options->config.empty() && options->dataset.empty()) {
      throw CLI::RequiredError("DATASET or --feed-config");
    }
  });
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
