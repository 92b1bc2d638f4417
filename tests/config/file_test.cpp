// What a configuration is read from, and where the files lie that it names.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>

#include "daemon/config/config.h"
#include "tests/config/texts.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;
namespace fs = std::filesystem;

namespace {

std::string parts(std::size_t count, const std::string& part = "a") {
  std::string key = part;
  for (std::size_t i = 1; i < count; ++i) key += "." + part;
  return key;
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Why a file is refused; empty where it is not.
std::string refusal(const fs::path& file) {
  const auto config = load_config(file);
  if (config) return "";
  CHECK(config.error().code == ErrorCode::bad_configuration);
  return config.error().message;
}

}  // namespace

TEST_CASE("config: a key of very many parts is refused with its line, wherever it stands") {
  const std::string deep = parts(100'000);
  const std::string found = "a key: found more than 64 dots; allowed: up to 64";
  CHECK(fault_of("\n" + deep + " = 1\n") == "x.toml:2: " + found);
  CHECK(fault_of("[" + deep + "]\n") == "x.toml:1: " + found);
  CHECK(fault_of("[[" + deep + "]]\n") == "x.toml:1: " + found);
  CHECK(fault_of("x = { " + deep + " = 1 }\n") == "x.toml:1: " + found);
  CHECK(fault_of("x = [{ y = 1 }, { " + deep + " = 1 }]\n") == "x.toml:1: " + found);
  CHECK(fault_of(parts(100'000, "\"a\"") + " = 1\n") == "x.toml:1: " + found);
  CHECK(fault_of(parts(100'000, "'a' ") + " = 1\n") == "x.toml:1: " + found);
  CHECK(fault_of("x = \"\"\"a\"\"\"\"\"\n" + deep + " = 1\n") == "x.toml:2: " + found);
  CHECK(fault_of("x = \"\\\"\" # \"\n" + deep + " = 1\n") == "x.toml:2: " + found);
  CHECK(fault_of("x = '''\n'\n'''\n" + deep + " = 1\n") == "x.toml:4: " + found);
}

TEST_CASE("config: dots of a text or a comment are no key's") {
  const std::string dots(1000, '.');
  for (const std::string& value :
       {"\"" + dots + "\"", "'" + dots + "'", "\"\"\"" + dots + "\n" + dots + "\"\"\"",
        "'''" + dots + "\n" + dots + "'''", "\"x\" # " + dots}) {
    CHECK_FALSE(says(fault_of(kFeed + "ledger = " + value + "\n"), "dots"));
  }
  CHECK_FALSE(says(fault_of(kFeed + parts(65) + " = 1\n"), "dots"));
}

TEST_CASE("config: what is no file is refused, and never waited for") {
  const TemporaryFolder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(says(refusal(folder / "pipe"), "found a pipe; allowed: a file, or /dev/stdin"));
  CHECK(says(refusal(folder.path()), "found a folder; allowed"));
  CHECK(says(refusal("/dev/zero"), "found a device; allowed"));
  CHECK(says(refusal(folder / "none"), "No such file"));
}

TEST_CASE("config: a pipe that was handed over is read, once") {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  REQUIRE(::write(ends[1], kFeed.data(), kFeed.size()) == static_cast<ssize_t>(kFeed.size()));
  ::close(ends[1]);
  const fs::path file = "/dev/fd/" + std::to_string(ends[0]);
  CHECK(is_read_once(file));
  const auto config = load_config(file);
  REQUIRE(config);
  CHECK(config->feeds.front().served.name == "train");
  ::close(ends[0]);
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << kFeed;
  CHECK_FALSE(is_read_once(folder / "file"));
  CHECK_FALSE(is_read_once("/dev/stdout/none"));
}

TEST_CASE("config: a configuration knows which file its order file is") {
  const TemporaryFolder folder;
  const fs::path order = folder / "order";
  std::ofstream(folder / "file") << kFeed << "[feed.plan]\norder = \"file\"\norder_file = \""
                                 << order.string() << "\"\n";
  const auto state = [&] {
    const auto config = load_config(folder / "file");
    REQUIRE(config);
    return config->feeds.front().order_file_state;
  };
  CHECK(state().empty());
  std::ofstream(order) << "#0\n";
  const std::string first = state();
  CHECK_FALSE(first.empty());
  CHECK(state() == first);
  std::ofstream(order, std::ios::app) << "#1\n";
  const std::string longer = state();
  CHECK(longer != first);
  fs::remove(order);
  CHECK(state().empty());
}

TEST_CASE("config: a path is resolved through links, be its end there or not") {
  const TemporaryFolder folder;
  const fs::path real = fs::canonical(folder.path());
  fs::create_directory(real / "a");
  fs::create_symlink("a", real / "b");
  fs::create_symlink("b/none", real / "dangling");
  CHECK(resolved(real / "b" / ".." / "b" / "x") == real / "a" / "x");
  CHECK(resolved(real / "dangling") == real / "a" / "none");
  fs::create_symlink("loop", real / "loop");
  static_cast<void>(resolved(real / "loop"));  // it ends
  const fs::path before = fs::current_path();
  fs::current_path(real);
  CHECK(resolved("b/x") == real / "a" / "x");
  CHECK(resolved("none") == real / "none");
  fs::current_path(before);
}

TEST_CASE("config: two feeds never have one journal, be it named in two ways") {
  const TemporaryFolder folder;
  const fs::path real = fs::canonical(folder.path());
  fs::create_symlink("journal", real / "link");
  const auto with = [&](const std::string& second) {
    std::ofstream(real / "file") << kFeed << "journal = \"" << (real / "link").string()
                                 << "\"\n[[feed]]\nname = \"other\"\ndataset = \"/d\"\njournal = \""
                                 << second << "\"\n";
    return real / "file";
  };
  const std::string why = refusal(with((real / "x" / ".." / "journal").string()));
  CHECK(says(why, "feed other: journal: found "));
  CHECK(says(why, "the journal of feed train"));
  const auto config = load_config(with((real / "other").string()));
  REQUIRE(config);
  CHECK(config->feeds.front().served.journal == real / "journal");
}

TEST_CASE("config: a record is one feed's, and no feed's dataset") {
  const TemporaryFolder folder;
  const fs::path real = fs::canonical(folder.path());
  fs::create_symlink("run", real / "link");
  const auto with = [&](const std::string& feed, const std::string& record) {
    std::ofstream(real / "file") << feed << kLive << "record = \"" << record << "\"\n";
    return real / "file";
  };
  const std::string link = (real / "link").string();
  const std::string run = (real / "run").string();
  CHECK(says(refusal(with("[[feed]]\nname = \"a\"\ndataset = \"" + run + "\"\n", link)),
             "feed live: live.record: found " + link + ", which is " + run +
                 ", the dataset of feed a; allowed: one that no other feed has"));
  std::string other = kLive + "record = \"" + run + "\"\n";
  other.replace(other.find("\"live\""), 6, "\"b\"");
  CHECK(says(refusal(with(other, link)), "the live.record of feed b; allowed: "));
  const auto config = load_config(with("", link));
  REQUIRE(config);
  CHECK(config->feeds.front().served.live->record == run);
}

TEST_CASE("config: a spool is one feed's, no feed's dataset, and no record") {
  const TemporaryFolder folder;
  const fs::path real = fs::canonical(folder.path());
  fs::create_symlink("spool", real / "link");
  const std::string link = (real / "link").string();
  const std::string spool = (real / "spool").string();
  const auto with = [&](const std::string& feeds, const std::string& keys) {
    std::ofstream(real / "file") << feeds << kLive << keys;
    return real / "file";
  };
  const auto other = [&](const std::string& key) {
    std::string text = kLive + key + " = \"" + spool + "\"\n";
    return text.replace(text.find("\"live\""), 6, "\"b\"");
  };
  const std::string ours = "spool = \"" + link + "\"\n";
  const std::string found = "live.spool: found " + link + ", which is " + spool + ", the ";
  CHECK(says(refusal(with("[[feed]]\nname = \"a\"\ndataset = \"" + spool + "\"\n", ours)),
             found + "dataset of feed a; allowed: one that no other feed has"));
  CHECK(says(refusal(with(other("record"), ours)), found + "live.record of feed b; allowed: "));
  CHECK(says(refusal(with(other("spool"), ours)), found + "live.spool of feed b; allowed: "));
  CHECK(says(refusal(with("", ours + "record = \"" + spool + "\"\n")),
             found + "live.record of feed live; allowed: "));
  CHECK(load_config(with("", ours)));
}
