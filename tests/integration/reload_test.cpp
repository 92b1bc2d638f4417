#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <boost/json.hpp>
#include <csignal>
#include <set>
#include <thread>

#include "tests/integration/daemon_process.h"
#include "tests/integration/trainer.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr const char* kSorted = "slots = 8\n[feed.plan]\norder = \"sorted\"\nsize = 4\n";

void replace(std::string& text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  REQUIRE(at != std::string::npos);
  text.replace(at, what.size(), by);
}

/// One more feed of the daemon's dataset.
std::string dev_feed(const DaemonProcess& daemon) {
  return "[[feed]]\nname = \"dev\"\ndataset = \"" + daemon.dataset().string() + "\"\n" + kSorted;
}

boost::json::value reload_figures(DaemonProcess& daemon) {
  return boost::json::parse(daemon.stats()).at("reload");
}

std::string last_refusal(DaemonProcess& daemon) {
  const auto figures = reload_figures(daemon);
  const auto& text = figures.at("last_refusal");
  return text.is_null() ? "" : std::string(text.as_string());
}

void subscribe(Trainer& trainer, const char* feed, std::uint64_t epochs) {
  trainer.subscribe([&](bw_subscribe_options& options) {
    options.feed = feed;
    options.epochs = epochs;
  });
}

std::set<std::uint64_t> all_of(const std::vector<std::vector<std::uint64_t>>& batches) {
  std::set<std::uint64_t> seen;
  for (const auto& batch : batches) seen.insert(batch.begin(), batch.end());
  return seen;
}

}  // namespace

TEST_CASE("reload: a feed is added and removed, and a trainer of another notices nothing") {
  DaemonProcess daemon(kSorted);
  REQUIRE(daemon.start());
  Trainer other(daemon.endpoint(), 0);
  subscribe(other, "train", 0);
  std::atomic<bool> stop = false;
  std::uint64_t read = 0;
  std::thread reading([&] {
    for (; !stop && other.next() == BW_OK; ++read) {
      const auto first = bw_batch_get_header(other.batch());
      if (first->index != read % 15) break;  // each batch in its turn, from before to after
    }
  });
  const std::string before = daemon.config();
  daemon.config() += dev_feed(daemon);
  const bool added = daemon.reload();
  Trainer trainer(daemon.endpoint());
  subscribe(trainer, "dev", 0);
  const bool served = trainer.next() == BW_OK;
  daemon.config() = before;
  const bool removed = daemon.reload();
  bw_status status = BW_OK;
  while (status == BW_OK) status = trainer.next();
  const std::string reason = bw_error_message();
  const std::string stats = daemon.stats();
  const std::uint64_t then = daemon.counter("batches_delivered");
  const bool goes_on = eventually([&] { return daemon.counter("batches_delivered") > then + 100; });
  stop = true;
  reading.join();
  CHECK(added);
  CHECK(served);
  CHECK(removed);
  CHECK(goes_on);
  CHECK(status == BW_NOT_FOUND);
  CHECK_MESSAGE(reason.find("feed dev was removed") != std::string::npos, reason);
  CHECK(stats.find("\"dev\"") == std::string::npos);
  CHECK(daemon.process().err().find("feed train has changed") == std::string::npos);
}

TEST_CASE("reload: a feed with other slots is replaced, and its trainer goes on at its place") {
  DaemonProcess daemon(kSorted);
  REQUIRE(daemon.start());
  Trainer trainer(daemon.endpoint());
  subscribe(trainer, "train", 1);
  std::vector<std::vector<std::uint64_t>> seen{trainer.next_ordinals(), trainer.next_ordinals()};
  const bw_batch* held = trainer.batch();
  replace(daemon.config(), "slots = 8", "slots = 6");
  REQUIRE(daemon.reload());
  const auto* features = static_cast<const float*>(bw_batch_tensor_named(held, "features")->data);
  CHECK(features[5] == small_value(seen[1][0], 1, 1));
  const auto rest = trainer.ordinals_until_end();
  CHECK(rest.size() == 13);
  seen.insert(seen.end(), rest.begin(), rest.end());
  CHECK(all_of(seen).size() == 60);
  CHECK(last_refusal(daemon).empty());
}

