#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/command/command_options.h"
#include "storage/features/frontend/front_end.h"

namespace batchwright {

/// The front end's options as they were given: what a convention has comes first, wherever on the
/// command line it is named.
struct FrontEndCall {
  std::string like = "htk";
  FeatureKind features = FeatureKind::logmel;
  std::vector<std::function<void(FrontEndOptions&)>> changes;

  FrontEndOptions options() const {
    auto chosen = front_end_like(like, features);
    if (!chosen) throw CLI::ValidationError("--like", chosen.error().message);
    for (const auto& change : changes) change(*chosen);
    return *chosen;
  }
};

/// The options of `ingest audio` that `call` keeps.
void add_front_end(CLI::App& command, const std::shared_ptr<FrontEndCall>& call);

}  // namespace batchwright
