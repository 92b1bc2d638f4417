#include <memory>

#include "client/command/command_options.h"
#include "client/command/commands.h"

// The commands of jobs on one host or many: run, check.

namespace batchwright {
namespace {

void add_run(CLI::App& app, Action& action) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App* command =
      app.add_subcommand("run", "Run a command beside a daemon that ends with its last user");
  command->add_option("--config", options->config, "The daemon's configuration")
      ->type_name("FILE")
      ->required();
  command->add_option("--daemon", options->daemon, "The daemon's program")->type_name("FILE");
  command
      ->add_option("--textfile", options->textfile,
                   "Folder of node_exporter's textfile collector, for the daemon's metrics")
      ->check(CLI::ExistingDirectory)
      ->type_name("FOLDER");
  command->add_option("COMMAND", options->command, "Command and its arguments, after --")
      ->required();
  command->footer(
      "Starts the daemon, or joins one that another run started with the same configuration, "
      "waits\n"
      "until it listens, and sets BATCHWRIGHT_ENDPOINT. The exit code is the command's. On a "
      "terminal\n"
      "it prints where the daemon's page is. The daemon logs warnings, unless the configuration "
      "has\nlog_level.\n"
      "Example: srun -N4 batchwright run --config train.toml -- python3 train.py");
  on_chosen(*command, action, options, run_run);
}

void add_check(CLI::App& app, Action& action) {
  const auto options = std::make_shared<CheckOptions>();
  CLI::App* command =
      app.add_subcommand("check", "Check that daemons serve the same data and plan");
  command
      ->add_option("DAEMON", options->daemons,
                   "Endpoints, or HOST:PORT for tcp://; by default BATCHWRIGHT_ENDPOINT")
      ->default_str("");
  command->add_option("--feed", options->feed, "Of one feed only");
  command->add_option("--epoch", options->epoch, "Epoch whose plan is compared")
      ->check(from_zero())
      ->capture_default_str();
  command
      ->add_option_function<double>(
          "--timeout",
          [options](double seconds) { options->timeout = std::chrono::duration<double>(seconds); },
          "How long to wait for each answer")
      ->type_name("SECONDS")
      ->transform(a_time(0.1, 3600.0))
      ->default_str("10");
  add_keys(*command, options->keys);
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer(
      "Each feed is compared with what most daemons serve; the exit code is 1 where one differs, "
      "lacks\n"
      "the feed, or does not answer.\n"
      "Example: batchwright check n1:5555 n2:5555 n3:5555 --feed train");
  on_chosen(*command, action, options, run_check);
}

}  // namespace

void add_job_commands(CLI::App& app, Action& action) {
  add_run(app, action);
  add_check(app, action);
}

}  // namespace batchwright
