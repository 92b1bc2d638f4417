#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "daemon/config/config.h"
#include "tests/config/texts.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

TEST_CASE("config: a fault tells place, key, what was found and what is allowed") {
  CHECK(plan_fault("order = \"shuffled\"") ==
        "x.toml:5:1: feed.plan.order: found \"shuffled\"; allowed: random sorted bucket "
        "bucket-span bucket-optimal alternated semi-sorted file");
  CHECK(daemon_fault("memory = \"lots\"") ==
        "x.toml:2:1: daemon.memory: found \"lots\"; allowed: 1MiB and up, a number of bytes or a "
        "text with B, KiB, MiB, GiB or TiB");
  CHECK(feed_fault("  slots = 1") == "x.toml:4:3: feed.slots: found 1; allowed: 0, or 2 to 65536");
  CHECK(feed_fault("verify = \"some\nit\"").find("x.toml:4:") == 0);
}

TEST_CASE("config: a wrong type is told as what it is") {
  const std::string tail = "; allowed: 1 to 256";
  const auto found = [](const std::string& value) {
    return daemon_fault("assembly_threads = " + value);
  };
  const std::string head = "x.toml:2:1: daemon.assembly_threads: found ";
  CHECK(found("\"two\"") == head + "\"two\"" + tail);
  CHECK(found("2.5") == head + "2.5" + tail);
  CHECK(found("true") == head + "true" + tail);
  CHECK(found("[]") == head + "an empty list" + tail);
  CHECK(found("[1, 2]") == head + "a list of 2" + tail);
  CHECK(found("{ a = 1 }") == head + "a table" + tail);
  CHECK(found("2024-01-01") == head + "a date or time" + tail);
  CHECK(found("\"\"\"a\nb\"\"\"") == head + "\"a\\x0Ab\"" + tail);
  CHECK(found("\"" + std::string(200, 'x') + "\"") ==
        head + "\"" + std::string(80, 'x') + "\"..." + tail);
}

TEST_CASE("config: a setting of the plan in another type is refused, whatever its text") {
  CHECK(plan_fault("size = \"16\"") ==
        "x.toml:5:1: feed.plan.size: found \"16\"; allowed: 1 to 2147483647");
  CHECK(plan_fault("size = 16.0") ==
        "x.toml:5:1: feed.plan.size: found 16.0; allowed: 1 to 2147483647");
  CHECK(plan_fault("size = [16]") != "");
  CHECK(plan_fault("size = true") != "");
  CHECK(plan_fault("order = [\"sorted\"]") != "");
  CHECK(plan_fault("randomization = \"0.1\"") != "");
  CHECK(plan_fault("bucket_boundaries = 100") != "");
  CHECK(plan_fault("bucket_boundaries = \"100,200\"") != "");
  CHECK(plan_fault("seed = \"1\"") != "");
  CHECK(plan_fault("seed = \"9223372036854775808\"") == "");
  CHECK(plan_fault("seed = 1") == "");
  CHECK(
      plan_fault("order = \"file\"\norder_file = 3") ==
      "x.toml:6:1: feed.plan.order_file: found 3; allowed: path of a file with a row or a batch a "
      "line");
}

TEST_CASE("config: a feed that follows its dataset takes no order file") {
  const std::string plan = "[feed.plan]\norder = \"file\"\norder_file = \"/o\"\n";
  CHECK(fault_of(kFeed + plan) == "");
  CHECK(
      fault_of(kFeed + "follow = true\n" + plan)
          .ends_with(": feed.follow: found true with feed.plan.order = \"file\"; allowed: false"));
}

