#pragma once

#include <batchwright/writer.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "sensor.h"

namespace edge {

/// How many windows of a sensor are recorded, and where.
struct Recording {
  std::string dataset;      ///< Made if it is not there, and appended to if it is.
  std::size_t at_once = 0;  ///< Windows that are there before anything else happens.
  std::size_t later = 0;    ///< Windows that come while the dataset is served,
  double per_second = 0;    ///< and how fast they do.
  std::uint64_t seed = 0;   ///< Windows that were there before change it: none comes twice.
};

/// Writes a sensor's windows into a dataset, on a thread of its own, as a live sensor would.
/// Threads: one, which made it. The destructor ends the recording.
class Recorder {
 public:
  /// Records what is to be there at once. Errors: std::runtime_error.
  explicit Recorder(const Recording& recording);
  /// Begins to record the rest.
  void start();
  /// Errors: what ended the recording before its time.
  void check() const;

  /// Windows of the dataset that others can read by now.
  std::size_t written() const { return written_; }
  /// Windows that it has in the end.
  std::size_t all() const { return all_; }

 private:
  struct Abort {
    void operator()(bw_writer* writer) const noexcept { bw_writer_abort(writer); }
  };

  std::size_t count() const;
  void add(const Window& window);
  void write(std::size_t windows, const std::stop_token& stop);
  void commit(const std::stop_token& stop);
  void record(const std::stop_token& stop);
  void wait(std::chrono::steady_clock::time_point until, const std::stop_token& stop);

  const Recording recording_;
  std::unique_ptr<bw_writer, Abort> writer_;  // the thread's from start() on
  Sensor sensor_;
  const std::size_t all_;
  std::atomic<std::size_t> written_ = 0;
  std::exception_ptr failure_;  // to be read once failed_ is set
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::condition_variable_any moment_;
  std::jthread thread_;  // the last member: it ends before all that it uses
};

}  // namespace edge
