#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>
#include <string>

#include "tests/support/process.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// What bash offers for the last of these words.
std::string offered(const std::string& words) {
  const Finished done = run({"/usr/bin/bash", "-c",
                             "source <(\"$0\" completion bash); COMP_WORDS=(batchwright " + words +
                                 "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _batchwright; "
                                 "echo \"${COMPREPLY[*]}\"",
                             program("batchwright")});
  REQUIRE(done.code == 0);
  return done.out;
}

std::string script_of(const std::string& shell) {
  const Finished done = run({program("batchwright"), "completion", shell});
  REQUIRE_MESSAGE(done.code == 0, done.err);
  return done.out;
}

}  // namespace

TEST_CASE("command: bash completes commands, options, and the words that an option takes") {
  CHECK(offered("ta") == "tail\n");
  CHECK(offered("ingest k") == "kaldi\n");
  CHECK(offered("tail --rank") == "--rank --ranks\n");
  CHECK(offered("plan --order semi") == "semi-sorted\n");
  CHECK(offered("bench --touch ''") == "all header page\n");
  CHECK(offered("completion ''").find("inspect") == std::string::npos);
}

TEST_CASE("command: every shell takes its script as it is") {
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    CAPTURE(shell);
    const std::string script = script_of(shell);
    CHECK(script.find("semi-sorted") != std::string::npos);
    const std::string check = shell == "fish" ? "--no-execute" : "-n";
    const Finished read =
        run({"/usr/bin/bash", "-c", shell + " " + check + " <(printf %s \"$0\")", script});
    CHECK_MESSAGE(read.code == 0, read.err);
  }
}

TEST_CASE("command: a command that is not there is named, with the nearest one that is") {
  const Finished typo = run({program("batchwright"), "tial", "--feed", "train"});
  CHECK(typo.code == 2);
  CHECK(typo.err.starts_with("batchwright: no command \"tial\"; did you mean tail?\n"));
  const Finished far = run({program("batchwright"), "frobnicate"});
  CHECK(far.err.starts_with(
      "batchwright: no command \"frobnicate\"; allowed: ingest gather inspect "));
  const Finished below = run({program("batchwright"), "ingest", "audoi", "x"});
  CHECK(below.err.starts_with("batchwright: no command \"audoi\"; did you mean audio?\n"));
  const Finished option = run({program("batchwright"), "tail", "--fed", "x"});
  CHECK(option.code == 2);
  CHECK(option.err.starts_with("batchwright: "));
}

TEST_CASE("command: help and version are had of each command") {
  CHECK(run({program("batchwright"), "help", "tail"}).out ==
        run({program("batchwright"), "tail", "--help"}).out);
  CHECK(run({program("batchwright"), "help", "ingest", "npy"}).out ==
        run({program("batchwright"), "ingest", "npy", "--help"}).out);
  CHECK(run({program("batchwright"), "tail", "--version"}).out.starts_with("batchwright "));
  for (const char c : run({program("batchwright"), "bench", "--help"}).out)
    CHECK((c == '\n' || c >= ' '));
}

TEST_CASE("command: both programs name the commit of the checkout that they were built from") {
  const std::string command = run({program("batchwright"), "--version"}).out;
  const std::string daemon = run({program("batchwrightd"), "--version"}).out;
  CHECK(daemon == "batchwrightd" + command.substr(std::string("batchwright").size()));
  const Finished commit =
      run({"/usr/bin/env", "git", "-C", BATCHWRIGHT_SOURCE, "rev-parse", "--is-inside-work-tree"});
  if (commit.code != 0 || !std::filesystem::exists(BATCHWRIGHT_SOURCE "/.git")) return;
  // "NAME VERSION COMMIT", with a + after it where files had been changed.
  std::istringstream words(command);
  std::string name;
  std::string version;
  std::string built_from;
  words >> name >> version >> built_from;
  CHECK(built_from.size() >= 12);
  CHECK(built_from.find_first_not_of("0123456789abcdef+") == std::string::npos);
}
