#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "formats/formats.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using batchwright::test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

/// A socket that is bound; it listens only where it is to.
Descriptor bound_socket(const std::string& path, bool listens) {
  Descriptor made(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  path.copy(where.sun_path, sizeof where.sun_path - 1);
  REQUIRE(::bind(made.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0);
  if (listens) REQUIRE(::listen(made.get(), 1) == 0);
  return made;
}

}  // namespace

TEST_CASE("formats: a path for a socket has one claim at a time, whose lock goes with it") {
  const TemporaryFolder folder;
  const std::string path = folder / "s";
  {
    const auto claim = claim_socket_path(path);
    REQUIRE(claim);
    REQUIRE(*claim != nullptr);
    // Bound and not listening, as a daemon is that has just begun: it looks dead, and is not.
    const Descriptor starting = bound_socket(path, false);
    const auto second = claim_socket_path(path);
    REQUIRE_FALSE(second);
    CHECK(second.error().code == ErrorCode::already_exists);
    CHECK(second.error().message.find("another daemon answers there") != std::string::npos);
    CHECK(fs::exists(path));
  }
  CHECK_FALSE(fs::exists(path + ".lock"));
  CHECK(claim_socket_path(path));
}

TEST_CASE("formats: a claim removes what a killed daemon left, and nothing that answers") {
  const TemporaryFolder folder;
  const std::string path = folder / "s";
  std::ofstream(path + ".lock") << "left by one that was killed";
  { const Descriptor dead = bound_socket(path, true); }
  REQUIRE(fs::exists(path));
  REQUIRE(claim_socket_path(path));
  CHECK_FALSE(fs::exists(path));
  // A program that knows no claims.
  const Descriptor living = bound_socket(path, true);
  CHECK_FALSE(claim_socket_path(path));
  CHECK(fs::exists(path));
}

TEST_CASE("formats: a socket's file is removed by its owner alone") {
  const TemporaryFolder folder;
  const std::string path = folder / "s";
  const Descriptor mine = bound_socket(path, true);
  const SocketFile file(path);
  CHECK(file.is_there());
  fs::rename(path, folder / "elsewhere");
  CHECK_FALSE(file.is_there());
  const Descriptor theirs = bound_socket(path, true);
  CHECK_FALSE(file.is_there());
  file.remove();
  CHECK(fs::exists(path));
  fs::rename(folder / "elsewhere", path);
  file.remove();
  CHECK_FALSE(fs::exists(path));
  const SocketFile none(path);
  CHECK_FALSE(none.is_there());
}
