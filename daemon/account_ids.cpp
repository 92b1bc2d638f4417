#include "daemon/account_ids.h"

#include <grp.h>
#include <pwd.h>

#include <charconv>
#include <optional>

namespace batchwright {
namespace {

std::optional<unsigned> whole_number(const std::string& text) {
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

Result<unsigned> user_id(const std::string& key, const std::string& user) {
  if (const auto number = whole_number(user)) return *number;
  if (const struct passwd* entry = ::getpwnam(user.c_str())) return entry->pw_uid;
  return Error{ErrorCode::bad_configuration, key + ": there is no user \"" + user + "\""};
}

Result<unsigned> group_id(const std::string& key, const std::string& group) {
  if (const auto number = whole_number(group)) return *number;
  if (const struct group* entry = ::getgrnam(group.c_str())) return entry->gr_gid;
  return Error{ErrorCode::bad_configuration, key + ": there is no group \"" + group + "\""};
}

}  // namespace batchwright