TEST_CASE("config: values at the edge are taken, those past it refused") {
  CHECK(daemon_with("assembly_threads = 1").assembly_threads == 1);
  CHECK(daemon_with("assembly_threads = 256").assembly_threads == 256);
  CHECK(daemon_fault("assembly_threads = 0") != "");
  CHECK(daemon_fault("assembly_threads = 257") != "");
  CHECK(daemon_fault("max_clients = 0") != "");
  CHECK(daemon_fault("max_clients = 65537") != "");
  CHECK(daemon_fault("max_producers = 0") != "");
  CHECK(daemon_fault("max_clients = 9223372036854775807") != "");
  CHECK(feed_fault("slots = 65536") == "");
  CHECK(feed_fault("slots = 65537") != "");
  CHECK(feed_fault("max_window = 0") != "");
  CHECK(feed_fault("max_corrupt_share = 1") == "");
  CHECK(feed_fault("max_corrupt_share = -0.01") != "");
  CHECK(feed_fault("max_corrupt_share = 1.01") != "");
  CHECK(feed_fault("padding = { features = 3, labels = -100 }") == "");
  CHECK(feed_fault("padding = { features = inf }") != "");
  CHECK(feed_fault("padding = { features = nan }") != "");
  CHECK(feed_fault("padding = -100") != "");
  CHECK(feed_fault("padding = { labels = \"none\" }") ==
        "x.toml:4:13: feed.padding: found \"none\"; allowed: a table with a finite number for "
        "each field that it names, such as { labels = -100 }");
  CHECK(feed_fault("poison = 1") != "");
  CHECK(feed_fault("max_lead = 1000000") == "");
  CHECK(feed_fault("max_lead = 1000001") != "");
  CHECK(feed_fault("queue_attempts = 0") == "");
  CHECK(feed_fault("queue_attempts = -1") != "");
  CHECK(feed_fault("journal = 1") ==
        "x.toml:4:1: feed.journal: found 1; allowed: path of a file; \"\" for none");
  CHECK(feed_fault("ledger = \"a\\u0000b\"") != "");
  CHECK(feed_fault("follow = \"yes\"") != "");
  CHECK(plan_fault("size = -1") ==
        "x.toml:5:1: feed.plan.size: found -1; allowed: 1 to "
        "2147483647");
}

TEST_CASE("config: an endpoint is refused with itself named") {
  const auto refused = [](const std::string& list, const std::string& found) {
    CAPTURE(list);
    const std::string fault = daemon_fault("endpoints = " + list);
    CHECK(fault.starts_with("x.toml:2:"));
    CHECK(fault.find(": daemon.endpoints: found " + found + "; allowed: ") != std::string::npos);
    CHECK(fault.ends_with("or \"tcp://0.0.0.0:9476\", with a numeric address or *"));
  };
  refused("[\"ipc:///tmp/a\", \"tcp://somewhere:9476\"]", "\"tcp://somewhere:9476\"");
  refused("[\"tcp://0.0.0.0\"]", "\"tcp://0.0.0.0\"");
  refused("[\"tcp://0.0.0.0:65536\"]", "\"tcp://0.0.0.0:65536\"");
  refused("[\"tcp://:9476\"]", "\"tcp://:9476\"");
  refused("[\"udp://0.0.0.0:9476\"]", "\"udp://0.0.0.0:9476\"");
  refused("[\"/tmp/a\"]", "\"/tmp/a\"");
  refused("[\"ipc://relative\"]", "\"ipc://relative\"");
  refused("[\"ipc:///\"]", "\"ipc:///\"");
  refused("[\"ipc://@abstract\"]", "\"ipc://@abstract\"");
  refused("[\"ipc:///a\\u0000b\"]", "\"ipc:///a\\x00b\"");
  refused("[\"ipc:///tmp/a\", \"ipc:///tmp/a\"]", "\"ipc:///tmp/a\"");
  refused("[\"ipc:///tmp/a\", 5]", "5");
  refused("\"ipc:///tmp/a\"", "\"ipc:///tmp/a\"");
  refused("[]", "an empty list");
  refused("[\"ipc://" + std::string(101, '/') + "\"]", "\"ipc://" + std::string(74, '/') + "\"...");
  CHECK(daemon_fault("endpoints = [\"ipc://" + std::string(100, '/') + "\"]") == "");
}

