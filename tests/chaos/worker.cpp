// A trainer that may be killed at any moment. It keeps a record of what it has trained on, one line
// a batch, written before the batch is given back; started again, it goes on after the last line.
//
// Call: chaos_worker name=value ...; the names are those of Job.

#include <fcntl.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "client/library/batchwright/client.h"

namespace {

constexpr int kRefused = 3;  ///< Exit code: the daemon no longer serves the feed.

struct Job {
  std::string endpoint;
  std::string feed;
  std::string mode;  ///< replica, sharded, queue; or hold: takes a window full and stays.
  std::string record;
  std::int32_t rank = 0;
  std::int32_t ranks = 1;
  std::uint64_t epochs = 1;
  std::uint64_t world = 1;  ///< Of the feed: what can be absent cannot be asked.
  std::uint32_t window = 2;
  std::uint32_t worst_first = 0;
  std::uint32_t keep = 0;        ///< Batches that are recorded and given back later.
  std::uint32_t returns = 0;     ///< Of a queue: percent of the batches that are given back undone.
  std::uint32_t signals_us = 0;  ///< Signals come as often as this; 0: none of its own.
  std::uint32_t limit = 0;       ///< Longest wait of a call, in ms; 0: kLook.
  bool inline_batches = false;
  std::string server;  ///< File of the daemon's public key; empty: no keys.
  std::string keys;    ///< PREFIX of this process's PREFIX.public and PREFIX.secret.
  unsigned seed = 0;
};

Job read_job(int count, char** words) {
  std::map<std::string, std::string> given;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const auto equals = word.find('=');
    given[word.substr(0, equals)] = equals == std::string::npos ? "" : word.substr(equals + 1);
  }
  const auto number = [&given](const char* name, unsigned otherwise) {
    return given.contains(name) ? static_cast<unsigned>(std::stoul(given[name])) : otherwise;
  };
  Job job;
  job.endpoint = given["endpoint"];
  job.feed = given.contains("feed") ? given["feed"] : "train";
  job.mode = given["mode"];
  job.record = given["record"];
  job.rank = static_cast<std::int32_t>(number("rank", 0));
  job.ranks = static_cast<std::int32_t>(number("ranks", 1));
  job.epochs = number("epochs", 1);
  job.world = number("world", 1);
  job.window = number("window", 2);
  job.worst_first = number("worst_first", 0);
  job.keep = number("keep", 0);
  job.returns = number("returns", 0);
  job.signals_us = number("signals_us", 0);
  job.limit = number("limit", 0);
  job.inline_batches = number("inline", 0) != 0;
  job.server = given["server"];
  job.keys = given["keys"];
  job.seed = number("seed", 0);
  return job;
}

/// The library's reason why a call failed.
class Failed : public std::runtime_error {
 public:
  Failed() : std::runtime_error(bw_error_message()) {}
};

void require(bw_status status) {
  if (status != BW_OK) throw Failed();
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) throw std::runtime_error(path + ": no key in it");
  return line;
}

struct Place {
  std::uint64_t epoch = 0;
  std::uint64_t index = 0;
  std::string fingerprint;
};

/// Lines of process, epoch, index, ordinals with commas between, the epoch's fingerprint, how many
/// rows of the batch are lost, and the batch's attempt; or, of a batch that is given back undone,
/// of "returned", process, epoch, index and attempt.
class Record {
 public:
  /// A last line without its end was cut off by a kill: that batch was never given back.
  explicit Record(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string line;
    off_t whole = 0;
    while (std::getline(file, line) && !file.eof()) {
      whole += static_cast<off_t>(line.size()) + 1;
      if (line.starts_with("returned ")) continue;
      std::uint64_t process = 0;
      std::string ordinals;
      Place place;
      std::istringstream(line) >> process >> place.epoch >> place.index >> ordinals >>
          place.fingerprint;
      last_ = place;
    }
    file_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    if (file_ < 0 || ftruncate(file_, whole) != 0) throw std::runtime_error(path + ": open");
  }
  ~Record() { close(file_); }
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;

  const std::optional<Place>& last() const { return last_; }

  void note(const bw_batch_header& header) {
    std::string line = std::to_string(getpid()) + ' ' + std::to_string(header.epoch) + ' ' +
                       std::to_string(header.index);
    for (std::uint32_t row = 0; row < header.sequences; ++row) {
      line += (row == 0 ? ' ' : ',') + std::to_string(header.ordinals[row]);
    }
    char fingerprint[BW_FINGERPRINT_TEXT_BYTES];
    require(bw_fingerprint_text(&header.fingerprint, fingerprint));
    line += std::string(" ") + fingerprint + ' ' + std::to_string(header.rows_lost) + ' ' +
            std::to_string(header.attempt) + '\n';
    append(line);
    last_ = {header.epoch, header.index, fingerprint};
  }

