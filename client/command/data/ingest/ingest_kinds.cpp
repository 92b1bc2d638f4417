#include <memory>
#include <utility>

#include "client/command/data/ingest/ingest_kind.h"
#include "client/command/exit_code.h"

namespace batchwright {
namespace {

constexpr const IngestKind* kKinds[] = {&kIngestAudio, &kIngestNpy, &kIngestNpz, &kIngestKaldi,
                                        &kIngestJsonl};

void add_kind(CLI::App& ingest, const IngestKind& kind, Action& action) {
  CLI::App* command = ingest.add_subcommand(kind.name, kind.help);
  // Shared with the callback: CLI11 writes into it while it parses, after this function.
  const auto options = std::make_shared<IngestOptions>();
  auto open = kind.add(*command, options);
  command->footer(kind.footer);
  command->callback([&action, &kind, options, open = std::move(open)] {
    action = [&kind, options, open] {
      auto input = open();
      if (!input) return fail(input.error());
      return run_ingest(*options, kind.name, std::move(*input));
    };
  });
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
  for (const IngestKind* kind : kKinds) add_kind(*ingest, *kind, action);
  add_gather(app, action);
}

}  // namespace batchwright
