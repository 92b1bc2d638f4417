#include "client/command/keys.h"

#include <fmt/core.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>

namespace batchwright {

std::string endpoint_of_environment() {
  const char* const named = std::getenv("BATCHWRIGHT_ENDPOINT");
  return named == nullptr ? "" : named;
}

std::string default_endpoint() {
  std::string named = endpoint_of_environment();
  return named.empty() ? BW_DEFAULT_ENDPOINT : named;
}

Result<KeyPair> own_keys(const KeyOptions& keys) {
  if (keys.server_key.empty()) return KeyPair{};
  // CURVE takes a pair of every client, also where the daemon lets any in.
  if (keys.key_file.empty()) return make_key_pair();
  std::ifstream file(keys.key_file);
  std::string key;
  if (!std::getline(file, key)) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{}: cannot be read", keys.key_file.string())};
  }
  return pair_of(key);
}

Result<client::ConnectOptions> connect_options(const KeyOptions& keys) {
  auto own = own_keys(keys);
  if (!own) return own.error();
  client::ConnectOptions options;
  options.server_key = keys.server_key;
  options.public_key = std::move(own->public_key);
  options.secret_key = std::move(own->secret_key);
  return options;
}

}  // namespace batchwright
