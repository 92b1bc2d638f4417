#include "daemon/command_line.h"

#include <doctest/doctest.h>

#include <vector>

using namespace batchwright;

namespace {

std::variant<CommandLine, int> parse(std::vector<const char*> words) {
  words.insert(words.begin(), "batchwrightd");
  return parse_command_line(static_cast<int>(words.size()), words.data());
}

}  // namespace

TEST_CASE("daemon: a call names its configuration") {
  const auto call = parse({"--config", "a.toml"});
  REQUIRE(std::holds_alternative<CommandLine>(call));
  CHECK(std::get<CommandLine>(call).config.file == "a.toml");
  CHECK(std::get<CommandLine>(call).config.folder.empty());
  CHECK_FALSE(std::get<CommandLine>(call).check_config);
  CHECK(std::get<CommandLine>(parse({"--check-config", "--config=b.toml"})).check_config);
  const auto placed = parse({"--config", "a.toml", "--folder", "/tmp"});
  REQUIRE(std::holds_alternative<CommandLine>(placed));
  CHECK(std::get<CommandLine>(placed).config.folder == "/tmp");
}

TEST_CASE("daemon: a call says what counts where the configuration says nothing") {
  const auto parsed =
      parse({"--config", "a", "--folder", "/tmp", "--private-page", "--log-level", "warn"});
  REQUIRE(std::holds_alternative<CommandLine>(parsed));
  CHECK(std::get<CommandLine>(parsed).config.private_page);
  CHECK(std::get<CommandLine>(parsed).config.log_level == Severity::warning);
  CHECK(std::get<int>(parse({"--config", "a", "--log-level", "loud"})) == 2);
  CHECK(std::get<int>(parse({"--config", "a", "--private-page"})) == 2);
  CHECK(std::get<int>(parse({"--config", "a", "--for-run"})) == 2);
  CHECK(std::get<int>(parse({"--reload", "1", "--log-level", "warn"})) == 2);
  CHECK(std::get<CommandLine>(parse({"--config", "a", "--check-config", "--for-run"})).for_run);
}

TEST_CASE("daemon: help and version leave nothing to do") {
  CHECK(std::get<int>(parse({"--help"})) == 0);
  CHECK(std::get<int>(parse({"-h"})) == 0);
  CHECK(std::get<int>(parse({"--version"})) == 0);
}

TEST_CASE("daemon: a wrong call is 2") {
  CHECK(std::get<int>(parse({})) == 2);
  CHECK(std::get<int>(parse({"--config"})) == 2);
  CHECK(std::get<int>(parse({"--config", "a", "--reload"})) == 2);
  CHECK(std::get<int>(parse({"--config", "a", "b"})) == 2);
  CHECK(std::get<int>(parse({"--config", "a", "--config", "b"})) == 2);
  CHECK(std::get<int>(parse({"--config", "a", "--check-config=1"})) == 2);
  CHECK(std::get<int>(parse({"--config", "a", "-x"})) == 2);
  CHECK(std::get<int>(parse({"--conf", "a"})) == 2);
  CHECK(std::get<int>(parse({"--config", "a", "--check"})) == 2);
  CHECK(std::get<int>(parse({"--config="})) == 2);
  CHECK(std::get<int>(parse({"--config", ""})) == 2);
  CHECK(std::get<int>(parse({"--config", "--check-config"})) == 2);
  CHECK(std::get<int>(parse({"--reload", "1", "--reload", "2"})) == 2);
  CHECK(std::get<int>(parse({"--config", "a", "--folder", "/tmp", "--folder", "/tmp"})) == 2);
  CHECK(std::get<int>(parse({"--folder", "/tmp"})) == 2);
  CHECK(std::get<int>(parse({"--config", "a", "--folder", "/no/such/folder"})) == 2);
}

TEST_CASE("daemon: a reload names a process, and no configuration") {
  const auto call = parse({"--reload", "4711"});
  REQUIRE(std::holds_alternative<CommandLine>(call));
  CHECK(std::get<CommandLine>(call).reload == 4711);
  CHECK(std::get<int>(parse({"--reload", "0"})) == 2);
  CHECK(std::get<int>(parse({"--reload", "batchwrightd"})) == 2);
  CHECK(std::get<int>(parse({"--reload", "1", "--config", "a"})) == 2);
  CHECK(std::get<int>(parse({"--check-config"})) == 2);
}

TEST_CASE("daemon: what no retry can mend is 2, the rest is 1") {
  CHECK(exit_code(ErrorCode::bad_configuration) == 2);
  CHECK(exit_code(ErrorCode::does_not_fit) == 1);
  CHECK(exit_code(ErrorCode::store_unavailable) == 1);
  CHECK(exit_code(ErrorCode::busy) == 1);
  CHECK(exit_code(ErrorCode::infeasible) == 1);
  CHECK(exit_code(ErrorCode::io_error) == 1);
  CHECK(exit_code(ErrorCode::internal) == 1);
}