  void note_returned(const bw_batch_header& header) {
    append("returned " + std::to_string(getpid()) + ' ' + std::to_string(header.epoch) + ' ' +
           std::to_string(header.index) + ' ' + std::to_string(header.attempt) + '\n');
  }

 private:
  void append(const std::string& line) const {
    if (write(file_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
      throw std::runtime_error("the record cannot be written");
    }
  }

  int file_ = -1;
  std::optional<Place> last_;
};

/// Every value of a sequence is its ordinal, so a slot that was written again shows.
void check_content(const bw_batch* batch) {
  const bw_batch_header& header = *bw_batch_get_header(batch);
  const bw_tensor& tensor = *bw_batch_tensor(batch, 0);
  const auto* values = static_cast<const float*>(tensor.data);
  const std::uint64_t frame = tensor.shape[2];
  for (std::uint32_t row = 0; row < header.sequences; ++row) {
    const float* begin = values + row * tensor.shape[1] * frame;
    const float* end = begin + header.lengths[row] * frame;
    for (const float* value = begin; value != end; ++value) {
      if (*value == static_cast<float>(header.ordinals[row])) continue;
      throw std::runtime_error("batch " + std::to_string(header.index) + " of epoch " +
                               std::to_string(header.epoch) + ": row " + std::to_string(row) +
                               " has " + std::to_string(*value) + " where its ordinal " +
                               std::to_string(header.ordinals[row]) + " should be");
    }
  }
}

/// Does nothing: the calls that it interrupts are what it is for.
void take_no_notice(int /*number*/) {}

/// Signals of others, and those of a timer, interrupt whatever this process waits in.
void hear_signals(std::uint32_t interval_us) {
  if (interval_us == 0) return;
  struct sigaction action {};
  action.sa_handler = take_no_notice;  // without SA_RESTART
  for (const int number : {SIGALRM, SIGUSR1, SIGINT}) sigaction(number, &action, nullptr);
  const itimerval timer{{0, static_cast<suseconds_t>(interval_us)},
                        {0, static_cast<suseconds_t>(interval_us)}};
  if (setitimer(ITIMER_REAL, &timer, nullptr) != 0) throw std::runtime_error("setitimer failed");
}

class Worker {
 public:
  explicit Worker(Job job) : job_(std::move(job)), record_(job_.record), random_(job_.seed) {
    bw_connect_options options = BW_CONNECT_OPTIONS_INIT;
    options.program = "chaos_worker";
    options.timeout_ms = kPatience;
    options.reconnect_ms = kPatience;
    options.inline_batches = job_.inline_batches ? 1 : 0;
    connect(options);
    subscribe();
  }
  ~Worker() {
    bw_unsubscribe(subscription_);
    bw_close(connection_);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Until the counted epochs are over. One that waits for long gives back what it has: in a queue
  /// the others may wait for it.
  void run() {
    std::uint64_t epoch = bw_subscription_grant(subscription_)->epoch;
    while (epoch < job_.epochs) {
      bw_batch* batch = nullptr;
      const bw_status status = bw_next(subscription_, limit(), &batch, &epoch);
      if (status == BW_END) break;
      if (status == BW_EPOCH_END) {
        ++epoch;
      } else if (status != BW_TIMED_OUT) {
        require(status);
        take(batch);
      } else if (kept_.empty()) {
        say_what_is_waited_for();
      } else {
        give_back(0);
      }
    }
    give_back(0);
    bw_connection_info info{};
    info.struct_size = sizeof info;
    require(bw_connection_get_info(connection_, &info));
    std::fprintf(stderr, "done, after %llu reconnects\n",
                 static_cast<unsigned long long>(info.reconnects));
  }

  /// Takes what it can have, and waits to be killed.
  void hold() {
    bw_batch* batch = nullptr;
    while (bw_next(subscription_, kLook, &batch, nullptr) == BW_OK) kept_.push_back(batch);
    pause();
  }

 private:
  static constexpr std::int64_t kPatience = 600'000;  ///< Our parent gives up before.
  static constexpr std::int64_t kLook = 2'000;

  std::int64_t limit() {
    if (job_.limit != 0) return 1 + random_() % job_.limit;
    return kept_.empty() ? kLook : 20;
  }

  /// At most as often as without short limits.
  void say_what_is_waited_for() {
    const auto now = std::chrono::steady_clock::now();
    if (job_.limit != 0 && now - said_ < std::chrono::milliseconds(kLook)) return;
    said_ = now;
    std::fprintf(stderr, "%s\n", bw_error_message());
  }

  void connect(bw_connect_options& options) {
    if (job_.server.empty()) {
      return require(bw_connect(job_.endpoint.c_str(), &options, &connection_));
    }
    const std::string server = first_line(job_.server);
    const std::string shown = first_line(job_.keys + ".public");
    const std::string secret = first_line(job_.keys + ".secret");
    options.server_key = server.c_str();
    options.public_key = shown.c_str();
    options.secret_key = secret.c_str();
    require(bw_connect(job_.endpoint.c_str(), &options, &connection_));
  }

  void subscribe() {
    bw_subscribe_options options = BW_SUBSCRIBE_OPTIONS_INIT;
    options.feed = job_.feed.c_str();
    options.mode = job_.mode == "queue"     ? BW_QUEUE
                   : job_.mode == "sharded" ? BW_SHARDED
                                            : BW_REPLICA;
    if (options.mode == BW_SHARDED) {
      options.rank = job_.rank;
      options.ranks = job_.ranks;
    }
    options.window = job_.window;
    options.epochs = job_.epochs;
    options.worst_first = job_.worst_first;
    bw_fingerprint same{};
    if (record_.last() && options.mode != BW_QUEUE) {
      go_on_at(options);
      require(bw_fingerprint_parse(record_.last()->fingerprint.c_str(), &same));
      options.fingerprint = &same;
    }
    require(bw_subscribe(connection_, &options, &subscription_));
  }

  /// After the last batch of the record: in its step, unless it was our last one there.
  void go_on_at(bw_subscribe_options& options) const {
    const std::uint64_t world = job_.world;
    const auto ranks = static_cast<std::uint64_t>(options.mode == BW_SHARDED ? job_.ranks : 1);
    const Place last = *record_.last();
    const bool completes = (last.index + 1) % (world / ranks) == 0;
    options.epoch = last.epoch;
    options.step = last.index / world + (completes ? 1 : 0);
    options.epochs = job_.epochs - last.epoch;
  }

  void take(bw_batch* batch) {
    const bw_batch_header& header = *bw_batch_get_header(batch);
    if (header.epoch < job_.epochs && random_() % 100 < job_.returns) {
      record_.note_returned(header);
      return require(bw_return(batch));
    }
    kept_.push_back(batch);
    if (header.rehearsal == 0 && header.epoch < job_.epochs && !comes_again(header)) {
      check_content(batch);
      std::this_thread::sleep_for(std::chrono::microseconds(random_() % 2000));  // the work
      record_.note(header);
      if (is_marked_done(header)) require(bw_batch_done(batch));
    }
    give_back(job_.keep);
  }

  /// Of these bw_return says no more than bw_release.
  bool is_marked_done(const bw_batch_header& header) const {
    return job_.returns != 0 && header.epoch < job_.epochs && header.index % 3 == 0;
  }

  /// What was trained on of a step that a kill has cut in two.
  bool comes_again(const bw_batch_header& header) {
    cut_step_ = cut_step_ && job_.mode != "queue" && record_.last() &&
                record_.last()->epoch == header.epoch && header.index <= record_.last()->index;
    return cut_step_;
  }

  void give_back(std::size_t keep) {
    for (; kept_.size() > keep; kept_.pop_front()) {
      bw_batch* const batch = kept_.front();
      check_content(batch);
      const bool marked = is_marked_done(*bw_batch_get_header(batch));
      require(marked ? bw_return(batch) : bw_release(batch));
    }
  }

  const Job job_;
  Record record_;
  std::minstd_rand random_;
  bw_connection* connection_ = nullptr;
  bw_subscription* subscription_ = nullptr;
  std::deque<bw_batch*> kept_;
  bool cut_step_ = true;  ///< Nothing new has come yet.
  std::chrono::steady_clock::time_point said_;
};

}  // namespace

int main(int count, char** words) {
  try {
    const Job job = read_job(count, words);
    hear_signals(job.signals_us);
    Worker worker(job);
    job.mode == "hold" ? worker.hold() : worker.run();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "chaos_worker: %s\n", error.what());
    return dynamic_cast<const Failed*>(&error) != nullptr ? kRefused : 1;
  }
}