TEST_CASE("config: the other settings of [daemon] know what they allow") {
  CHECK(daemon_with("stats = \"0.0.0.0:80\"").stats == std::vector<std::string>{"0.0.0.0:80"});
  CHECK(daemon_with("stats = [\"[::1]:80\", \"unix:///run/stats\"]").stats ==
        std::vector<std::string>{"[::1]:80", "unix:///run/stats"});
  CHECK(daemon_fault("stats = [\"[::1]:80\", \"unix://stats\"]") != "");
  CHECK(daemon_fault("stats = [\"[::1]:80\", \"[::1]:80\"]") != "");
  CHECK(daemon_fault("stats = []") != "");
  CHECK(daemon_fault("stats = [\"\"]") != "");
  CHECK(daemon_fault("stats = \"unix:///" + std::string(107, 'x') + "\"") != "");
  CHECK(daemon_fault("stats = \"localhost:80\"") != "");
  CHECK(daemon_fault("stats = 9477") != "");
  CHECK(daemon_with("socket_mode = \"0666\"").socket_mode == 0666);
  for (const char* mode :
       {"\"\"", "\"66\"", "\"0668\"", "\"1660\"", "\"00660\"", "\"rw-\"", "660"}) {
    CAPTURE(mode);
    CHECK(daemon_fault("socket_mode = " + std::string(mode)) != "");
  }
  CHECK(daemon_fault("socket_group = \"two words\"") != "");
  CHECK(daemon_fault("socket_group = 100") != "");
  CHECK(daemon_fault("assembly_copy = \"mmx\"") ==
        "x.toml:2:1: daemon.assembly_copy: found \"mmx\"; allowed: auto memcpy sse2 avx2 "
        "avx512 neon");
  CHECK(daemon_fault("assembly_copy = 2") != "");
  for (const CopyWay& way : copy_ways()) {
    CHECK(daemon_fault("assembly_copy = \"" + std::string(way.name) + "\"") == "");
  }
  CHECK(daemon_fault("log_level = \"warning\"") ==
        "x.toml:2:1: daemon.log_level: found \"warning\"; allowed: debug info warn error");
}

TEST_CASE("config: an unknown key is refused with the nearest one") {
  CHECK(daemon_fault("memroy = 1") ==
        "x.toml:2:1: daemon.memroy: unknown key, did you mean memory?; allowed: endpoints events "
        "stats stats_hosts memory assembly_threads assembly_copy assembly_share nice "
        "cpu_affinity io_priority socket_mode socket_group allow_uids "
        "allow_gids curve_secret_key_file authorized_keys_file insecure max_clients max_producers "
        "queue_grace feed_grace log_level log_format");
  CHECK(feed_fault("slot = 4").find("feed.slot: unknown key, did you mean slots?") !=
        std::string::npos);
  CHECK(plan_fault("oder = \"random\"").find("feed.plan.oder: unknown key, did you mean order?") !=
        std::string::npos);
  CHECK(fault_of("[deamon]\n" + kFeed) ==
        "x.toml:1:1: deamon: unknown key, did you mean daemon?; allowed: daemon feed");
  CHECK(fault_of("colour = 1\n" + kFeed) ==
        "x.toml:1:1: colour: unknown key; allowed: daemon feed");
}

TEST_CASE("config: feeds are there, in double brackets, with a name and a dataset") {
  CHECK(fault_of("") == "x.toml: feed: found none; allowed: one [[feed]] or more");
  CHECK(fault_of("feed = []") ==
        "x.toml:1:1: feed: found an empty list; allowed: one [[feed]] or more, in double brackets");
  CHECK(fault_of("[feed]\nname = \"a\"\n") ==
        "x.toml:1:1: feed: found a table; allowed: one [[feed]] or more, in double brackets");
  CHECK(fault_of("feed = [1]") == "x.toml:1:9: feed: found 1; allowed: a table");
  CHECK(fault_of("[[feed]]\n") ==
        "x.toml:1:1: feed.name: found nothing; allowed: 1 to 64 of A-Z a-z 0-9 _ . -\n"
        "x.toml:1:1: feed.dataset: found nothing; allowed: path of a dataset, or a list of paths "
        "of its shards");
  CHECK(fault_of("daemon = 3\n" + kFeed) == "x.toml:1:1: daemon: found 3; allowed: a table");
  CHECK(feed_fault("plan = 3") == "x.toml:4:1: feed.plan: found 3; allowed: a table");
}

