// A trainer of a live feed that may be killed at any moment; of a job, all of its ranks, with a
// barrier after each batch. It looks at each value of each batch, and keeps a record.
//
// Call: chaos_trainer name=value ...; the names are those of Habits. With `end` it ends the feed
// instead. Lines of the record, each a JSON object: a batch as note() has it, {"advance": VERSION,
// "restored": 0 or 1} before it is announced, and {"life": PID} at a start.
//
// Exit code 3: the daemon refused it; it is to come again.

#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>
#include <random>
#include <thread>

#include "tests/chaos/live/items.h"

namespace {

using namespace chaos;

constexpr int kRefused = 3;
constexpr std::int64_t kLookMs = 2'000;
constexpr std::uint64_t kEnd = UINT64_MAX;  ///< In place of an index: there are no more.

struct Habits {
  explicit Habits(const Words& words)
      : mode(words.text("mode")),
        ranks(static_cast<std::int32_t>(std::max<std::uint64_t>(words.number("ranks"), 1))),
        window(static_cast<std::uint32_t>(words.number("window"))),
        keep(words.number("keep")),
        announces(words.number("announces") != 0),
        restores(words.number("restores")),
        resumes(words.number("resumes")),
        returns(words.number("returns")),
        work_us(words.number("work_us")) {}

  std::string mode;  ///< replica, sharded, queue.
  std::int32_t ranks;
  std::uint32_t window;
  std::size_t keep;        ///< Batches that are given back later.
  bool announces;          ///< A version after each step.
  std::uint64_t restores;  ///< Percent of its starts at which it restores an older version.
  std::uint64_t resumes;   ///< Percent of its starts at which it goes on after its record.
  std::uint64_t returns;   ///< Of a queue: percent of the batches that are given back undone.
  std::uint64_t work_us;
};

/// Where a record ends.
struct Place {
  std::uint64_t incarnation = 0;
  std::uint64_t index = 0;
  std::uint64_t world = 1;
  std::string fingerprint;
};

/// The number after "name": in a line of the record.
std::optional<std::uint64_t> number_in(const std::string& line, const std::string& name) {
  const std::string begins = '"' + name + "\":";
  const auto at = line.find(begins);
  if (at == std::string::npos) return {};
  return std::stoull(line.substr(at + begins.size()));
}

std::string fingerprint_of(const bw_batch_header& header) {
  char text[BW_FINGERPRINT_TEXT_BYTES];
  require(bw_fingerprint_text(&header.fingerprint, text));
  return text;
}

/// A row's frames are those of its key, and no others.
void check_row(const bw_batch_header& header, const bw_tensor& tensor, std::uint32_t row,
               std::string_view key) {
  const auto* words =
      static_cast<const std::uint32_t*>(tensor.data) + row * tensor.shape[1] * kFrameWords;
  const std::uint32_t first = first_word(key);
  for (std::uint64_t i = 0; i < header.lengths[row] * kFrameWords; ++i) {
    if (words[i] == word_at(first, i)) continue;
    throw std::runtime_error("batch " + std::to_string(header.index) + ", row " +
                             std::to_string(row) + ": word " + std::to_string(i) +
                             " is not that of " + std::string(key));
  }
}

void check_content(const bw_batch* batch) {
  const bw_batch_header& header = *bw_batch_get_header(batch);
  for (std::uint32_t row = 0; row < header.sequences; ++row) {
    std::size_t bytes = 0;
    const char* key = bw_batch_key(batch, row, &bytes);
    check_row(header, *bw_batch_tensor(batch, 0), row, {key, bytes});
  }
}

/// What all ranks of a job share.
class Job {
 public:
  Job(const Words& words, const Habits& habits)
      : habits_(habits),
        lines_(words.text("record"), [this](const auto& line) { recall(line); }),
        random_(static_cast<unsigned>(words.number("seed") + lives_)),
        together_(habits.ranks),
        at_(static_cast<std::size_t>(habits.ranks)) {
    lines_.append("{\"life\":" + std::to_string(getpid()) + "}");
    resumes_ = last_ && random_() % 100 < habits.resumes;
  }

  const std::optional<Place>& last() const { return last_; }
  bool resumes() const { return resumes_; }

