#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "tests/integration/daemon_process.h"
#include "tests/integration/seen.h"
#include "tests/support/full_dataset.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// A feed over 50 sequences of up to 50 frames with all kinds of fields.
struct Feed {
  explicit Feed(const std::string& plan, const std::string& settings = "")
      : daemon(settings + "[feed.plan]\n" + plan, 0) {
    make_full_dataset(daemon.dataset(), mixed_lengths(50, 50));
  }
  std::string order() const { return (daemon.folder() / "order").string(); }
  void write(const std::string& text) const { std::ofstream(order()) << text; }
  /// Serves the order file in place of the plan that it was made with.
  void serve_order(const std::string& more) {
    daemon.config().erase(daemon.config().find("[feed.plan]"));
    daemon.config() +=
        "[feed.plan]\norder = \"file\"\ncut = \"file\"\norder_file = \"" + order() + "\"\n" + more;
  }

  DaemonProcess daemon;
};

/// Batches as an order file has them; each second row by its key.
std::string file_of(const std::vector<SeenBatch>& batches) {
  std::string text = "# recorded\n";
  for (const SeenBatch& batch : batches) {
    std::string line;
    for (std::size_t r = 0; r < batch.rows.size(); ++r) {
      const SeenRow& row = batch.rows[r];
      line += (line.empty() ? "" : "\t") + std::string(r % 2 == 0 ? "#" : "seq-") +
              std::to_string(row.ordinal) + " " + std::to_string(row.start) + " " +
              std::to_string(row.length);
    }
    text += line + "\n";
  }
  return text;
}

Fingerprint fingerprint_in(DaemonProcess& daemon) {
  Fingerprint found;
  take(daemon.endpoint(), {}, [&found](const bw_batch* batch) {
    const auto& told = bw_batch_get_header(batch)->fingerprint;
    found = {told.data, told.settings, told.seed};
  });
  return found;
}

}  // namespace

TEST_CASE("integration: an epoch that was served is served again from an order file") {
  Feed feed(
      "order = \"semi-sorted\"\ncut = \"dynamic\"\nsize = 3\nworld = 2\nshuffle = \"groups\"\n"
      "chunk = 20\nhop = 15\n");
  REQUIRE(feed.daemon.start());
  const auto recorded = take(feed.daemon.endpoint(), {});
  feed.write(file_of(recorded));
  feed.serve_order("world = 2\n");
  REQUIRE(feed.daemon.reload());
  CHECK(take(feed.daemon.endpoint(), {}, check_full_batch) == recorded);
}

TEST_CASE("integration: a feed keeps the rows of its order file until a reload finds another") {
  Feed feed("");
  feed.serve_order("");
  feed.write("seq-3\tseq-4\nseq-3\n");
  REQUIRE(feed.daemon.start());
  const auto before = take(feed.daemon.endpoint(), {.epochs = 2});
  REQUIRE(before.size() == 4);
  const Fingerprint first = fingerprint_in(feed.daemon);
  feed.write("seq-5\n");
  CHECK(take(feed.daemon.endpoint(), {.epochs = 2}) == before);
  REQUIRE(feed.daemon.reload_as_it_is());
  const auto after = take(feed.daemon.endpoint(), {.epochs = 2});
  REQUIRE(after.size() == 2);
  CHECK(after[0].rows[0].ordinal == 5);
  CHECK(fingerprint_in(feed.daemon).settings != first.settings);
  // The rows of before in another file, and by ordinal: the same fingerprint.
  std::filesystem::remove(feed.order());
  std::ofstream(feed.order() + "2") << "# elsewhere\n#3\t#4\n#3\n";
  std::string& config = feed.daemon.config();
  config.replace(config.find(feed.order()), feed.order().size(), feed.order() + "2");
  REQUIRE(feed.daemon.reload());
  CHECK(fingerprint_in(feed.daemon) == first);
}

TEST_CASE("integration: a fault of an order file refuses a reload, and the feed goes on") {
  Feed feed("");
  feed.serve_order("");
  feed.write("seq-3\n");
  REQUIRE(feed.daemon.start());
  feed.write("seq-3\nnobody\n");
  CHECK_FALSE(feed.daemon.reload_as_it_is());
  const auto batches = take(feed.daemon.endpoint(), {});
  REQUIRE(batches.size() == 1);
  CHECK(batches[0].rows[0].ordinal == 3);
}