TEST_CASE("config: the name of a feed is short, plain and its own") {
  const auto named = [](const std::string& name) {
    return fault_of("[[feed]]\nname = \"" + name + "\"\ndataset = \"d\"\n");
  };
  CHECK(named(std::string(64, 'x')) == "");
  CHECK(named(std::string(65, 'x')) != "");
  CHECK(named("") != "");
  CHECK(named("a b") != "");
  CHECK(named("a/b") != "");
  CHECK(named("caf\xC3\xA9") != "");
  CHECK(
      fault_of(kFeed + kFeed) ==
      "x.toml:5:1: feed.name: found \"train\" a second time; allowed: one that no other feed has");
}

TEST_CASE("config: a journal belongs to one feed") {
  const std::string other = "[[feed]]\nname = \"dev\"\ndataset = \"/data/dev\"\n";
  const auto journals = [&](const std::string& first, const std::string& second) {
    return fault_of(kFeed + "journal = \"" + first + "\"\n" + other + "journal = \"" + second +
                    "\"\n");
  };
  CHECK(journals("/a", "/b") == "");
  CHECK(journals("", "") == "");
  CHECK(
      journals("/a", "/a") ==
      "x.toml:8:1: feed.journal: found \"/a\" a second time; allowed: one that no other feed has");
}

TEST_CASE("config: a dataset is one path or several") {
  const auto dataset = [](const std::string& value) {
    return fault_of("[[feed]]\nname = \"a\"\ndataset = " + value + "\n");
  };
  CHECK(dataset("\"\"") != "");
  CHECK(dataset("[]") != "");
  CHECK(dataset("[\"/a\", \"\"]") != "");
  CHECK(dataset("[\"/a\", 3]").find("found 3;") != std::string::npos);
  CHECK(dataset("7") != "");
}

TEST_CASE("config: settings that do not go together are told at the plan") {
  const std::string fault = plan_fault("bins = 4");
  CHECK(fault.starts_with("x.toml:4:1: feed.plan: "));
  CHECK(fault.find("bins") != std::string::npos);
}

TEST_CASE("config: a value of the plan that is no scalar is refused") {
  CHECK(plan_fault("size = { a = 1 }").find("feed.plan.size: found a table;") != std::string::npos);
  CHECK(plan_fault("size = 2024-01-01").find("found a date or time;") != std::string::npos);
  CHECK(plan_fault("order = \"bucket-span\"\nbucket_boundaries = [[1], [2]]") != "");
  CHECK(plan_fault("bucket_boundaries = [3, 2]").find("found [3,2];") != std::string::npos);
}

TEST_CASE("config: all faults are told at once, in the order of the lines") {
  CHECK(fault_of("[[feed]]\nname = \"a\"\ndataset = 1\nslots = 1\n[daemon]\nmax_clients = 0\n") ==
        "x.toml:3:1: feed.dataset: found 1; allowed: path of a dataset, or a list of paths of its "
        "shards\n"
        "x.toml:4:1: feed.slots: found 1; allowed: 0, or 2 to 65536\n"
        "x.toml:6:1: daemon.max_clients: found 0; allowed: 1 to 65536");
}