  void note(const bw_batch* batch, std::int32_t rank) const {
    const bw_batch_header& header = *bw_batch_get_header(batch);
    std::string line = "{\"pid\":" + std::to_string(getpid()) +
                       ",\"rank\":" + std::to_string(rank) +
                       ",\"incarnation\":" + std::to_string(header.fingerprint.data) +
                       ",\"index\":" + std::to_string(header.index) +
                       ",\"world\":" + std::to_string(header.world) +
                       ",\"version\":" + std::to_string(header.live_version) +
                       ",\"attempt\":" + std::to_string(header.attempt) + ",\"fingerprint\":\"" +
                       fingerprint_of(header) + "\",\"rows\":[";
    for (std::uint32_t row = 0; row < header.sequences; ++row) {
      const std::string group =
          header.groups[row] == BW_NO_GROUP ? "null" : std::to_string(header.groups[row]);
      line += std::string(row == 0 ? "" : ",") + "[\"" +
              bw_batch_producer(batch, header.producers[row], nullptr) + "\"," +
              std::to_string(header.numbers[row]) + ",\"" + bw_batch_key(batch, row, nullptr) +
              "\"," + std::to_string(header.versions[row]) + "," +
              std::to_string(header.weights[row]) + "," + group + "," +
              std::to_string(header.lengths[row]) + "]";
    }
    lines_.append(line + "]}");
  }

  /// At a start, and after each step. One thread at a time.
  void announce_again(bw_connection* connection) {
    if (!habits_.announces || version_ == 0) return;
    const bool restored = random_() % 100 < habits_.restores;
    if (restored) version_ -= std::min<std::uint64_t>(version_, random_() % 4);
    const bool replays = restored && resumes_;
    announce(connection, restored, replays);
  }
  void announce_next(bw_connection* connection) {
    if (!habits_.announces) return;
    ++version_;
    announce(connection, false, false);
  }

  /// Waits until all ranks are there, and holds them against each other. Threads: all ranks'.
  void meet(std::int32_t rank, std::uint64_t step) {
    at_[static_cast<std::size_t>(rank)] = step;
    together_.arrive_and_wait();
    for (const std::uint64_t other : at_) {
      if (other == step) continue;
      throw std::runtime_error("rank " + std::to_string(rank) + " is in step " +
                               std::to_string(step) + ", and another in " + std::to_string(other));
    }
    together_.arrive_and_wait();
  }

 private:
  void recall(const std::string& line) {
    if (line.starts_with("{\"life\"")) ++lives_;
    if (const auto version = number_in(line, "advance")) version_ = *version;
    const auto index = number_in(line, "index");
    if (!index) return;
    const auto at = line.find("\"fingerprint\":\"") + std::strlen("\"fingerprint\":\"");
    last_ = {*number_in(line, "incarnation"), *index, *number_in(line, "world"),
             line.substr(at, line.find('"', at) - at)};
  }

  void announce(bw_connection* connection, bool restored, bool replays) {
    lines_.append("{\"advance\":" + std::to_string(version_) +
                  ",\"restored\":" + (restored ? "1" : "0") + "}");
    require(bw_advance(connection, kFeed, version_, restored ? 1 : 0, replays ? 1 : 0));
  }

