#include "client/options.h"

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace batchwright {
namespace {

Error invalid(const std::string& what) { return {ErrorCode::invalid_argument, what}; }

/// A number from the environment; empty when it is not set.
Result<std::optional<std::uint32_t>> from_environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::optional<std::uint32_t>();
  const std::string_view digits(text);
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    return invalid(std::string("the environment's ") + name + " is \"" + text +
                   "\"; a number from 0 is allowed");
  }
  return std::optional(value);
}

/// One of rank and ranks: as given, else from the environment.
Result<std::optional<std::uint32_t>> chosen(std::int32_t given, const char* option,
                                            const char* variable) {
  if (given == BW_AUTO) return from_environment(variable);
  if (given < 0) {
    return invalid(std::string(option) + " is " + std::to_string(given) +
                   "; BW_AUTO or a number from 0 is allowed");
  }
  return std::optional(static_cast<std::uint32_t>(given));
}

Result<void> choose_rank(const bw_subscribe_options& options, wire::SubscribeT& request) {
  const auto rank = chosen(options.rank, "rank", "RANK");
  if (!rank) return rank.error();
  const auto ranks = chosen(options.ranks, "ranks", "WORLD_SIZE");
  if (!ranks) return ranks.error();
  // Half of the pair would have every process read the same share.
  if (rank->has_value() != ranks->has_value()) {
    return invalid(rank->has_value()
                       ? "rank is given but ranks is not, and WORLD_SIZE is not in the environment"
                       : "ranks is given but rank is not, and RANK is not in the environment");
  }
  request.rank = rank->value_or(0);
  request.ranks = ranks->value_or(1);
  if (request.rank < request.ranks) return {};
  return invalid("rank " + std::to_string(request.rank) + " of " + std::to_string(request.ranks) +
                 " ranks; 0 to ranks - 1 is allowed");
}

}  // namespace

Result<wire::SubscribeT> to_request(const bw_subscribe_options& options) {
  if (options.feed == nullptr || *options.feed == '\0') return invalid("no feed is named");
  if (options.mode != BW_REPLICA && options.mode != BW_SHARDED) {
    return invalid("mode " + std::to_string(options.mode) + "; BW_REPLICA and BW_SHARDED are " +
                   "allowed");
  }
  if (options.window == 0) return invalid("window is 0; at least 1 is needed");
  wire::SubscribeT request;
  request.feed = options.feed;
  request.mode = static_cast<wire::Mode>(options.mode);
  request.window = options.window;
  request.epoch = options.epoch;
  request.step = options.step;
  request.epochs = options.epochs;
  if (options.fingerprint != nullptr) {
    request.expects_fingerprint = true;
    const bw_fingerprint& plan = *options.fingerprint;
    request.fingerprint = std::make_unique<wire::Fingerprint>(plan.data, plan.settings, plan.seed);
  }
  if (options.mode == BW_SHARDED) {
    if (auto ranked = choose_rank(options, request); !ranked) return ranked.error();
  }
  return request;
}

}  // namespace batchwright
