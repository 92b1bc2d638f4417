// The daemon as systemd sees it: signals, and what comes over the notify socket.

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <csignal>

#include "tests/integration/daemon_process.h"
#include "tests/integration/trainer.h"
#include "tests/support/notify_listener.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr int kPatience = 20'000;  // milliseconds

/// The next message that is not the watchdog's.
std::string news(const NotifyListener& systemd) {
  std::string message = "WATCHDOG=1";
  while (message == "WATCHDOG=1") message = systemd.heard(kPatience);
  return message;
}

/// Signals that are sent now stay pending in the child, also while it becomes another program.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGTERM, SIGHUP}) sigaddset(&set, signal);
    pthread_sigmask(SIG_BLOCK, &set, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

TEST_CASE("systemd: READY=1 comes once the first batches are there") {
  const NotifyListener systemd;
  DaemonProcess daemon("");
  REQUIRE(daemon.start());
  CHECK(systemd.heard(kPatience) == "READY=1\nSTATUS=serving 1 feed");
  CHECK(daemon.counter("batches_assembled") > 0);
}

TEST_CASE("systemd: a feed without its first batch has failed before anybody asks") {
  const NotifyListener systemd;
  DaemonProcess daemon("[feed.plan]\norder = \"random\"\nsize = 60\n");
  const float value = small_value(31, 3, 1);
  REQUIRE(flip_byte(daemon.dataset() / "data.mdb", &value, sizeof value));
  REQUIRE(daemon.start());
  // Ready all the same: other feeds are not to wait for it.
  CHECK(systemd.heard(kPatience) == "READY=1\nSTATUS=serving 0 of 1 feed, failed: train");
  const std::string stats = daemon.stats_now();
  CHECK(stats.find("\"state\":\"failed\"") != std::string::npos);
  CHECK(stats.find("\"ready\":false") != std::string::npos);
  CHECK(stats.find("seq-31") != std::string::npos);
  CHECK(daemon.page("/readyz").empty());
}

TEST_CASE("systemd: a feed that fails later changes the status and no more") {
  const NotifyListener systemd;
  DaemonProcess daemon("[feed.plan]\norder = \"sorted\"\nsize = 1\n");
  const auto shortest = std::min_element(daemon.lengths().begin(), daemon.lengths().end());
  const auto last = static_cast<std::uint64_t>(shortest - daemon.lengths().begin());
  const float value = small_value(last, 0, 3);
  REQUIRE(flip_byte(daemon.dataset() / "data.mdb", &value, sizeof value));
  REQUIRE(daemon.start());
  CHECK(systemd.heard(kPatience) == "READY=1\nSTATUS=serving 1 feed");
  Trainer trainer(daemon.endpoint());
  trainer.subscribe([](bw_subscribe_options& options) { options.epochs = 1; });
  bw_status status = BW_OK;
  while (status == BW_OK) status = trainer.next();
  CHECK(status == BW_CORRUPT_RECORD);
  CHECK(systemd.heard(kPatience) == "STATUS=serving 0 of 1 feed, failed: train");
}

TEST_CASE("systemd: a daemon that cannot start never says that it is ready") {
  const NotifyListener systemd;
  DaemonProcess daemon("slots = \"many\"");
  CHECK(daemon.start_and_fail().code == 2);
  CHECK(systemd.heard() == "nothing");
}

TEST_CASE("systemd: a feed without its dataset keeps no other from being ready") {
  const NotifyListener systemd;
  DaemonProcess daemon("");
  daemon.config() += "[[feed]]\nname = \"late\"\ndataset = \"/nowhere/at/all\"\n";
  REQUIRE(daemon.start());
  CHECK(news(systemd) == "READY=1\nSTATUS=serving 1 of 2 feeds, failed: late");
}

TEST_CASE("systemd: the event loop feeds the watchdog, and a stopped one does not") {
  const NotifyListener systemd;
  setenv("WATCHDOG_USEC", "200000", 1);
  DaemonProcess daemon("");
  REQUIRE(daemon.start());
  unsetenv("WATCHDOG_USEC");
  int fed = 0;
  for (int i = 0; i < 5; ++i) fed += systemd.heard(kPatience) == "WATCHDOG=1" ? 1 : 0;
  CHECK(fed >= 4);
  daemon.process().signal(SIGSTOP);
  while (systemd.heard(150) != "nothing") {
  }
  CHECK(systemd.heard(600) == "nothing");
  daemon.process().signal(SIGCONT);
  CHECK(systemd.heard(kPatience) == "WATCHDOG=1");
}

TEST_CASE("systemd: a reload is told when it begins and when it is done, refused or not") {
  const NotifyListener systemd;
  DaemonProcess daemon("");
  REQUIRE(daemon.start());
  REQUIRE(news(systemd).starts_with("READY=1\n"));
  CHECK(daemon.reload());
  CHECK(news(systemd).starts_with("RELOADING=1\nMONOTONIC_USEC="));
  CHECK(news(systemd) == "READY=1\nSTATUS=serving 1 feed");
  daemon.config() += "slotz = 4\n";
  CHECK_FALSE(daemon.reload());
  CHECK(news(systemd).starts_with("RELOADING=1\n"));
  const std::string ready = news(systemd);
  CHECK(ready.starts_with("READY=1\nSTATUS=serving 1 feed; the last reload was refused: "));
  CHECK_MESSAGE(ready.find("slotz") != std::string::npos, ready);
}

TEST_CASE("systemd: stopping is told, and the exit code is 0") {
  const NotifyListener systemd;
  DaemonProcess daemon("");
  REQUIRE(daemon.start());
  REQUIRE(news(systemd).starts_with("READY=1\n"));
  daemon.process().signal(SIGTERM);
  CHECK(news(systemd) == "STOPPING=1");
  CHECK(daemon.process().wait() == 0);
}

TEST_CASE("daemon: SIGTERM from before the start ends it in order, and nothing is opened") {
  DaemonProcess daemon("");
  {
    const BlockedSignals pending;
    daemon.launch();
    daemon.process().signal(SIGTERM);
  }
  CHECK(daemon.process().wait() == 0);
  const std::string log = daemon.process().err();
  CHECK_MESSAGE(log.find("signal 15: stopping") != std::string::npos, log);
  CHECK_MESSAGE(log.find("listening at") == std::string::npos, log);
}

TEST_CASE("daemon: SIGHUP from before the start is no end, but a reload") {
  DaemonProcess daemon("");
  {
    const BlockedSignals pending;
    daemon.launch();
    daemon.process().signal(SIGHUP);
  }
  CHECK(eventually(
      [&] { return daemon.process().err().find("reloaded: 1 unchanged") != std::string::npos; }));
  CHECK(daemon.process().running());
}

TEST_CASE("daemon: an HTTP port in use is named") {
  DaemonProcess daemon("");
  REQUIRE(daemon.start());
  const std::string address = daemon.stats_address().substr(7);
  DaemonProcess other("");
  auto& config = other.config();
  config.replace(config.find("127.0.0.1:0"), 11, address);
  const Finished finished = other.start_and_fail();
  CHECK(finished.code != 0);
  CHECK_MESSAGE(finished.err.find(address) != std::string::npos, finished.err);
  CHECK_MESSAGE(finished.err.find("in use") != std::string::npos, finished.err);
}
