// Datasets that become others under a daemon that serves them.

#include <doctest/doctest.h>

#include <boost/json.hpp>
#include <fstream>

#include "tests/integration/daemon_process.h"
#include "tests/integration/trainer.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr std::size_t kSequences = 400;
constexpr std::uint64_t kOld = 1000;  ///< The values' numbers begin here: keys are of one length,
constexpr std::uint64_t kNew = 5000;  ///< and so are the files.

std::string sorted(const std::string& more = {}) {
  return more + "slots = 4\n[feed.plan]\norder = \"sorted\"\nsize = 4\n";
}

/// Whose dataset has the old values.
struct OldData : DaemonProcess {
  explicit OldData(const std::string& feed = sorted()) : DaemonProcess(feed, 0) {
    make(dataset(), kOld);
  }
  static void make(const std::filesystem::path& path, std::uint64_t first) {
    make_small_dataset(path, mixed_lengths(kSequences, 20), first);
  }
  boost::json::value feed() { return boost::json::parse(stats_now()).at("feeds").at(0); }
  bool is_stale() { return feed().at("dataset_stale").as_bool(); }
};

std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Into the same file, whose bytes are never fewer.
void overwrite(const std::filesystem::path& file, const std::string& bytes) {
  std::fstream out(file, std::ios::in | std::ios::out | std::ios::binary);
  out.write(bytes.data(), static_cast<long>(bytes.size()));
  REQUIRE(out.flush());
}

/// As an earlier version would have written it: nothing is where the checksums were.
void leave_out_checksums(const std::filesystem::path& dataset) {
  const std::string key{"\0\0\0\0\0\xFF\x0F\0", 8};
  std::string bytes = bytes_of(dataset / "data.mdb");
  std::size_t places = 0;
  for (std::size_t at = 0; (at = bytes.find(key, at)) != std::string::npos; ++places) {
    bytes[at + 5] = '\xFE';
  }
  REQUIRE(places > 0);
  overwrite(dataset / "data.mdb", bytes);
}

void subscribe(Trainer& trainer, std::uint64_t epochs) {
  trainer.subscribe([&](bw_subscribe_options& options) { options.epochs = epochs; });
}

/// Whether each value of each row is that of a dataset whose numbers begin at `first`.
bool is_of(const bw_batch* batch, std::uint64_t first) {
  const bw_batch_header& header = *bw_batch_get_header(batch);
  const bw_tensor& features = *bw_batch_tensor_named(batch, "features");
  const auto* values = static_cast<const float*>(features.data);
  const std::uint64_t frames = features.shape[1];
  for (std::uint32_t row = 0; row < header.sequences; ++row) {
    for (std::uint32_t t = 0; t < header.lengths[row]; ++t) {
      if (values[(row * frames + t) * 4] != small_value(first + header.ordinals[row], t, 0)) {
        return false;
      }
    }
  }
  return true;
}

/// Takes batches until there is none, each of which is of the old data. What ended it.
bw_status take_old(Trainer& trainer) {
  bw_status status = BW_OK;
  while ((status = trainer.next()) == BW_OK) REQUIRE(is_of(trainer.batch(), kOld));
  return status;
}

}  // namespace

TEST_CASE("replaced data: of a file that is overwritten in mid-epoch not one batch is delivered") {
  std::string verify = "once";
  bool with_checksums = true;
  SUBCASE("checked once") {}
  SUBCASE("checked never") { verify = "never"; }
  SUBCASE("without checksums in the index") { with_checksums = false; }
  OldData daemon(sorted("verify = \"" + verify + "\"\non_corrupt = \"skip\"\n"));
  if (!with_checksums) leave_out_checksums(daemon.dataset());
  OldData::make(daemon.folder() / "new", kNew);
  REQUIRE(daemon.start());
  Trainer trainer(daemon.endpoint());
  subscribe(trainer, 0);
  for (int i = 0; i < 5; ++i) {
    REQUIRE(trainer.next() == BW_OK);
    REQUIRE(is_of(trainer.batch(), kOld));
  }
  overwrite(daemon.dataset() / "data.mdb", bytes_of(daemon.folder() / "new" / "data.mdb"));
  CHECK(take_old(trainer) == BW_FINGERPRINT_MISMATCH);
  const std::string told = bw_error_message();
  const std::string why =
      "dataset " + daemon.dataset().string() + ": data.mdb was overwritten in place";
  CHECK_MESSAGE(told.starts_with("feed train failed: "), told);
  CHECK_MESSAGE(told.find(why) != std::string::npos, told);
  CHECK(daemon.feed().at("state") == "failed");
  CHECK(daemon.feed().at("counters").at("sequences_skipped") == 0);
  CHECK(daemon.process().err().find(why) != std::string::npos);
  // The reload opens what is there now.
  REQUIRE(daemon.reload_as_it_is());
  Trainer anew(daemon.endpoint());
  subscribe(anew, 1);
  REQUIRE(anew.next() == BW_OK);
  CHECK(is_of(anew.batch(), kNew));
}

