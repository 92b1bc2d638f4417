#include "client/command/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <memory>

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

void add_inspect(CLI::App& app, Action& action) {
  const auto options = std::make_shared<InspectOptions>();
  CLI::App* command = app.add_subcommand("inspect", "Show what a dataset holds");
  command->add_option("DATASET", options->dataset, "Folder of the dataset")->required();
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer("Example: batchwright inspect /data/train --json");
  on_chosen(*command, action, options, run_inspect);
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
  command->add_option("--epoch", options->epoch, "Epoch to plan, from 0");
  command->add_flag("--json", options->json, "Print one JSON object");
  command->add_flag("--batches", options->batches, "Print the batches, by ordinal from 0");
  add_plan_settings(*command, options);
  command->footer(
      "Example: batchwright plan --dataset /data/train --order semi-sorted --cut dynamic");
  on_chosen(*command, action, options, run_plan);
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  CLI::App app("Builds, inspects and serves batches of variable-length sequences.", "batchwright");
  app.set_version_flag("--version", "batchwright " BATCHWRIGHT_VERSION);
  app.require_subcommand(1);
  Action action;
  add_inspect(app, action);
  add_plan(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kWrongInput;  // help and version come as "errors" of 0
  }
  return action();
}

}  // namespace batchwright
