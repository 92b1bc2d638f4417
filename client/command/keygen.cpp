#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <boost/json/object.hpp>
#include <cerrno>
#include <cstring>

#include "client/command/commands.h"
#include "client/command/exit_code.h"
#include "client/command/keys.h"
#include "client/command/output.h"

namespace batchwright {
namespace {

/// Writes one line to a new file. Errors: invalid_argument (it is there already), io_error.
Result<void> write_new(const std::string& path, const std::string& key, mode_t mode) {
  const auto failed = [&path] {
    const auto code = errno == EEXIST ? ErrorCode::invalid_argument : ErrorCode::io_error;
    return Error{code, fmt::format("{}: {}", path, std::strerror(errno))};
  };
  // O_EXCL: a key is never written over, as all that trust it would be locked out. The mode goes
  // with the creation, so that at no moment others can read a secret.
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (file < 0) return failed();
  const std::string line = key + "\n";
  const bool written =
      ::write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size()) &&
      ::fsync(file) == 0;
  // Before close(), which may change errno.
  const Error why = failed();
  if (::close(file) == 0 && written) return {};
  ::unlink(path.c_str());
  return why;
}

}  // namespace

int run_keygen(const KeygenOptions& options) {
  const auto keys = make_key_pair();
  if (!keys) return fail(keys.error());
  const std::string secret = options.into.string() + ".secret";
  const std::string open = options.into.string() + ".public";
  if (const auto done = write_new(open, keys->public_key, 0644); !done) return fail(done.error());
  if (const auto done = write_new(secret, keys->secret_key, 0600); !done) {
    // Half a pair is of no use, and would stop the next attempt.
    ::unlink(open.c_str());
    return fail(done.error());
  }
  if (options.json) {
    boost::json::object line;
    line["public_key"] = keys->public_key;
    line["public_key_file"] = open;
    line["secret_key_file"] = secret;
    print_json_line(line);
  } else {
    fmt::print("public key {}\nwritten to {}; its secret to {}, for its owner alone\n",
               keys->public_key, open, secret);
  }
  return kDone;
}

}  // namespace batchwright
