// The rows of [[feed]], and of the table [feed.plan] below it.

#include <array>
#include <utility>

#include "daemon/config/keys.h"

namespace batchwright {

namespace {

/// A name is part of paths (/feeds/NAME/plan) and of labels, so it has no blank and no slash.
Fault read_feed_name(const ConfigNode& node, std::string& out) {
  std::string name;
  if (const Fault fault = read_text(node, name)) return fault;
  if (name.empty() || !is_name(name, 64)) return &node;
  out = std::move(name);
  return nullptr;
}

Fault read_dataset(const ConfigNode& node, std::vector<std::filesystem::path>& out) {
  std::vector<std::string> paths;
  if (const Fault fault = read_texts(node, paths)) return fault;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    // Refused here, with its line: as a dataset it would only fail to open.
    if (paths[i].empty()) return node.list() == nullptr ? &node : &(*node.list())[i];
  }
  out.assign(paths.begin(), paths.end());
  return nullptr;
}

Fault read_lock(const ConfigNode& node, Locking& out) {
  bool lock = false;
  if (const Fault fault = read_bool(node, lock)) return fault;
  out = lock ? Locking::on : Locking::off;
  return nullptr;
}

Fault read_padding(const ConfigNode& node, PaddingValues& out) {
  if (node.table() == nullptr) return &node;
  PaddingValues values;
  for (const ConfigNode& entry : node.table()->entries) {
    // Whether the dataset has such a field is seen when the feed is opened.
    if (const Fault fault = read_real(entry, values[entry.key])) return fault;
  }
  out = std::move(values);
  return nullptr;
}

Fault read_narrow_float(const ConfigNode& node, DType& out) {
  return read_word(node, out, {{"float16", DType::float16}, {"bfloat16", DType::bfloat16}});
}

/// One dtype for every float32 field, or a table of fields.
Fault read_casts(const ConfigNode& node, Casts& out) {
  Casts casts;
  if (node.table() == nullptr) {
    // An empty text is what the default says: nothing is cast.
    const bool none = node.text() != nullptr && node.text()->empty();
    if (const Fault fault = none ? nullptr : read_narrow_float(node, casts.all)) return fault;
  } else {
    for (const ConfigNode& entry : node.table()->entries) {
      // Whether the dataset has such a field is seen when the feed is opened.
      if (const Fault fault = read_narrow_float(entry, casts.fields[entry.key])) return fault;
    }
  }
  out = std::move(casts);
  return nullptr;
}

Fault read_row_cache(const ConfigNode& node, std::uint64_t& out) {
  return read_bytes(node, out, 0);
}

/// 0 leaves it to the feed.
Fault read_slots(const ConfigNode& node, std::uint32_t& out) {
  std::uint32_t slots = 0;
  if (const Fault fault = read_whole<0, 65536>(node, slots)) return fault;
  if (slots == 1) return &node;
  out = slots;
  return nullptr;
}

Fault read_on_corrupt(const ConfigNode& node, OnCorrupt& out) {
  return read_word(node, out, {{"stop", OnCorrupt::stop}, {"skip", OnCorrupt::skip}});
}

Fault read_verify(const ConfigNode& node, VerifyRecords& out) {
  return read_word(node, out,
                   {{"once", VerifyRecords::once},
                    {"always", VerifyRecords::always},
                    {"never", VerifyRecords::never}});
}

Fault read_huge_pages(const ConfigNode& node, HugePages& out) {
  return read_word(
      node, out,
      {{"auto", HugePages::automatic}, {"off", HugePages::off}, {"require", HugePages::require}});
}

Fault read_layout(const ConfigNode& node, Layout& out) {
  return read_word(node, out,
                   {{"batch-major", Layout::batch_major}, {"time-major", Layout::time_major}});
}

// FeedConfig's members concern the opening of the dataset, FeedSettings' the serving.
using F = FeedConfig;
using S = FeedSettings;
using enum Applies;
using enum OfFeeds;

constexpr std::array kFeedKeys{
    feed_key<&S::name, read_feed_name>(
        {"name", "1 to 64 of A-Z a-z 0-9 _ . -", "", anew, "What trainers subscribe to"}),
    feed_key<&F::dataset, read_dataset>({"dataset",
                                         "path of a dataset, or a list of paths of its shards", "",
                                         anew, "The sequences that are served", stored}),
    feed_key<&F::lock, read_lock>(
        {"lock", "true or false", "true", anew,
         "Whether readers take a slot in the dataset's lock.mdb, so that writers spare the pages "
         "read",
         stored}),
    feed_key<&S::slots, read_slots>({"slots", "0, or 2 to 65536", "0", anew,
                                     "Batches that the arena holds; 0 for as many as suit world"}),
    feed_key<&S::huge_pages, read_huge_pages>(
        {"huge_pages", "auto off require", R"("auto")", anew,
         "Whether the arena lies in huge pages: auto: if there are any; off: never; require: only "
         "with them"}),
    feed_key<&S::on_corrupt, read_on_corrupt>({"on_corrupt", "stop skip", R"("stop")", in_place,
                                               "What happens when a record fails verification",
                                               stored}),
    feed_key<&S::max_corrupt_share, read_probability>(
        {"max_corrupt_share", "0 to 1", "0.01", in_place,
         "With on_corrupt = \"skip\", the share of an epoch's sequences above which the feed fails "
         "all the same",
         stored}),
    feed_key<&F::verify, read_verify>({"verify", "once always never", R"("once")", anew,
                                       "How often a record's checksum is compared", stored}),
    feed_key<&S::layout, read_layout>({"layout", "batch-major time-major", R"("batch-major")", anew,
                                       "Order of a tensor's first two dimensions"}),
    feed_key<&S::padding, read_padding>(
        {"padding",
         "a table with a finite number for each field that it names, such as { labels = -100 }",
         "{}", anew, "Padding behind the real frames of a row, by field"}),
    feed_key<&S::casts, read_casts>(
        {"dtype",
         "float16 or bfloat16; a table of them by field, such as { features = \"float16\" }; "
         "\"\" for none",
         R"("")", anew, "What float32 fields are cast to on their way into a batch"}),
    feed_key<&S::row_cache_bytes, read_row_cache>(
        {"row_cache", "0 and up, a number of bytes or a text with B, KiB, MiB, GiB or TiB",
         R"("128MiB")", anew, "Made rows that are kept for the parts of them that follow", stored}),
    feed_key<&S::max_window, read_whole<1, 65536>>(
        {"max_window", "1 to 65536", "8", in_place,
         "Batches that one subscription may hold unreleased"}),
    feed_key<&S::poison, read_bool>(
        {"poison", "true or false", "false", in_place,
         "Overwrites released slots, to find trainers that read a batch they have given back"}),
    feed_key<&S::max_lead, read_whole<0, 1'000'000>>(
        {"max_lead", "0 to 1000000", "0", in_place,
         "Global steps that the fastest subscription may be ahead of the slowest; 0 for any"}),
    feed_key<&S::journal, read_path>({"journal", "path of a file; \"\" for none", R"("")", anew,
                                      "File in which queue mode notes which batches are done"}),
    feed_key<&S::queue_attempts, read_whole<0, 1'000'000>>(
        {"queue_attempts", "0 to 1000000", "0", in_place,
         "How often a queue's batch may be begun and not done before it is set aside; 0 for any"}),
    feed_key<&S::ledger, read_path>(
        {"ledger", "path of a file; \"\" for none", R"("")", anew,
         "File that records which sequence went to which client in which step"}),
    feed_key<&S::follow, read_bool>(
        {"follow", "true or false", "false", anew,
         "Whether each epoch takes up the sequences that a writer has appended meanwhile", stored}),
};

}  // namespace

std::span<const Key<FeedConfig>> feed_keys() { return kFeedKeys; }

}  // namespace batchwright