TEST_CASE("config: what is no TOML is refused with the line") {
  CHECK(fault_of("[daemon]\nmemory = \n").starts_with("x.toml:2:"));
  CHECK(fault_of(kFeed + "name = \"b\"\n").starts_with("x.toml:4:"));
  CHECK(fault_of("\xFF\xFE").starts_with("x.toml:1:"));
  CHECK(fault_of(std::string("a\0b", 3)).starts_with("x.toml:1:"));
  CHECK(fault_of("a = " + std::string(100'000, '[')).starts_with("x.toml:1:"));
}

TEST_CASE("config: no truncation of a configuration does more than be refused") {
  const std::string text = "[daemon]\nendpoints = [\"ipc:///a\"]\nmemory = \"1GiB\"\n" + kFeed +
                           "slots = 4\n[feed.plan]\norder = \"sorted\"\n";
  REQUIRE(fault_of(text) == "");
  const std::size_t feed = text.find("dataset");
  for (std::size_t size = 0; size < text.size(); ++size) {
    const auto config = parse_config(text.substr(0, size), "x.toml");
    CAPTURE(size);
    if (size < feed) CHECK_FALSE(config);
    if (!config) CHECK(config.error().message.starts_with("x.toml:"));
  }
}

TEST_CASE("config: sockets that a file does not place lie in the folder of the call") {
  const TemporaryFolder folder;
  const auto path = folder / "c.toml";
  const auto placed = [&](const std::string& daemon) {
    std::ofstream(path) << "[daemon]\n" << daemon << "\n[[feed]]\nname = \"a\"\ndataset = \"d\"\n";
    const auto config = load_config(ConfigSource{path, "/f"});
    REQUIRE_MESSAGE(config, config.error().message);
    return config->daemon;
  };
  const DaemonConfig both = placed("");
  CHECK(both.endpoints == std::vector<std::string>{"ipc:///f/batchwright.sock"});
  CHECK(both.stats == std::vector<std::string>{"unix:///f/stats.sock"});
  const DaemonConfig none = placed("endpoints = [\"ipc:///e\"]\nstats = \"\"");
  CHECK(none.endpoints == std::vector<std::string>{"ipc:///e"});
  CHECK(none.stats.empty());
  CHECK(load_config(ConfigSource{path, {}})->daemon.stats == none.stats);
}

TEST_CASE("config: a private page and a level of the log count where the file says nothing") {
  const TemporaryFolder folder;
  const auto path = folder / "c.toml";
  const auto loaded = [&](const std::string& daemon) {
    std::ofstream(path) << "[daemon]\n" << daemon << "\n[[feed]]\nname = \"a\"\ndataset = \"d\"\n";
    const auto config = load_config(ConfigSource{path, "/f", true, Severity::warning});
    REQUIRE_MESSAGE(config, config.error().message);
    return config->daemon;
  };
  const DaemonConfig silent = loaded("");
  CHECK(silent.stats == std::vector<std::string>{"unix:///f/stats.sock", "127.0.0.1:0"});
  CHECK(silent.private_pages);
  CHECK(silent.log_level == Severity::warning);
  // The same as the default, and yet said.
  const DaemonConfig said = loaded("stats = \"127.0.0.1:80\"\nlog_level = \"info\"");
  CHECK(said.stats == std::vector<std::string>{"127.0.0.1:80"});
  CHECK_FALSE(said.private_pages);
  CHECK(said.log_level == Severity::info);
}

TEST_CASE("config: a file that cannot be read is told by its name") {
  CHECK(load_config("/nonexistent/x.toml").error().message ==
        "/nonexistent/x.toml: cannot be read: No such file or directory");
  CHECK(load_config("/").error().message ==
        "/: cannot be read: found a folder; allowed: a file, or /dev/stdin");
}

TEST_CASE("config: a file is read, and refused when it is no configuration by its size") {
  std::string path = (std::filesystem::temp_directory_path() / "config-XXXXXX").string();
  const int descriptor = mkstemp(path.data());
  REQUIRE(descriptor >= 0);
  close(descriptor);
  std::ofstream(path) << kFeed;
  CHECK(load_config(path));
  std::ofstream(path) << kFeed << "slots = 1\n";
  CHECK(load_config(path).error().message ==
        path + ":4:1: feed.slots: found 1; allowed: 0, or 2 to 65536");
  std::ofstream(path) << std::string((1 << 20) + 1, '#');
  CHECK(load_config(path).error().message == path + ": cannot be read: larger than 1 MiB");
  std::filesystem::remove(path);
}
