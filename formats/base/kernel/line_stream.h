#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace batchwright {

/// Lines for a stream that other processes share, such as standard error, and that its reader may
/// not read, or may have left: to write one never waits, and raises no signal where SIGPIPE is
/// ignored.
///
/// A line that cannot be written at once is put in a queue, which a thread of its own empties when
/// there is room again; it is there only while it is needed. Beyond kMostBytes lines are dropped,
/// the newest first, and counted. The stream's own flags stay as they are.
/// Threads: any. Where no thread is to be had the queue is emptied with the next line.
class LineStream {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{256} << 10;

  /// The descriptor stays its owner's, and open.
  explicit LineStream(int descriptor);
  /// Waits a moment for what is in the queue.
  ~LineStream();
  LineStream(const LineStream&) = delete;
  LineStream& operator=(const LineStream&) = delete;

  /// The line, with its end.
  void write(std::string_view line);

  /// Lines that were dropped.
  std::uint64_t dropped() const;

  /// Is called, on whichever thread it is, when lines were dropped and the stream takes some again,
  /// with their number. It must not write lines itself; null ends the calls.
  void on_room(std::function<void(std::uint64_t)> callback);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace batchwright
