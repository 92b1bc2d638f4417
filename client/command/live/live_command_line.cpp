#include <memory>

#include "client/command/command_options.h"
#include "client/command/commands.h"

// The options of the commands about live feeds, as command_line.cpp has those of the others.

namespace batchwright {
namespace {

void add_replay(CLI::App& app, Action& action) {
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

void add_push(CLI::App& app, Action& action) {
  const auto options = std::make_shared<PushOptions>();
  CLI::App* command = app.add_subcommand("push", "Push stored sequences into a live feed");
  command->add_option("--feed", options->feed, "Name of the live feed")->required();
  auto* input = command->add_option(
      "INPUT", options->input,
      "Folder of a dataset, or a file of JSON objects, one a line; - for standard input");
  add_endpoint(*command, options->endpoint, kUsualEndpoint);
  add_keys(*command, options->keys);
  command
      ->add_option("--name", options->name,
                   "Of the producer: with the same name a second call pushes what is missing")
      ->check(CLI::Validator(
          [](std::string& name) {
            return name.empty() || name.size() > 64
                       ? fmt::format("found {} bytes, allowed: 1 to 64", name.size())
                       : std::string();
          },
          ""));
  auto* end = command->add_flag("--end", options->end,
                                "End the feed behind them: no more will come from any producer");
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer(
      "An object has the feed's fields by name, as nested lists of numbers, a scalar as a number,\n"
      "and where wanted key, number, version, version_newest, group, group_size, weight and of. "
      "The\n"
      "number of a sequence is its place in the dataset or file, from 0. Without a version it is\n"
      "the last that was announced.\n"
      "Example: batchwright push --feed rollouts --name first old.jsonl");
  command->callback([&action, options, input, end] {
    if (input->count() == 0 && end->count() == 0) {
      throw CLI::RequiredError("INPUT, or --end");
    }
    action = [options] { return run_push(*options); };
  });
}

void add_forward(CLI::App& app, Action& action) {
  const auto options = std::make_shared<ForwardOptions>();
  CLI::App* command =
      app.add_subcommand("forward", "Push the sequences of another daemon's feed into a live feed");
  command->add_option("--from", options->from, "Endpoint of the daemon that serves the feed")
      ->check(an_endpoint())
      ->required();
  command->add_option("--feed", options->feed, "Name of its feed")->required();
  command->add_option("--to", options->to, "Name of the live feed")->required();
  add_endpoint(*command, options->endpoint, kUsualEndpoint)
      ->description("Of the live feed's daemon");
  command->add_option("--server-key", options->from_key,
                      "Public key of the daemon of --from, 40 characters, for tcp://");
  command->add_option("--to-server-key", options->to_key,
                      "Public key of the live feed's daemon, for tcp://");
  command
      ->add_option("--key-file", options->key_file, "Own secret key, as keygen wrote it, for both")
      ->type_name("FILE");
  command->add_option("--name", options->name,
                      "Of the producer, the same after a restart; by default FEED@HOST of --from");
  command->add_option("--epochs", options->epochs, "Epochs to forward, 0 for all that there are")
      ->check(from_zero())
      ->capture_default_str();
  command
      ->add_option("--epoch", options->epoch,
                   "Epoch to start with; the same in each call with this name")
      ->check(from_zero())
      ->capture_default_str();
  command->add_option("--window", options->window, "Batches in flight")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print one JSON object at the end");
  command->footer(
      "A sequence's number is its place in the feed's plan, so that a call that comes after "
      "another\n"
      "goes on behind it. Restarts of either daemon are waited for.\n"
      "Example: batchwright forward --from tcp://shard3:9000 --feed train --to examples");
  on_chosen(*command, action, options, run_forward);
}

}  // namespace

void add_live_commands(CLI::App& app, Action& action) {
  add_replay(app, action);
  add_push(app, action);
  add_forward(app, action);
}

}  // namespace batchwright