  const Habits& habits_;
  std::uint64_t lives_ = 0;
  std::uint64_t version_ = 0;  ///< That was announced last, in any life.
  std::optional<Place> last_;
  bool resumes_ = false;
  Lines lines_;
  std::minstd_rand random_;
  std::barrier<> together_;
  std::vector<std::uint64_t> at_;  ///< By rank.
};

class Rank {
 public:
  Rank(const Words& words, const Habits& habits, Job& job, std::int32_t rank)
      : habits_(habits),
        job_(job),
        rank_(rank),
        random_(static_cast<unsigned>(words.number("seed") + 7)),
        connection_(connect(words, "chaos_trainer")) {
    if (rank == 0) job.announce_again(connection_);
    subscribe();
  }
  ~Rank() {
    bw_unsubscribe(subscription_);
    bw_close(connection_);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  std::uint64_t run() {
    while (true) {
      bw_batch* batch = nullptr;
      const bw_status status =
          bw_next(subscription_, kept_.empty() ? kLookMs : 20, &batch, nullptr);
      if (status == BW_TIMED_OUT && kept_.empty()) std::fprintf(stderr, "%s\n", bw_error_message());
      if (status == BW_TIMED_OUT) {
        give_back(0);
      } else if (status == BW_END) {
        break;
      } else if (status != BW_EPOCH_END) {
        require(status);
        take(batch);
      }
    }
    if (habits_.ranks > 1) job_.meet(rank_, kEnd);
    give_back(0);
    bw_connection_info info{};
    info.struct_size = sizeof info;
    require(bw_connection_get_info(connection_, &info));
    return info.reconnects;
  }

 private:
  void subscribe() {
    bw_subscribe_options options = BW_SUBSCRIBE_OPTIONS_INIT;
    options.feed = kFeed;
    options.mode = habits_.mode == "queue"     ? BW_QUEUE
                   : habits_.mode == "sharded" ? BW_SHARDED
                                               : BW_REPLICA;
    if (options.mode == BW_SHARDED) {
      options.rank = rank_;
      options.ranks = habits_.ranks;
    }
    options.window = habits_.window;
    bw_fingerprint same{};
    if (job_.resumes() && options.mode != BW_QUEUE) {
      // A step of which there is a part is taken once more.
      const Place& last = *job_.last();
      const bool is_whole = habits_.ranks == 1 && (last.index + 1) % last.world == 0;
      options.step = last.index / last.world + (is_whole ? 1 : 0);
      require(bw_fingerprint_parse(last.fingerprint.c_str(), &same));
      options.fingerprint = &same;
    }
    require(bw_subscribe(connection_, &options, &subscription_));
  }

  void take(bw_batch* batch) {
    const bw_batch_header& header = *bw_batch_get_header(batch);
    if (habits_.mode == "queue" && random_() % 100 < habits_.returns)
      return require(bw_return(batch));
    kept_.push_back(batch);
    check_content(batch);
    if (habits_.work_us != 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(random_() % habits_.work_us));
    }
    job_.note(batch, rank_);
    const std::uint64_t step = header.step;
    if (habits_.ranks > 1) job_.meet(rank_, step);
    const std::uint64_t own = header.world / static_cast<std::uint64_t>(habits_.ranks);
    const bool completes = (header.index + 1) % own == 0;
    if (rank_ == 0 && (completes || habits_.mode == "queue")) job_.announce_next(connection_);
    give_back(habits_.keep);
  }

  void give_back(std::size_t keep) {
    for (; kept_.size() > keep; kept_.pop_front()) {
      check_content(kept_.front());
      require(bw_release(kept_.front()));
    }
  }

  const Habits& habits_;
  Job& job_;
  const std::int32_t rank_;
  std::minstd_rand random_;
  bw_connection* connection_ = nullptr;
  bw_subscription* subscription_ = nullptr;
  std::deque<bw_batch*> kept_;
};

/// A rank that fails ends its job.
std::uint64_t run_rank(const Words& words, const Habits& habits, Job& job, std::int32_t rank) {
  try {
    return Rank(words, habits, job, rank).run();
  } catch (const Failed& failed) {
    std::fprintf(stderr, "chaos_trainer: refused: %s\n", failed.what());
    const bool may_be =
        failed.status() == BW_NOT_FOUND || failed.status() == BW_FINGERPRINT_MISMATCH;
    std::_Exit(may_be ? kRefused : 1);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "chaos_trainer: %s\n", error.what());
    std::_Exit(1);
  }
}

void train(const Words& words) {
  const Habits habits(words);
  Job job(words, habits);
  std::vector<std::jthread> others;
  for (std::int32_t rank = 1; rank < habits.ranks; ++rank) {
    others.emplace_back([&words, &habits, &job, rank] { run_rank(words, habits, job, rank); });
  }
  const std::uint64_t reconnects = run_rank(words, habits, job, 0);
  others.clear();
  std::fprintf(stderr, "done, after %llu reconnects\n",
               static_cast<unsigned long long>(reconnects));
}

void end_feed(const Words& words) {
  bw_connection* const connection = connect(words, "chaos_trainer");
  const bw_status status = bw_end_feed(connection, kFeed);
  bw_close(connection);
  require(status);
}

}  // namespace

int main(int count, char** words) {
  try {
    const Words given(count, words);
    given.text("mode") == "end" ? end_feed(given) : train(given);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "chaos_trainer: %s\n", error.what());
    return 1;
  }
}
