#include "daemon/config.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

using namespace batchwright;

namespace {

const std::string kFeed = "[[feed]]\nname = \"train\"\ndataset = \"/data/train\"\n";

/// What is wrong with a text that is called "x.toml"; empty when nothing is.
std::string fault_of(const std::string& text) {
  const auto config = parse_config(text, "x.toml");
  if (config) return "";
  CHECK(config.error().code == ErrorCode::bad_configuration);
  return config.error().message;
}

/// The same for one line of [daemon], of [[feed]], of [feed.plan]. The line is line 2, 4 or 5.
std::string daemon_fault(const std::string& line) {
  return fault_of("[daemon]\n" + line + "\n" + kFeed);
}
std::string feed_fault(const std::string& line) { return fault_of(kFeed + line + "\n"); }
std::string plan_fault(const std::string& line) {
  return fault_of(kFeed + "[feed.plan]\n" + line + "\n");
}

Config parsed(const std::string& text) {
  auto config = parse_config(text, "x.toml");
  REQUIRE_MESSAGE(config, (config ? "" : config.error().message));
  return std::move(*config);
}

/// The config of [daemon] with one line, which must be sound.
DaemonConfig daemon_with(const std::string& line) {
  return parsed("[daemon]\n" + line + "\n" + kFeed).daemon;
}

}  // namespace

TEST_CASE("daemon: a configuration of one feed leaves the rest at its defaults") {
  const Config config = parsed(kFeed);
  CHECK(config.daemon == DaemonConfig{});
  REQUIRE(config.feeds.size() == 1);
  CHECK(config.feeds[0].name == "train");
  CHECK(config.feeds[0].dataset == std::vector<std::filesystem::path>{"/data/train"});
}

TEST_CASE("daemon: every key is read") {
  const Config config = parsed(R"(
[daemon]
endpoints = ["ipc:///tmp/a", "tcp://*:9476"]
events = "ipc:///tmp/e"
stats = ""
memory = "3 MiB"
assembly_threads = 7
socket_mode = "600"
socket_group = "trainers"
allow_uids = ["alice", 1001]
allow_gids = [50]
curve_secret_key_file = "/etc/k.secret"
authorized_keys_file = "/etc/clients"
insecure = true
max_clients = 9
queue_grace = "90s"
log_level = "warn"
[[feed]]
name = "a.b-C_1"
dataset = ["/data/1", "/data/2"]
slots = 3
on_corrupt = "skip"
verify = "never"
layout = "time-major"
padding_value = -15.5
max_window = 2
poison = true
max_lead = 4
journal = "/j"
ledger = "/l"
follow = true
[feed.plan]
order = "semi-sorted"
randomization = 1
cut = "dynamic"
seed = "18446744073709551615"
)");
  const DaemonConfig& daemon = config.daemon;
  CHECK(daemon.endpoints == std::vector<std::string>{"ipc:///tmp/a", "tcp://*:9476"});
  CHECK(daemon.events == "ipc:///tmp/e");
  CHECK(daemon.stats.empty());
  CHECK(daemon.memory_bytes == 3 << 20);
  CHECK(daemon.assembly_threads == 7);
  CHECK(daemon.socket_mode == 0600);
  CHECK(daemon.socket_group == "trainers");
  CHECK(daemon.allow_uids == std::vector<std::string>{"alice", "1001"});
  CHECK(daemon.allow_gids == std::vector<std::string>{"50"});
  CHECK(daemon.curve_secret_key_file == "/etc/k.secret");
  CHECK(daemon.authorized_keys_file == "/etc/clients");
  CHECK(daemon.insecure);
  CHECK(daemon.max_clients == 9);
  CHECK(daemon.queue_grace == std::chrono::seconds(90));
  CHECK(daemon.log_level == LogLevel::warn);
  const FeedConfig& feed = config.feeds.at(0);
  CHECK(feed.name == "a.b-C_1");
  CHECK(feed.dataset == std::vector<std::filesystem::path>{"/data/1", "/data/2"});
  CHECK(feed.slots == 3);
  CHECK(feed.on_corrupt == OnCorrupt::skip);
  CHECK(feed.verify == VerifyRecords::never);
  CHECK(feed.layout == Layout::time_major);
  CHECK(feed.padding_value == -15.5);
  CHECK(feed.max_window == 2);
  CHECK(feed.poison);
  CHECK(feed.max_lead == 4);
  CHECK(feed.journal == "/j");
  CHECK(feed.ledger == "/l");
  CHECK(feed.follow);
  CHECK(feed.plan.order == Order::semi_sorted);
  CHECK(feed.plan.randomization == 1.0);
  CHECK(feed.plan.cut == Cut::dynamic);
  CHECK(feed.plan.seed == 0xFFFFFFFFFFFFFFFF);
}

