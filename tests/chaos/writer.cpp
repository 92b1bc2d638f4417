// Appends to a dataset, commit after commit, and may be killed at any moment. How many sequences a
// commit has follows from how many are there, and a sequence's length from its ordinal. So all
// states that are ever committed are known beforehand, however often this is killed and goes on.
//
// Call: chaos_writer DATASET UNTIL PAUSE_MS [LEDGER]; the ledger is told of each commit.

#include "batchwright/writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

void require(bw_status status) {
  if (status != BW_OK) throw std::runtime_error(bw_writer_error_message());
}

/// 1 to 9. setting.py counts in the same way.
std::uint64_t commit_behind(std::uint64_t sequences) { return 1 + sequences * 7919 % 9; }

/// In frames: the more there are, the longer they may be, so that slots must grow.
std::uint64_t length_of(std::uint64_t ordinal) {
  return 5 + ordinal * 7919 % (ordinal < 120 ? 12 : 36);
}

class Appender {
 public:
  explicit Appender(const char* path) {
    bw_field features{};
    features.name = "features";
    features.kind = BW_PRIMARY;
    features.dtype = BW_FLOAT32;
    features.ndim = 1;
    features.shape[0] = 2;
    const bw_field* fields[] = {&features};
    bw_writer_options options = BW_WRITER_OPTIONS_INIT;
    options.fields = fields;
    options.field_count = 1;
    require(bw_writer_open(path, &options, &writer_));
  }
  ~Appender() { bw_writer_abort(writer_); }
  Appender(const Appender&) = delete;
  Appender& operator=(const Appender&) = delete;

  std::uint64_t sequences() const {
    std::uint64_t count = 0;
    require(bw_writer_sequences(writer_, &count));
    return count;
  }

  void commit(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) add(sequences());
    require(bw_writer_commit(writer_));
  }

 private:
  /// Every value of a sequence is its ordinal.
  void add(std::uint64_t ordinal) {
    const std::uint64_t frames = length_of(ordinal);
    const std::vector<float> values(frames * 2, static_cast<float>(ordinal));
    const bw_value value{values.data(), values.size() * sizeof(float), frames};
    const std::string key = std::to_string(ordinal);
    const bw_sequence sequence{key.data(), key.size(), &value, 1};
    require(bw_writer_add(writer_, &sequence, nullptr));
  }

  bw_writer* writer_ = nullptr;
};

/// One write() a line, as the daemon's.
void tell(const char* ledger, std::uint64_t sequences) {
  const int file = open(ledger, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
  const std::string line =
      "\n{\"event\":\"mark\",\"what\":\"committed\",\"pid\":" + std::to_string(getpid()) +
      ",\"sequences\":" + std::to_string(sequences) + "}\n";
  const bool written =
      file >= 0 && write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  close(file);
  if (!written) throw std::runtime_error("the ledger cannot be written");
}

}  // namespace

int main(int count, char** words) {
  try {
    if (count < 4) throw std::runtime_error("call: chaos_writer DATASET UNTIL PAUSE_MS [LEDGER]");
    Appender appender(words[1]);
    const std::uint64_t until = std::stoull(words[2]);
    const std::chrono::milliseconds pause(std::stoul(words[3]));
    while (appender.sequences() < until) {
      appender.commit(commit_behind(appender.sequences()));
      if (count > 4) tell(words[4], appender.sequences());
      std::this_thread::sleep_for(pause);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "chaos_writer: %s\n", error.what());
    return 1;
  }
}
