// Feeds whose data are late, or go and come back: the daemon and its trainers live through it.

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <csignal>
#include <thread>

#include "tests/integration/daemon_process.h"
#include "tests/integration/trainer.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr const char* kSorted = "slots = 8\n[feed.plan]\norder = \"sorted\"\nsize = 4\n";

void insert_daemon_key(DaemonProcess& daemon, const std::string& line) {
  daemon.config().insert(std::string("[daemon]\n").size(), line + "\n");
}

void subscribe(Trainer& trainer, const char* feed, std::uint64_t epochs) {
  trainer.subscribe([&](bw_subscribe_options& options) {
    options.feed = feed;
    options.epochs = epochs;
  });
}

bool log_holds(DaemonProcess& daemon, const std::string& text) {
  return daemon.process().err().find(text) != std::string::npos;
}

std::size_t times_in(const std::string& text, const std::string& what) {
  std::size_t times = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++times;
  return times;
}

/// Programs that are started while it lives cannot make files, memory files included, larger than
/// this, and are not ended when they try.
class SmallFiles {
 public:
  explicit SmallFiles(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    handler_ = ::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallFiles() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }
  SmallFiles(const SmallFiles&) = delete;
  SmallFiles& operator=(const SmallFiles&) = delete;

  const rlimit& before() const { return before_; }

 private:
  rlimit before_{};
  sighandler_t handler_ = nullptr;
};

}  // namespace

TEST_CASE("daemon: memory that is short at the start is waited for") {
  DaemonProcess daemon("slots = 4000\n[feed.plan]\norder = \"sorted\"\nsize = 4\n");
  rlimit enough{};
  {
    const SmallFiles small(rlim_t{4} << 20);
    enough = small.before();
    REQUIRE(daemon.start());
  }
  CHECK(log_holds(daemon, "feed train: not served; the daemon keeps trying: arena: "));
  CHECK(daemon.page("/readyz").empty());
  REQUIRE(::prlimit(daemon.process().pid(), RLIMIT_FSIZE, &enough, nullptr) == 0);
  CHECK(eventually([&] { return !daemon.page("/readyz").empty(); }));
  Trainer trainer(daemon.endpoint());
  subscribe(trainer, "train", 1);
  CHECK(trainer.ordinals_until_end().size() == 15);
}

TEST_CASE("daemon: a dataset that is late fails its feed alone, and is served once it is there") {
  DaemonProcess daemon(kSorted);
  const auto late = daemon.folder() / "late";
  daemon.config() += "[[feed]]\nname = \"late\"\ndataset = \"" + late.string() + "\"\n" + kSorted;
  REQUIRE(daemon.start());
  Trainer train(daemon.endpoint());
  subscribe(train, "train", 1);
  CHECK(train.ordinals_until_end().size() == 15);
  // A trainer of the late feed waits for it.
  std::size_t batches = 0;
  std::thread waiting([&] {
    Trainer trainer(daemon.endpoint());
    subscribe(trainer, "late", 1);
    batches = trainer.ordinals_until_end().size();
  });
  const bool waited = eventually([&] { return log_holds(daemon, "waits for the feed: "); });
  // It comes as a folder does that is mounted: all at once.
  make_small_dataset(daemon.folder() / "making", mixed_lengths(40, 50));
  std::filesystem::rename(daemon.folder() / "making", late);
  waiting.join();
  CHECK(waited);
  CHECK(batches == 10);
  CHECK(eventually([&] { return !daemon.page("/readyz").empty(); }));
  CHECK(log_holds(daemon, "feed late: served again after "));
  // However often it was tried, the reason is told once.
  CHECK(times_in(daemon.process().err(), "not served; the daemon keeps trying: ") == 1);
}