TEST_CASE("replaced data: the start of an epoch finds that the path leads elsewhere") {
  OldData daemon;
  const auto next = daemon.folder() / "new";
  OldData::make(next, kNew);
  REQUIRE(daemon.start());
  Trainer trainer(daemon.endpoint());
  subscribe(trainer, 0);
  REQUIRE(trainer.next() == BW_OK);
  CHECK_FALSE(daemon.is_stale());
  SUBCASE("renamed within the folder") {
    std::filesystem::rename(next / "data.mdb", daemon.dataset() / "data.mdb");
  }
  SUBCASE("another folder in its place") {
    std::filesystem::rename(daemon.dataset(), daemon.folder() / "old");
    std::filesystem::rename(next, daemon.dataset());
  }
  SUBCASE("removed and written again") {
    std::filesystem::remove_all(daemon.dataset());
    OldData::make(daemon.dataset(), kNew);
  }
  const bool told = eventually([&] {
    REQUIRE(trainer.next() == BW_OK);
    REQUIRE(is_of(trainer.batch(), kOld));
    return daemon.process().err().find("was replaced while it was open") != std::string::npos;
  });
  CHECK(told);
  CHECK(daemon.is_stale());
  CHECK(daemon.feed().at("state") == "serving");
  CHECK(std::string(daemon.feed().at("reason").as_string()).find("was replaced") !=
        std::string::npos);
  CHECK(daemon.page("/metrics").find("batchwright_dataset_stale{feed=\"train\"} 1") !=
        std::string::npos);
  CHECK_FALSE(daemon.page("/readyz").empty());
  REQUIRE(daemon.reload_as_it_is());
  CHECK(daemon.process().err().find("reloaded: train is opened anew: dataset ") !=
        std::string::npos);
  CHECK(take_old(trainer) == BW_FINGERPRINT_MISMATCH);
  Trainer anew(daemon.endpoint());
  subscribe(anew, 1);
  std::size_t batches = 0;
  for (; anew.next() == BW_OK; ++batches) CHECK(is_of(anew.batch(), kNew));
  CHECK(batches == kSequences / 4);
  CHECK_FALSE(daemon.is_stale());
}

TEST_CASE("replaced data: a reload looks by itself, and a copy of the same data ends no training") {
  OldData daemon;
  OldData::make(daemon.folder() / "copy", kOld);
  REQUIRE(daemon.start());
  Trainer trainer(daemon.endpoint());
  subscribe(trainer, 1);
  REQUIRE(trainer.next() == BW_OK);
  std::filesystem::rename(daemon.folder() / "copy" / "data.mdb", daemon.dataset() / "data.mdb");
  REQUIRE(daemon.reload_as_it_is());
  CHECK(daemon.process().err().find("train is opened anew") != std::string::npos);
  std::size_t batches = 1;
  for (; trainer.next() == BW_OK; ++batches) CHECK(is_of(trainer.batch(), kOld));
  CHECK(batches == kSequences / 4);
}

TEST_CASE("replaced data: a dataset that is gone is told, and served on over a reload") {
  OldData daemon;
  REQUIRE(daemon.start());
  Trainer trainer(daemon.endpoint());
  subscribe(trainer, 0);
  REQUIRE(trainer.next() == BW_OK);
  std::filesystem::rename(daemon.dataset(), daemon.folder() / "away");
  CHECK(eventually([&] {
    REQUIRE(trainer.next() == BW_OK);
    return daemon.process().err().find("was removed while it was open") != std::string::npos;
  }));
  REQUIRE(daemon.reload_as_it_is());
  for (int i = 0; i < 10; ++i) REQUIRE(trainer.next() == BW_OK);
  std::filesystem::rename(daemon.folder() / "away", daemon.dataset());
  CHECK(eventually([&] {
    REQUIRE(trainer.next() == BW_OK);
    REQUIRE(is_of(trainer.batch(), kOld));
    return !daemon.is_stale();
  }));
}

TEST_CASE("replaced data: one shard of several, by a link, is enough") {
  OldData daemon;
  const auto folder = daemon.folder();
  OldData::make(folder / "second", kOld + kSequences);
  OldData::make(folder / "other", kNew);
  std::filesystem::create_directory_symlink(folder / "second", folder / "link");
  const std::string path = "dataset = \"" + daemon.dataset().string() + "\"";
  std::string& config = daemon.config();
  config.replace(
      config.find(path), path.size(),
      "dataset = [\"" + daemon.dataset().string() + "\", \"" + (folder / "link").string() + "\"]");
  REQUIRE(daemon.start());
  Trainer trainer(daemon.endpoint());
  subscribe(trainer, 0);
  REQUIRE(trainer.next() == BW_OK);
  std::filesystem::remove(folder / "link");
  std::filesystem::create_directory_symlink(folder / "other", folder / "link");
  CHECK(eventually([&] {
    REQUIRE(trainer.next() == BW_OK);
    REQUIRE(is_of(trainer.batch(), kOld));
    return daemon.process().err().find("link was replaced while it was open") != std::string::npos;
  }));
}

TEST_CASE("replaced data: what is appended is growth, with and without checksums") {
  OldData daemon(sorted("follow = true\n"));
  SUBCASE("with") {}
  SUBCASE("without") { leave_out_checksums(daemon.dataset()); }
  REQUIRE(daemon.start());
  Trainer trainer(daemon.endpoint());
  subscribe(trainer, 0);
  REQUIRE(trainer.next() == BW_OK);
  make_small_dataset(daemon.dataset(), mixed_lengths(40, 20), kOld + kSequences);
  CHECK(eventually([&] {
    REQUIRE(trainer.next() == BW_OK);
    REQUIRE(is_of(trainer.batch(), kOld));
    return daemon.feed().at("sequences").to_number<std::size_t>() == kSequences + 40;
  }));
  CHECK_FALSE(daemon.is_stale());
  REQUIRE(daemon.reload_as_it_is());
  CHECK(daemon.process().err().find("reloaded: 1 unchanged") != std::string::npos);
  REQUIRE(trainer.next() == BW_OK);
}