TEST_CASE("reload: a trainer of a feed with another plan is told what has changed") {
  DaemonProcess daemon(kSorted);
  REQUIRE(daemon.start());
  Trainer trainer(daemon.endpoint());
  subscribe(trainer, "train", 0);
  REQUIRE(trainer.next() == BW_OK);
  daemon.config() += "seed = 7\n";
  REQUIRE(daemon.reload());
  bw_status status = BW_OK;
  while (status == BW_OK) status = trainer.next();
  const std::string reason = bw_error_message();
  CHECK(status == BW_FINGERPRINT_MISMATCH);
  CHECK_MESSAGE(reason.find("seed: 0 before, 7 now") != std::string::npos, reason);
  Trainer anew(daemon.endpoint());
  subscribe(anew, "train", 1);
  CHECK(anew.ordinals_until_end().size() == 15);
}

TEST_CASE("reload: settings that concern no batch change in place") {
  DaemonProcess daemon(kSorted);
  REQUIRE(daemon.start());
  Trainer trainer(daemon.endpoint(), 0);
  subscribe(trainer, "train", 0);
  REQUIRE(trainer.next() == BW_OK);
  replace(daemon.config(), "slots = 8", "slots = 8\nmax_window = 2");
  REQUIRE(daemon.reload());
  for (int i = 0; i < 40; ++i) REQUIRE(trainer.next() == BW_OK);
  CHECK(trainer.grant().window == 4);
  Trainer later(daemon.endpoint());
  subscribe(later, "train", 0);
  CHECK(later.grant().window == 2);
}

TEST_CASE("reload: a configuration with a fault changes nothing and is told of") {
  DaemonProcess daemon(kSorted);
  REQUIRE(daemon.start());
  Trainer trainer(daemon.endpoint(), 0);
  subscribe(trainer, "train", 0);
  REQUIRE(trainer.next() == BW_OK);
  std::string named;
  SUBCASE("syntax") {
    daemon.config() += "seed = \n";
    named = "config.toml:13:";
  }
  SUBCASE("unknown key") {
    daemon.config() += "sede = 1\n";
    named = "feed.plan.sede: unknown key";
  }
  SUBCASE("missing dataset, beside a feed that could be added") {
    daemon.config() += dev_feed(daemon) + "[[feed]]\nname = \"gone\"\ndataset = \"/nowhere\"\n";
    named = "feed gone: dataset /nowhere does not exist";
  }
  SUBCASE("an arena that does not fit") {
    replace(daemon.config(), "slots = 8", "slots = 60000");
    named = "feed train: its arena needs ";
  }
  SUBCASE("a key that needs a restart") {
    replace(daemon.config(), "256MiB", "257MiB");
    named = "daemon.memory cannot change while the daemon runs";
  }
  SUBCASE("an unknown account") {
    replace(daemon.config(), "[daemon]", "[daemon]\nallow_uids = [\"no-such-user\"]");
    named = "no-such-user";
  }
  CHECK_FALSE(daemon.reload());
  const std::string log = daemon.process().err();
  CHECK_MESSAGE(log.find(named) != std::string::npos, log);
  CHECK_MESSAGE(last_refusal(daemon).find(named) != std::string::npos, last_refusal(daemon));
  CHECK(boost::json::parse(daemon.stats()).at("feeds").as_array().size() == 1);
  for (int i = 0; i < 20; ++i) REQUIRE(trainer.next() == BW_OK);
}

TEST_CASE("reload: a configuration that has vanished or turned into a folder changes nothing") {
  DaemonProcess daemon(kSorted);
  REQUIRE(daemon.start());
  const auto file = daemon.folder() / "config.toml";
  std::filesystem::remove(file);
  SUBCASE("vanished") {}
  SUBCASE("a folder") { std::filesystem::create_directory(file); }
  CHECK_FALSE(daemon.reload_as_it_is());
  CHECK_MESSAGE(last_refusal(daemon).find("config.toml: cannot be read") != std::string::npos,
                last_refusal(daemon));
  std::filesystem::remove(file);
  CHECK(daemon.reload());
  CHECK(daemon.process().err().find("; 1 unchanged") == std::string::npos);
  CHECK(daemon.process().err().find("1 unchanged") != std::string::npos);
  CHECK(last_refusal(daemon).empty());
  CHECK(reload_figures(daemon).at("applied").to_number<int>() == 1);
  CHECK(reload_figures(daemon).at("refused").to_number<int>() == 1);
}