TEST_CASE("daemon: a list in the plan is read as a list") {
  const Config config =
      parsed(kFeed + "[feed.plan]\norder = \"bucket-span\"\nbucket_boundaries = [100, 200, 400]\n");
  CHECK(config.feeds[0].plan.bucket_boundaries == std::vector<std::uint32_t>{100, 200, 400});
}

TEST_CASE("daemon: each feed has a plan of its own") {
  const Config config = parsed(kFeed + "[feed.plan]\nsize = 4\n[[feed]]\nname = \"dev\"\n" +
                               "dataset = \"/data/dev\"\n[feed.plan]\nsize = 8\n");
  CHECK(config.feeds.at(0).plan.size == 4);
  CHECK(config.feeds.at(1).plan.size == 8);
}

TEST_CASE("daemon: memory takes units") {
  CHECK(daemon_with("memory = 1048576").memory_bytes == 1 << 20);
  CHECK(daemon_with("memory = \"1048577\"").memory_bytes == (1 << 20) + 1);
  CHECK(daemon_with("memory = \"2097152B\"").memory_bytes == 2 << 20);
  CHECK(daemon_with("memory = \"1024KiB\"").memory_bytes == 1 << 20);
  CHECK(daemon_with("memory = \"2GiB\"").memory_bytes == std::uint64_t{2} << 30);
  CHECK(daemon_with("memory = \"16777215 TiB\"").memory_bytes == std::uint64_t{16777215} << 40);
  for (const char* value : {"0", "-1", "1048575", "1.5", "true", "\"\"", "\"GiB\"", "\"2GB\"",
                            "\"2 gib\"", "\"2GiB \"", "\"-2GiB\"", "\"1.5GiB\"", "\"1023KiB\"",
                            "\"16777216TiB\"", "\"99999999999999999999\"", "[1]"}) {
    CAPTURE(value);
    CHECK(
        daemon_fault("memory = " + std::string(value)).starts_with("x.toml:2:1: daemon.memory: "));
  }
}

