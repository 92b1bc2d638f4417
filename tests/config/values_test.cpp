#include <doctest/doctest.h>

#include <string>

#include "daemon/config/config.h"
#include "tests/config/texts.h"

using namespace batchwright;
using namespace batchwright::test;

TEST_CASE("config: a configuration of one feed leaves the rest at its defaults") {
  const Config config = parsed(kFeed);
  CHECK(config.daemon == DaemonConfig{});
  REQUIRE(config.feeds.size() == 1);
  CHECK(config.feeds[0].served.name == "train");
  CHECK(config.feeds[0].dataset == std::vector<std::filesystem::path>{"/data/train"});
}

TEST_CASE("config: a way to copy may be one of another machine's processor") {
  CHECK(parsed("[daemon]\nassembly_copy = \"neon\"\n" + kFeed).daemon.assembly_copy == "neon");
  CHECK(parsed("[daemon]\nassembly_copy = \"avx512\"\n" + kFeed).daemon.assembly_copy == "avx512");
  // Names of 0.2.0.
  for (const std::string gone : {"-prefetch", "-pages"}) {
    const std::string line = "[daemon]\nassembly_copy = \"avx2" + gone + "\"\n";
    CHECK(parsed(line + kFeed).daemon.assembly_copy == "avx2");
  }
}

TEST_CASE("config: all float32 fields have one dtype, or those that are named one each") {
  const auto casts = [](const std::string& value) {
    return parsed(kFeed + "dtype = " + value + "\n").feeds.at(0).served.casts;
  };
  CHECK(casts("\"\"") == Casts{});
  CHECK(casts("\"float16\"") == Casts{DType::float16, {}});
  CHECK(casts("\"bfloat16\"") == Casts{DType::bfloat16, {}});
  CHECK(casts("{ a = \"float16\", b = \"bfloat16\" }") ==
        Casts{DType::none, {{"a", DType::float16}, {"b", DType::bfloat16}}});
}

TEST_CASE("config: every key is read") {
  const Config config = parsed(R"(
[daemon]
endpoints = ["ipc:///tmp/a", "tcp://*:9476"]
events = "ipc:///tmp/e"
stats = ""
stats_hosts = ["gpu01.cluster.example"]
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
max_producers = 10
queue_grace = "90s"
log_level = "warn"
log_format = "json"
feed_grace = "5min"
[[feed]]
name = "a.b-C_1"
dataset = ["/data/1", "/data/2"]
lock = false
slots = 3
on_corrupt = "skip"
max_corrupt_share = 0.25
verify = "never"
layout = "time-major"
padding = { features = -15.5, labels = -100 }
max_window = 2
poison = true
max_lead = 4
queue_attempts = 5
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
  CHECK(daemon.stats_hosts == std::vector<std::string>{"gpu01.cluster.example"});
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
  CHECK(daemon.max_producers == 10);
  CHECK(daemon.queue_grace == std::chrono::seconds(90));
  CHECK(daemon.log_level == Severity::warning);
  CHECK(daemon.log_format == LogFormat::json);
  CHECK(daemon.feed_grace == std::chrono::minutes(5));
  const FeedConfig& feed = config.feeds.at(0);
  CHECK(feed.served.name == "a.b-C_1");
  CHECK(feed.dataset == std::vector<std::filesystem::path>{"/data/1", "/data/2"});
  CHECK(feed.served.slots == 3);
  CHECK(feed.served.on_corrupt == OnCorrupt::skip);
  CHECK(feed.served.max_corrupt_share == 0.25);
  CHECK(feed.lock == Locking::off);
  CHECK(feed.verify == VerifyRecords::never);
  CHECK(feed.served.layout == Layout::time_major);
  CHECK(feed.served.padding == PaddingValues{{"features", -15.5}, {"labels", -100.0}});
  CHECK(feed.served.max_window == 2);
  CHECK(feed.served.poison);
  CHECK(feed.served.max_lead == 4);
  CHECK(feed.served.queue_attempts == 5);
  CHECK(feed.served.journal == "/j");
  CHECK(feed.served.ledger == "/l");
  CHECK(feed.served.follow);
  CHECK(feed.served.plan.order == Order::semi_sorted);
  CHECK(feed.served.plan.randomization == 1.0);
  CHECK(feed.served.plan.cut == Cut::dynamic);
  CHECK(feed.served.plan.seed == 0xFFFFFFFFFFFFFFFF);
}

TEST_CASE("config: an arena's huge pages are taken where there are any, never or in any case") {
  const auto huge_pages = [](const std::string& word) {
    return parsed(kFeed + "huge_pages = \"" + word + "\"\n").feeds[0].served.huge_pages;
  };
  CHECK(parsed(kFeed).feeds[0].served.huge_pages == HugePages::automatic);
  CHECK(huge_pages("auto") == HugePages::automatic);
  CHECK(huge_pages("off") == HugePages::off);
  CHECK(huge_pages("require") == HugePages::require);
}

TEST_CASE("config: a list in the plan is read as a list") {
  const Config config =
      parsed(kFeed + "[feed.plan]\norder = \"bucket-span\"\nbucket_boundaries = [100, 200, 400]\n");
  CHECK(config.feeds[0].served.plan.bucket_boundaries == std::vector<std::uint32_t>{100, 200, 400});
}

TEST_CASE("config: each feed has a plan of its own") {
  const Config config = parsed(kFeed + "[feed.plan]\nsize = 4\n[[feed]]\nname = \"dev\"\n" +
                               "dataset = \"/data/dev\"\n[feed.plan]\nsize = 8\n");
  CHECK(config.feeds.at(0).served.plan.size == 4);
  CHECK(config.feeds.at(1).served.plan.size == 8);
}

TEST_CASE("config: memory takes units") {
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

TEST_CASE("config: a time takes units") {
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

TEST_CASE("config: tcp is refused without keys, with both ways out") {
  const std::string ways =
      "; allowed: tcp:// with curve_secret_key_file (batchwright keygen makes one), or with "
      "insecure = true where every program that reaches the port may read the data";
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

TEST_CASE("config: users and groups are names or numbers") {
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