TEST_CASE("reload: a feed that has failed is opened again, its journal and changed keys too") {
  DaemonProcess daemon(kSorted, 3000);
  replace(daemon.config(), "[daemon]\n", "[daemon]\nfeed_grace = \"0s\"\n");
  replace(daemon.config(), "slots = 8",
          "slots = 8\njournal = \"" + (daemon.folder() / "journal").string() + "\"");
  REQUIRE(daemon.start());
  const auto data = daemon.dataset() / "data.mdb";
  const auto spare = daemon.folder() / "spare";
  std::filesystem::create_directory(spare);
  std::filesystem::copy(data, spare / "data.mdb");
  std::filesystem::resize_file(data, 64 * 1024);
  {
    Trainer victim(daemon.endpoint());
    const auto read = [&] {
      subscribe(victim, "train", 1);
      victim.ordinals_until_end();
    };
    CHECK_THROWS(read());  // at once, or at the first batch past the cut
  }
  const auto has_failed = [&] {
    return daemon.stats().find("\"state\":\"failed\"") != std::string::npos;
  };
  REQUIRE(eventually(has_failed));
  REQUIRE(daemon.reload());  // as broken as before
  REQUIRE(eventually(has_failed));
  std::string told = "opened anew train; 0 unchanged";
  SUBCASE("as it was") {
    std::filesystem::rename(daemon.dataset(), daemon.folder() / "broken");
    std::filesystem::rename(spare, daemon.dataset());
  }
  SUBCASE("changed") {  // elsewhere, or it would be opened with its old keys at once
    told = "replaced train";
    replace(daemon.config(), "slots = 8", "slots = 6");
    replace(daemon.config(), daemon.dataset().string(), spare.string());
  }
  REQUIRE(daemon.reload());
  CHECK(eventually([&] { return daemon.process().err().find(told) != std::string::npos; }));
  Trainer trainer(daemon.endpoint());
  subscribe(trainer, "train", 1);
  CHECK(trainer.ordinals_until_end().size() == 750);
}

TEST_CASE("reload: a running queue keeps its feed from being replaced") {
  DaemonProcess daemon("");
  const std::string journal = (daemon.folder() / "journal").string();
  daemon.config() += "journal = \"" + journal + "\"\nslots = 8\n";
  REQUIRE(daemon.start());
  replace(daemon.config(), "slots = 8", "slots = 6");
  CHECK_FALSE(daemon.reload());
  CHECK(last_refusal(daemon).find("slots cannot change while its queue goes on in " + journal) !=
        std::string::npos);
}

TEST_CASE("reload: a record that is written keeps its feed from being replaced") {
  DaemonProcess daemon("");
  const std::string record = (daemon.folder() / "run").string();
  daemon.config() +=
      "[[feed]]\nname = \"live\"\npool = \"1MiB\"\nfields = { tokens = { dtype = \"int32\" } "
      "}\n[feed.live]\n"
      "max_length = 100\nstep = { sequences = 8 }\nrecord = \"" +
      record + "\"\n";
  REQUIRE(daemon.start());
  CHECK_MESSAGE(std::filesystem::exists(record + ".order"), daemon.process().err());
  replace(daemon.config(), "sequences = 8", "sequences = 4");
  CHECK_FALSE(daemon.reload());
  CHECK(last_refusal(daemon).find("live.step cannot change while its steps are recorded in " +
                                  record) != std::string::npos);
}

TEST_CASE("reload: a journal goes from one feed to another in two reloads") {
  DaemonProcess daemon("");
  const std::string journal = "journal = \"" + (daemon.folder() / "journal").string() + "\"\n";
  daemon.config() += journal + kSorted;
  REQUIRE(daemon.start());
  replace(daemon.config(), journal, "");
  const std::string without = daemon.config();
  std::string dev = dev_feed(daemon);
  replace(dev, "slots", journal + "slots");
  daemon.config() += dev;
  CHECK_FALSE(daemon.reload());
  const std::string told = last_refusal(daemon);
  CHECK_MESSAGE(told.find("feed dev: journal ") != std::string::npos, told);
  CHECK_MESSAGE(
      told.find(" is written by feed train; remove it there in one reload") != std::string::npos,
      told);
  daemon.config() = without;
  CHECK(daemon.reload());
  daemon.config() += dev;
  CHECK(daemon.reload());
}

