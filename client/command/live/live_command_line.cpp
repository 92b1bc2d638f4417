#include <memory>

#include "client/command/command_options.h"
#include "client/command/commands.h"

// The options of the commands about live feeds, as command_line.cpp has those of the others.

namespace batchwright {

void add_live_commands(CLI::App& app, Action& action) {
  const auto options = std::make_shared<LiveReplayOptions>();
  CLI::App* live = app.add_subcommand("live", "Look into live feeds");
  live->require_subcommand(1);
  CLI::App* command = live->add_subcommand("replay", "Replay logs of live feeds without a daemon");
  command
      ->add_option("FILE", options->file, "JSON with settings and a log, or a list of such cases")
      ->required();
  command->add_flag("--json", options->json, "Print the cases with what their logs lead to");
  command->footer("Example: batchwright live replay cases.json --json");
  on_chosen(*command, action, options, run_live_replay);
}

}  // namespace batchwright