TEST_CASE("daemon: a time takes units") {
  using std::chrono::milliseconds;
  CHECK(daemon_with("queue_grace = \"250ms\"").queue_grace == milliseconds(250));
  CHECK(daemon_with("queue_grace = \"0s\"").queue_grace == milliseconds(0));
  CHECK(daemon_with("queue_grace = \"10 s\"").queue_grace == milliseconds(10'000));
  CHECK(daemon_with("queue_grace = \"5min\"").queue_grace == milliseconds(300'000));
  CHECK(daemon_with("queue_grace = \"24h\"").queue_grace == milliseconds(86'400'000));
  for (const char* value :
       {"10", "10.5", "\"\"", "\"10\"", "\"s\"", "\"10 sec\"", "\"-1s\"", "\"1.5s\"", "\"10s \"",
        "\"25h\"", "\"86400001ms\"", "\"18446744073709551615h\"", "\"99999999999999999999s\"",
        "true", "[]"}) {
    CAPTURE(value);
    const std::string fault = daemon_fault("queue_grace = " + std::string(value));
    CHECK(fault.starts_with("x.toml:2:1: daemon.queue_grace: found "));
    CHECK(fault.ends_with("; allowed: 0s to 24h, a text with ms, s, min or h"));
  }
}

TEST_CASE("daemon: tcp is refused without keys, with both ways out") {
  const std::string ways =
      "; allowed: tcp:// with curve_secret_key_file (batchwright keygen makes one), or with "
      "insecure = true where everybody who reaches the port may read the data";
  CHECK(daemon_fault("endpoints = [\"tcp://127.0.0.1:0\"]") ==
        "x.toml:1:1: daemon.endpoints: found \"tcp://127.0.0.1:0\" without keys" + ways);
  CHECK(daemon_fault("events = \"tcp://127.0.0.1:9478\"") ==
        "x.toml:1:1: daemon.events: found \"tcp://127.0.0.1:9478\" without keys" + ways);
  CHECK(daemon_fault("events = \"ipc:///run/batchwright/batchwright.sock\"") ==
        "x.toml:1:1: daemon.events: found \"ipc:///run/batchwright/batchwright.sock\", which is in "
        "endpoints; allowed: an address of its own");
  CHECK(daemon_with("endpoints = [\"tcp://[::1]:1\"]\ninsecure = true").insecure);
  CHECK(daemon_fault("endpoints = [\"tcp://*:1\"]\ncurve_secret_key_file = \"k\"") == "");
  CHECK(daemon_fault("authorized_keys_file = \"k\"") ==
        "x.toml:1:1: daemon.authorized_keys_file: found without curve_secret_key_file; allowed: "
        "both, or neither");
}

TEST_CASE("daemon: users and groups are names or numbers") {
  CHECK(daemon_with("allow_uids = []").allow_uids.empty());
  CHECK(daemon_with("allow_gids = [0, 4294967294]").allow_gids.size() == 2);
  for (const char* value : {"1000", "\"alice\"", "[-1]", "[4294967295]", "[\"\"]", "[\"a b\"]",
                            "[1.5]", "[[1]]", "[true]"}) {
    CAPTURE(value);
    CHECK(daemon_fault("allow_uids = " + std::string(value))
              .find("; allowed: a list of up to 1024 names or numbers of users") !=
          std::string::npos);
  }
}

TEST_CASE("daemon: a fault tells place, key, what was found and what is allowed") {
  CHECK(plan_fault("order = \"shuffled\"") ==
        "x.toml:5:1: feed.plan.order: found \"shuffled\"; allowed: random sorted bucket "
        "bucket-span bucket-optimal alternated semi-sorted");
  CHECK(daemon_fault("memory = \"lots\"") ==
        "x.toml:2:1: daemon.memory: found \"lots\"; allowed: 1MiB and up, a number of bytes or a "
        "text with B, KiB, MiB, GiB or TiB");
  CHECK(feed_fault("  slots = 1") == "x.toml:4:3: feed.slots: found 1; allowed: 2 to 65536");
  CHECK(feed_fault("verify = \"some\nit\"").find("x.toml:4:") == 0);
}

TEST_CASE("daemon: a wrong type is told as what it is") {
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

TEST_CASE("daemon: values at the edge are taken, those behind it refused") {
  CHECK(daemon_with("assembly_threads = 1").assembly_threads == 1);
  CHECK(daemon_with("assembly_threads = 256").assembly_threads == 256);
  CHECK(daemon_fault("assembly_threads = 0") != "");
  CHECK(daemon_fault("assembly_threads = 257") != "");
  CHECK(daemon_fault("max_clients = 0") != "");
  CHECK(daemon_fault("max_clients = 65537") != "");
  CHECK(daemon_fault("max_clients = 9223372036854775807") != "");
  CHECK(feed_fault("slots = 65536") == "");
  CHECK(feed_fault("slots = 65537") != "");
  CHECK(feed_fault("max_window = 0") != "");
  CHECK(feed_fault("padding_value = 3") == "");
  CHECK(feed_fault("padding_value = inf") != "");
  CHECK(feed_fault("padding_value = nan") != "");
  CHECK(feed_fault("poison = 1") != "");
  CHECK(feed_fault("max_lead = 1000000") == "");
  CHECK(feed_fault("max_lead = 1000001") != "");
  CHECK(feed_fault("journal = 1") ==
        "x.toml:4:1: feed.journal: found 1; allowed: path of a file; \"\" for none");
  CHECK(feed_fault("ledger = \"a\\u0000b\"") != "");
  CHECK(feed_fault("follow = \"yes\"") != "");
  CHECK(plan_fault("size = -1") ==
        "x.toml:5:1: feed.plan.size: found -1; allowed: 1 to "
        "2147483647");
}

TEST_CASE("daemon: an endpoint is refused with itself named") {
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

TEST_CASE("daemon: the other settings of [daemon] know what they allow") {
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
  CHECK(daemon_fault("log_level = \"warning\"") ==
        "x.toml:2:1: daemon.log_level: found \"warning\"; allowed: debug info warn error");
}

TEST_CASE("daemon: an unknown key is refused with the nearest one") {
  CHECK(daemon_fault("memroy = 1") ==
        "x.toml:2:1: daemon.memroy: unknown key, did you mean memory?; allowed: endpoints events "
        "stats memory assembly_threads socket_mode socket_group allow_uids allow_gids "
        "curve_secret_key_file authorized_keys_file insecure max_clients queue_grace log_level");
  CHECK(feed_fault("slot = 4").find("feed.slot: unknown key, did you mean slots?") !=
        std::string::npos);
  CHECK(plan_fault("oder = \"random\"").find("feed.plan.oder: unknown key, did you mean order?") !=
        std::string::npos);
  CHECK(fault_of("[deamon]\n" + kFeed) ==
        "x.toml:1:1: deamon: unknown key, did you mean daemon?; allowed: daemon feed");
  CHECK(fault_of("colour = 1\n" + kFeed) ==
        "x.toml:1:1: colour: unknown key; allowed: daemon feed");
}

TEST_CASE("daemon: feeds are there, in double brackets, with a name and a dataset") {
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

TEST_CASE("daemon: the name of a feed is short, plain and its own") {
  const auto named = [](const std::string& name) {
    return fault_of("[[feed]]\nname = \"" + name + "\"\ndataset = \"d\"\n");
  };
  CHECK(named(std::string(64, 'x')) == "");
  CHECK(named(std::string(65, 'x')) != "");
  CHECK(named("") != "");
  CHECK(named("a b") != "");
  CHECK(named("a/b") != "");
  CHECK(named("caf\xC3\xA9") != "");
  CHECK(fault_of(kFeed + kFeed) ==
        "x.toml:5:1: feed.name: found \"train\" a second time; allowed: a name that no other feed "
        "has");
}

TEST_CASE("daemon: a dataset is one path or several") {
  const auto dataset = [](const std::string& value) {
    return fault_of("[[feed]]\nname = \"a\"\ndataset = " + value + "\n");
  };
  CHECK(dataset("\"\"") != "");
  CHECK(dataset("[]") != "");
  CHECK(dataset("[\"/a\", \"\"]") != "");
  CHECK(dataset("[\"/a\", 3]").find("found 3;") != std::string::npos);
  CHECK(dataset("7") != "");
}

TEST_CASE("daemon: settings that do not go together are told at the plan") {
  const std::string fault = plan_fault("bins = 4");
  CHECK(fault.starts_with("x.toml:4:1: feed.plan: "));
  CHECK(fault.find("bins") != std::string::npos);
}

TEST_CASE("daemon: a value of the plan that is no scalar is refused") {
  CHECK(plan_fault("size = { a = 1 }").find("feed.plan.size: found a table;") != std::string::npos);
  CHECK(plan_fault("size = 2024-01-01").find("found a date or time;") != std::string::npos);
  CHECK(plan_fault("order = \"bucket-span\"\nbucket_boundaries = [[1], [2]]") != "");
  CHECK(plan_fault("bucket_boundaries = [3, 2]").find("found [3,2];") != std::string::npos);
}

TEST_CASE("daemon: all faults are told at once, in the order of the lines") {
  CHECK(fault_of("[[feed]]\nname = \"a\"\ndataset = 1\nslots = 0\n[daemon]\nmax_clients = 0\n") ==
        "x.toml:3:1: feed.dataset: found 1; allowed: path of a dataset, or a list of paths of its "
        "shards\n"
        "x.toml:4:1: feed.slots: found 0; allowed: 2 to 65536\n"
        "x.toml:6:1: daemon.max_clients: found 0; allowed: 1 to 65536");
}

TEST_CASE("daemon: what is no TOML is refused with the line") {
  CHECK(fault_of("[daemon]\nmemory = \n").starts_with("x.toml:2:"));
  CHECK(fault_of(kFeed + "name = \"b\"\n").starts_with("x.toml:4:"));
  CHECK(fault_of("\xFF\xFE").starts_with("x.toml:1:"));
  CHECK(fault_of(std::string("a\0b", 3)).starts_with("x.toml:1:"));
  CHECK(fault_of("a = " + std::string(100'000, '[')).starts_with("x.toml:1:"));
}

TEST_CASE("daemon: no truncation of a configuration does more than be refused") {
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

TEST_CASE("daemon: a file that cannot be read is told by its name") {
  CHECK(load_config("/nonexistent/x.toml").error().message ==
        "/nonexistent/x.toml: cannot be read: No such file or directory");
  CHECK(load_config("/").error().message == "/: cannot be read: Is a directory");
}

TEST_CASE("daemon: a file is read, and refused when it is no configuration by its size") {
  std::string path = (std::filesystem::temp_directory_path() / "config-XXXXXX").string();
  const int descriptor = mkstemp(path.data());
  REQUIRE(descriptor >= 0);
  close(descriptor);
  std::ofstream(path) << kFeed;
  CHECK(load_config(path));
  std::ofstream(path) << kFeed << "slots = 0\n";
  CHECK(load_config(path).error().message ==
        path + ":4:1: feed.slots: found 0; allowed: 2 to 65536");
  std::ofstream(path) << std::string((1 << 20) + 1, '#');
  CHECK(load_config(path).error().message == path + ": cannot be read: larger than 1 MiB");
  std::filesystem::remove(path);
}
