#include "daemon/delivery/wire/curve.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <string_view>

#include "daemon/delivery/wire/frame_socket.h"

namespace batchwright {
namespace {

using Path = std::filesystem::path;

Error bad(const Path& path, const std::string& what) {
  return {ErrorCode::bad_configuration, path.string() + what};
}

bool is_key(std::string_view text) {
  static constexpr std::string_view kZ85 =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
  return text.size() == kCurveKeyText && text.find_first_not_of(kZ85) == std::string_view::npos;
}

/// What is left of a line. A key may have a # of its own, so a comment begins a line or follows
/// white space.
std::string_view without_comment(std::string_view line) {
  const auto first = line.find_first_not_of(" \t\r");
  if (first == std::string_view::npos || line[first] == '#') {
    const std::string_view whole = first == std::string_view::npos ? "" : line.substr(first);
    return is_key(whole) ? whole : "";
  }
  line.remove_prefix(first);
  return line.substr(0, line.find_first_of(" \t\r"));
}

/// Calls `take` for each key. Errors: bad_configuration.
Result<void> read_keys(const Path& path, const std::function<void(std::string)>& take) {
  constexpr std::size_t kMostBytes = std::size_t{64} << 20;  // a million keys and more
  const auto text = file_text(path, kMostBytes + 1);
  if (!text) return Error{ErrorCode::bad_configuration, text.error().message};
  if (text->size() > kMostBytes) return bad(path, ": larger than 64 MiB, and so no list of keys");
  std::size_t number = 0;
  for (const std::string_view line : split_lines(*text)) {
    ++number;
    const std::string_view key = without_comment(line);
    if (key.empty()) continue;
    if (!is_key(key)) {
      return bad(path, fmt::format(":{}: found {} characters that are no key; allowed: a key of 40 "
                                   "characters in Z85 at the start of a line, # before comments",
                                   number, key.size()));
    }
    take(std::string(key));
  }
  return {};
}

Result<void> check_private(const Path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return bad(path, fmt::format(": cannot be read: {}", std::strerror(errno)));
  }
  const auto mode = static_cast<unsigned>(status.st_mode) & 07777U;
  if ((mode & 077U) == 0) return {};
  return bad(path, fmt::format(": found mode {:04o}, so that others than its owner may use this "
                               "secret key; allowed: 0600 or less (chmod 600)",
                               mode));
}

Result<std::string> read_secret_key(const Path& path) {
  if (auto sound = check_private(path); !sound) return sound.error();
  std::string key;
  std::size_t keys = 0;
  auto read = read_keys(path, [&](std::string found) {
    key = std::move(found);
    ++keys;
  });
  if (!read) return read.error();
  if (keys != 1) return bad(path, fmt::format(": found {} keys; allowed: one", keys));
  if (auto sound = public_key_of(key); !sound) {
    return bad(path, fmt::format(": {}", sound.error().message));
  }
  return key;
}

}  // namespace

Result<ServerKeys> load_server_keys(const Path& secret_key_file, const Path& authorized_keys_file) {
  ServerKeys keys;
  if (!secret_key_file.empty()) {
    auto secret = read_secret_key(secret_key_file);
    if (!secret) return secret.error();
    keys.secret_key = std::move(*secret);
  }
  if (!authorized_keys_file.empty()) {
    auto& authorized = keys.authorized.emplace();
    auto read = read_keys(authorized_keys_file,
                          [&](std::string key) { authorized.insert(std::move(key)); });
    if (!read) return read.error();
  }
  return keys;
}

}  // namespace batchwright