TEST_CASE("reload: many changes in a row, with trainers that read throughout") {
  DaemonProcess daemon(kSorted);
  REQUIRE(daemon.start());
  std::atomic<bool> stop = false;
  std::atomic<std::uint64_t> failures = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      Trainer trainer(daemon.endpoint());
      subscribe(trainer, "train", 0);
      for (std::uint64_t due = 0; !stop; ++due) {
        const bool ok =
            trainer.next() == BW_OK && bw_batch_get_header(trainer.batch())->index == due % 15;
        if (!ok) failures++;
        if (!ok) return;
      }
    });
  }
  int applied = 0;
  for (int i = 0; i < 20; ++i) {
    const bool even = i % 2 == 0;
    replace(daemon.config(), even ? "slots = 8" : "slots = 6", even ? "slots = 6" : "slots = 8");
    applied += daemon.reload() ? 1 : 0;
  }
  stop = true;
  for (auto& reader : readers) reader.join();
  CHECK(applied == 20);
  CHECK(failures == 0);
  // What was replaced is given back to the ceiling.
  const auto arena = [&] {
    const auto page = boost::json::parse(daemon.stats());
    return page.at("arena_bytes") == page.at("feeds").at(0).at("arena_bytes");
  };
  CHECK(eventually(arena));
}

TEST_CASE("reload: a live feed takes other limits in place, and bad ones leave those that it had") {
  DaemonProcess daemon(kSorted);
  daemon.config() +=
      "[[feed]]\nname = \"live\"\npool = \"1MiB\"\n[feed.fields]\nx = { dtype = \"float32\" "
      "}\n[feed.live]\n"
      "max_length = 50\nstep = { sequences = 4 }\npool_sequences = 4\n";
  REQUIRE(daemon.start());
  bw_connection* connection = nullptr;
  REQUIRE(bw_connect(daemon.endpoint().c_str(), nullptr, &connection) == BW_OK);
  bw_produce_options options = BW_PRODUCE_OPTIONS_INIT;
  options.feed = "live";
  bw_producer* producer = nullptr;
  REQUIRE(bw_produce(connection, &options, &producer) == BW_OK);
  const auto push = [producer](std::int64_t timeout_ms) {
    const float x[3] = {1, 2, 3};
    const bw_value value{x, sizeof x, 3};
    const bw_sequence sequence{nullptr, 0, &value, 1};
    return bw_push(producer, &sequence, nullptr, timeout_ms, nullptr);
  };
  const auto incarnation = [producer] {
    bw_producer_info info{};
    info.struct_size = sizeof info;
    bw_producer_get_info(producer, &info);
    return info.incarnation;
  };
  for (int i = 0; i < 4; ++i) REQUIRE(push(20'000) == BW_OK);
  CHECK(push(50) == BW_TIMED_OUT);
  const std::uint64_t first = incarnation();
  replace(daemon.config(), "pool_sequences = 4", "pool_sequences = 6\nlinger = \"0s\"");
  REQUIRE(daemon.reload());
  CHECK(push(20'000) == BW_OK);
  CHECK(incarnation() == first);
  replace(daemon.config(), "pool_sequences = 6", "pool_sequences = 3");
  CHECK_FALSE(daemon.reload());
  CHECK(last_refusal(daemon).find(
            "feed.live.pool_sequences: found 3; allowed: 4 and up, for a step") !=
        std::string::npos);
  CHECK(push(20'000) == BW_OK);
  Trainer trainer(daemon.endpoint());
  subscribe(trainer, "live", 0);
  std::size_t rows = 0;
  while (rows < 6 && trainer.next() == BW_OK) rows += trainer.last_rows();  // two by linger
  CHECK(rows == 6);
  bw_producer_close(producer, 1000);
  bw_close(connection);
}
