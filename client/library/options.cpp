#include "client/library/options.h"

#include <errno.h>
#include <fmt/core.h>
#include <sys/un.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "client/library/c_values.h"
#include "client/library/link/zmq_transport.h"

namespace batchwright {
namespace {

Error invalid(const std::string& what) { return {ErrorCode::invalid_argument, what}; }

/// A number from the environment; empty when it is not set.
Result<std::optional<std::uint32_t>> from_environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::optional<std::uint32_t>();
  const auto value = parse_whole<std::uint32_t>(text);
  if (!value) {
    return invalid(
        fmt::format("the environment's {} is \"{}\"; a number from 0 is allowed", name, text));
  }
  return value;
}

/// One of rank and ranks: as given, otherwise from the environment.
Result<std::optional<std::uint32_t>> chosen(std::int32_t given, const char* option,
                                            const char* variable) {
  if (given == BW_AUTO) return from_environment(variable);
  if (given < 0) {
    return invalid(fmt::format("{} is {}; BW_AUTO or a number from 0 is allowed", option, given));
  }
  return std::optional(static_cast<std::uint32_t>(given));
}

/// The environment's word on how many ranks of a job are on this host; 0: it has none, or speaks of
/// another job. Slurm says "4(x2)" where all hosts have four, and lists them where they differ; per
/// node it says what the job asked for, which a step need not have.
std::uint32_t ranks_here(std::uint32_t ranks) {
  for (const char* name : {"LOCAL_WORLD_SIZE", "SLURM_STEP_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE",
                           "OMPI_COMM_WORLD_LOCAL_SIZE"}) {
    const char* text = std::getenv(name);
    if (text == nullptr) continue;
    std::string_view rest(text);
    const auto value = take_whole<std::uint32_t>(rest);
    const bool alike = rest.empty() || (rest.starts_with("(x") && rest.find(',') == rest.npos);
    if (value && alike && *value != 0 && *value <= ranks) return *value;
  }
  return 0;
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
  request.ranks_here = options.ranks_here != 0 ? options.ranks_here : ranks_here(request.ranks);
  if (request.ranks_here > request.ranks) {
    return invalid(fmt::format("ranks_here is {} of {} ranks; it is at most these",
                               request.ranks_here, request.ranks));
  }
  if (request.rank < request.ranks) return {};
  return invalid(
      fmt::format("rank {} of {} ranks; 0 to ranks - 1 is allowed", request.rank, request.ranks));
}

constexpr std::int64_t kLongestMs = 365LL * 24 * 3600 * 1000;

/// The keys of CURVE; empty when none is given.
Result<std::optional<CurveKeys>> to_keys(const bw_connect_options& options) {
  struct Given {
    const char* name;
    const char* text;
  };
  const Given given[] = {{"server_key", options.server_key},
                         {"public_key", options.public_key},
                         {"secret_key", options.secret_key}};
  const auto missing = [](const Given& key) { return key.text == nullptr; };
  if (std::all_of(std::begin(given), std::end(given), missing)) return std::optional<CurveKeys>();
  for (const Given& key : given) {
    if (missing(key)) {
      return invalid(fmt::format(
          "{} is not given; server_key, public_key and secret_key go together", key.name));
    }
    if (std::strlen(key.text) != kCurveKeyText) {
      return invalid(fmt::format("{} has {} characters; Z85 text of 40 is allowed", key.name,
                                 std::strlen(key.text)));
    }
  }
  CurveKeys keys{options.server_key, options.public_key, options.secret_key};
  if (auto sound = check_keys(keys); !sound) return sound.error();
  return std::optional(std::move(keys));
}

Result<void> check_mode(const bw_subscribe_options& options) {
  if (options.mode != BW_REPLICA && options.mode != BW_SHARDED && options.mode != BW_QUEUE) {
    return invalid(
        fmt::format("mode {}; BW_REPLICA, BW_SHARDED and BW_QUEUE are allowed", options.mode));
  }
  if (options.writable > 1) {
    return invalid(fmt::format("writable is {}; 0 and 1 are allowed", options.writable));
  }
  if (options.worst_first > BW_MAX_WORST_FIRST) {
    return invalid(fmt::format("worst_first is {}; 0 to {} is allowed", options.worst_first,
                               BW_MAX_WORST_FIRST));
  }
  if (options.worst_first != 0 && options.mode == BW_QUEUE) {
    return invalid("worst_first goes with BW_REPLICA and BW_SHARDED: a queue has no first batch");
  }
  if (options.until_epoch != 0 && options.mode != BW_QUEUE) {
    return invalid("until_epoch goes with BW_QUEUE: other subscriptions count their own epochs");
  }
  return {};
}

/// A relative path of a socket as an absolute one, for the program may change its folder and the
/// daemon come back. It stays as it is where its folder is not there, which is told later, or where
/// the absolute one is too long for a socket.
std::string absolute_endpoint(const std::string& endpoint) {
  if (!endpoint.starts_with(kIpc)) return endpoint;
  const std::filesystem::path path(endpoint.substr(kIpc.size()));
  std::error_code error;
  if (path.empty() || path.is_absolute() || path.native().front() == '@') return endpoint;
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  if (!std::filesystem::is_directory(folder, error)) return endpoint;
  const std::string whole = std::filesystem::absolute(path, error).string();
  const bool fits = whole.size() + kArenaSuffix.size() < sizeof sockaddr_un{}.sun_path;
  return !error && fits ? std::string(kIpc) + whole : endpoint;
}

}  // namespace

