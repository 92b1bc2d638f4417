#include "client/command/command_line.h"

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>

#include "client/command/commands.h"
#include "client/command/exit_code.h"

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

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  CLI::App app("Builds, inspects and serves batches of variable-length sequences.", "batchwright");
  app.set_version_flag("--version", "batchwright " BATCHWRIGHT_VERSION);
  app.require_subcommand(1);
  Action action;
  add_inspect(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kWrongInput;  // help and version come as "errors" of 0
  }
  return action();
}

}  // namespace batchwright