TEST_CASE("daemon: a restart without a dataset is a pause for its trainers") {
  DaemonProcess daemon(kSorted);
  REQUIRE(daemon.start());
  Trainer trainer(daemon.endpoint());
  subscribe(trainer, "train", 1);
  std::vector<std::vector<std::uint64_t>> seen{trainer.next_ordinals(), trainer.next_ordinals()};
  daemon.process().signal(SIGKILL);
  REQUIRE(daemon.process().wait());
  const auto aside = daemon.folder() / "aside";
  std::filesystem::rename(daemon.dataset(), aside);
  REQUIRE(daemon.start());
  std::thread mounting([&] {
    eventually([&] { return log_holds(daemon, "waits for the feed: "); });
    std::filesystem::rename(aside, daemon.dataset());
  });
  const auto rest = trainer.ordinals_until_end();
  mounting.join();
  CHECK(rest.size() == 13);
}

TEST_CASE("daemon: a feed whose data are truncated is served again once whole data are there") {
  DaemonProcess daemon(kSorted, 3000);
  REQUIRE(daemon.start());
  const auto spare = daemon.folder() / "spare";
  std::filesystem::create_directory(spare);
  std::filesystem::copy(daemon.dataset() / "data.mdb", spare / "data.mdb");
  Trainer trainer(daemon.endpoint());
  subscribe(trainer, "train", 1);
  std::size_t batches = 0;
  for (; batches < 3; ++batches) REQUIRE(trainer.next() == BW_OK);
  std::filesystem::resize_file(daemon.dataset() / "data.mdb", 64 * 1024);
  std::thread mending([&] {
    eventually([&] { return log_holds(daemon, "not served; the daemon keeps trying: "); });
    std::filesystem::rename(daemon.dataset(), daemon.folder() / "broken");
    std::filesystem::rename(spare, daemon.dataset());
  });
  // The same trainer goes on, from the batch that it had last, without anybody's reload.
  batches += trainer.ordinals_until_end().size();
  mending.join();
  CHECK(batches == 750);
  CHECK(log_holds(daemon, "feed train failed: "));
  CHECK_FALSE(log_holds(daemon, "reading "));
}

TEST_CASE("daemon: trainers of a feed that does not come back are refused with the reason") {
  DaemonProcess daemon(kSorted, 0);
  insert_daemon_key(daemon, "feed_grace = \"300ms\"");
  REQUIRE(daemon.start());
  Trainer trainer(daemon.endpoint());
  std::string reason;
  try {
    subscribe(trainer, "train", 1);
  } catch (const std::runtime_error& refused) {
    reason = refused.what();
  }
  CHECK_MESSAGE(reason.find("feed train is not served: dataset ") != std::string::npos, reason);
  CHECK_MESSAGE(reason.find("does not exist") != std::string::npos, reason);
}

TEST_CASE("daemon: a reload opens an absent feed, with other keys too, and removes it") {
  DaemonProcess daemon(kSorted, 0);
  REQUIRE(daemon.start());
  const std::string before = daemon.config();
  CHECK(daemon.reload());
  CHECK(log_holds(daemon, "feed train: still failed: dataset "));
  const std::string path = daemon.dataset().string();
  make_small_dataset(daemon.folder() / "other", mixed_lengths(40, 50));
  daemon.config().replace(daemon.config().find(path), path.size(),
                          (daemon.folder() / "other").string());
  CHECK(daemon.reload());
  Trainer trainer(daemon.endpoint());
  subscribe(trainer, "train", 1);
  CHECK(trainer.ordinals_until_end().size() == 10);
}

TEST_CASE("daemon: sockets that somebody removes are told of") {
  DaemonProcess daemon(kSorted);
  REQUIRE(daemon.start());
  REQUIRE(eventually([&] { return !daemon.page("/readyz").empty(); }));
  std::filesystem::remove(daemon.folder() / "s.arena");
  CHECK(eventually([&] { return daemon.page("/readyz").empty(); }));
  CHECK(log_holds(daemon, "s.arena is no longer this daemon's socket"));
}
