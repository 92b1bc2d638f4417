#pragma once

#include <doctest/doctest.h>

#include <boost/json.hpp>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/integration/daemon_process.h"
#include "tests/integration/trainer.h"

namespace batchwright::test {

/// The label of small_schema().
inline const std::string kSameLabel = "label = { dtype = \"int32\", kind = \"scalar\" }";

/// A live feed "live" behind a configuration, with steps of so many sequences and the fields of a
/// small dataset, unless another second field is given.
inline std::string live_feed(int step, const std::string& second = kSameLabel,
                             int pool_sequences = 1000) {
  return "[[feed]]\nname = \"live\"\npool = \"8MiB\"\n[feed.fields]\nfeatures = { dtype = "
         "\"float32\", shape = [4] "
         "}\n" +
         second + "\n[feed.live]\nmax_length = 50\nlinger = \"0s\"\nstep = { sequences = " +
         std::to_string(step) + " }\npool_sequences = " + std::to_string(pool_sequences) + "\n";
}

/// Runs the command on this daemon.
inline Finished command(const DaemonProcess& daemon, std::vector<std::string> words) {
  words.insert(words.begin(), program("batchwright"));
  words.insert(words.end(), {"--endpoint", daemon.endpoint()});
  return run(words);
}

/// What a command said with --json.
inline boost::json::object answer(const Finished& finished) {
  REQUIRE_MESSAGE(finished.code == 0, finished.err);
  return boost::json::parse(finished.out).as_object();
}

/// A sequence of a small dataset: its key, label and features.
using Taken = std::pair<std::string, std::vector<float>>;

inline void add_rows(const bw_batch* raw, std::multiset<Taken>& all) {
  const bw_batch_header& header = *bw_batch_get_header(raw);
  const bw_tensor& features = *bw_batch_tensor_named(raw, "features");
  const bw_tensor& labels = *bw_batch_tensor_named(raw, "label");
  const auto* const values = static_cast<const float*>(features.data);
  const bool time_major = header.layout == BW_TIME_MAJOR;
  for (std::uint32_t row = 0; row < header.sequences; ++row) {
    std::vector<float> own = {
        static_cast<float>(static_cast<const std::int32_t*>(labels.data)[row])};
    for (std::uint32_t t = 0; t < header.lengths[row]; ++t) {
      const std::size_t place =
          time_major ? t * header.sequences + row : row * std::size_t{header.batch_length} + t;
      own.insert(own.end(), values + 4 * place, values + 4 * place + 4);
    }
    all.emplace(bw_batch_key(raw, row, nullptr), std::move(own));
  }
}

/// All sequences of one epoch of a feed.
inline std::multiset<Taken> all_sequences(const DaemonProcess& daemon, const std::string& feed) {
  Trainer trainer(daemon.endpoint());
  trainer.subscribe([&](bw_subscribe_options& options) {
    options.feed = feed.c_str();
    options.epochs = 1;
  });
  std::multiset<Taken> all;
  while (trainer.next() == BW_OK) add_rows(trainer.batch(), all);
  return all;
}

}  // namespace batchwright::test
