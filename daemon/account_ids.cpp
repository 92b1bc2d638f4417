#include "daemon/account_ids.h"

#include <fmt/core.h>
#include <grp.h>
#include <pwd.h>

#include <cerrno>
#include <cstring>

namespace batchwright {
namespace {

/// Whether the accounts' service is away (a directory server that is not up yet), other than that
/// there is no such account. getpwnam(3) names the codes of the latter.
bool cannot_say(int code) {
  return code != 0 && code != ENOENT && code != ESRCH && code != EBADF && code != EPERM;
}

/// io_error, which a supervisor retries: the name may resolve once the service is back.
Error unknown(const std::string& key, const char* what, const std::string& name) {
  return {ErrorCode::io_error,
          fmt::format("{}: {} \"{}\": {}", key, what, name, std::strerror(errno))};
}

}  // namespace

Result<unsigned> user_id(const std::string& key, const std::string& user) {
  if (const auto number = parse_whole<unsigned>(user)) return *number;
  // A name that is not found may leave errno as it is.
  errno = 0;
  if (const struct passwd* entry = ::getpwnam(user.c_str())) return entry->pw_uid;
  if (cannot_say(errno)) return unknown(key, "user", user);
  return Error{ErrorCode::bad_configuration, fmt::format("{}: there is no user \"{}\"", key, user)};
}

Result<unsigned> group_id(const std::string& key, const std::string& group) {
  if (const auto number = parse_whole<unsigned>(group)) return *number;
  errno = 0;
  if (const struct group* entry = ::getgrnam(group.c_str())) return entry->gr_gid;
  if (cannot_say(errno)) return unknown(key, "group", group);
  return Error{ErrorCode::bad_configuration,
               fmt::format("{}: there is no group \"{}\"", key, group)};
}

}  // namespace batchwright
