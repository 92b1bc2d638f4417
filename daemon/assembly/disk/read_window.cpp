#include "daemon/assembly/disk/read_window.h"

#include <algorithm>

namespace batchwright {
namespace {

double seconds(ReadWindow::Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

void ReadWindow::advance(Time now) {
  if (under_way_ != 0) busy_ += now - last_;
  last_ = now;
}

void ReadWindow::began(std::size_t bytes, Time now) {
  advance(now);
  under_way_ += bytes;
}

void ReadWindow::done(std::size_t bytes, Duration took, bool from_disk, Time now) {
  advance(now);
  under_way_ -= std::min(under_way_, bytes);
  if (!from_disk) return;
  read_bytes_ += bytes;
  ++reads_;
  shortest_ = std::min(shortest_, took);
  if (busy_ >= kSpan && reads_ >= kReads) end_span();
}

/// What was read while the window was not full tells only how little was asked for, unless it was
/// more than ever.
void ReadWindow::end_span() {
  const double rate = static_cast<double>(read_bytes_) / seconds(busy_);
  if (full_ || rate > bytes_per_second()) {
    if (samples_.size() == kSamples) samples_.pop_front();
    samples_.push_back({rate, shortest_});
  }
  busy_ = Duration(0);
  read_bytes_ = 0;
  reads_ = 0;
  shortest_ = Duration::max();
  full_ = false;
}

double ReadWindow::bytes_per_second() const {
  double most = 0.0;
  for (const Sample& sample : samples_) most = std::max(most, sample.bytes_per_second);
  return most;
}

ReadWindow::Duration ReadWindow::latency() const {
  if (samples_.empty()) return Duration(0);
  return std::min_element(samples_.begin(), samples_.end(),
                          [](const Sample& a, const Sample& b) { return a.latency < b.latency; })
      ->latency;
}

std::size_t ReadWindow::bytes() const {
  const double wanted = kGain * bytes_per_second() * seconds(latency());
  // Compared as numbers: a rate that no disk has must not overflow.
  if (wanted >= static_cast<double>(kMostBytes)) return kMostBytes;
  return std::max(static_cast<std::size_t>(wanted), kLeastBytes);
}

}  // namespace batchwright