Result<ConnectSettings> to_settings(const bw_connect_options& options) {
  if (options.timeout_ms < 1) return invalid("timeout_ms is below 1");
  if (options.reconnect_ms < 0) return invalid("reconnect_ms is below 0");
  if (options.inline_batches != 0 && options.inline_batches != 1) {
    return invalid(
        fmt::format("inline_batches is {}; 0 and 1 are allowed", options.inline_batches));
  }
  auto keys = to_keys(options);
  if (!keys) return keys.error();
  ConnectSettings settings;
  settings.program = options.program != nullptr ? options.program : program_invocation_short_name;
  settings.limit = std::chrono::milliseconds(std::min(options.timeout_ms, kLongestMs));
  settings.reconnect = std::chrono::milliseconds(std::min(options.reconnect_ms, kLongestMs));
  settings.always_inline = options.inline_batches == 1;
  settings.keys = std::move(*keys);
  return settings;
}

Result<std::vector<std::string>> to_endpoints(const std::string& list) {
  std::vector<std::string> endpoints;
  for (std::size_t start = 0; start <= list.size();) {
    const std::size_t end = std::min(list.find(',', start), list.size());
    std::string endpoint = absolute_endpoint(list.substr(start, end - start));
    if (endpoint.empty()) {
      return invalid(fmt::format("\"{}\" names an endpoint that is empty", list));
    }
    if (std::find(endpoints.begin(), endpoints.end(), endpoint) != endpoints.end()) {
      return invalid(
          fmt::format("endpoint {} is named twice: its batches would come twice", endpoint));
    }
    endpoints.push_back(std::move(endpoint));
    start = end + 1;
  }
  return endpoints;
}

Result<wire::SubscribeT> to_request(const bw_subscribe_options& options) {
  if (options.feed == nullptr || *options.feed == '\0') return invalid("no feed is named");
  if (auto sound = check_mode(options); !sound) return sound.error();
  if (options.window == 0) return invalid("window is 0; at least 1 is needed");
  wire::SubscribeT request;
  request.feed = options.feed;
  request.mode = static_cast<wire::Mode>(options.mode);
  request.window = options.window;
  request.epoch = options.epoch;
  request.step = options.step;
  request.epochs = options.epochs;
  request.worst_first = options.worst_first;
  request.until_epoch = options.until_epoch;
  if (options.terms != nullptr) request.terms = options.terms;
  if (options.fingerprint != nullptr) {
    request.expects_fingerprint = true;
    const Fingerprint plan = from_c(*options.fingerprint);
    request.fingerprint = std::make_unique<wire::Fingerprint>(to_wire(plan));
  }
  if (options.mode == BW_SHARDED) {
    if (auto ranked = choose_rank(options, request); !ranked) return ranked.error();
  }
  return request;
}

}  // namespace batchwright
