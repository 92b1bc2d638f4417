#include "recorder.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <stdexcept>

namespace edge {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kTogether = 32;  // windows of a commit, which waits for the disk
constexpr int kTries = 60;             // of a commit, one a second

/// Throws errors.
void check_writer(bw_status status) {
  if (status != BW_OK) throw std::runtime_error(bw_writer_error_message());
}

bw_writer* open_writer(const std::string& dataset) {
  const bw_field acceleration{"acceleration", BW_PRIMARY, BW_INT16, 1, 0, {kAxes}, nullptr};
  const bw_field activity{"activity",         BW_SCALAR, BW_UINT8,          0,
                          kActivities.size(), {},        kActivities.data()};
  const std::array fields = {&acceleration, &activity};
  const std::array settings = {bw_setting{"frames_per_second", "50"},
                               bw_setting{"unit", "0.001 g"}};
  bw_writer_options options = BW_WRITER_OPTIONS_INIT;
  options.fields = fields.data();
  options.field_count = fields.size();
  options.settings = settings.data();
  options.setting_count = settings.size();
  options.commit_bytes = 2 * kTogether * sizeof(Window);  // memory that is set aside
  bw_writer* writer = nullptr;
  check_writer(bw_writer_open(dataset.c_str(), &options, &writer));
  return writer;
}

}  // namespace

Recorder::Recorder(const Recording& recording)
    : recording_(recording),
      writer_(open_writer(recording.dataset)),
      sensor_(recording.seed + count()),
      all_(count() + recording.at_once + recording.later) {
  write(recording.at_once, {});
}

void Recorder::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) {
    try {
      record(stop);
    } catch (...) {
      failure_ = std::current_exception();
      failed_ = true;
    }
  });
}

void Recorder::check() const {
  if (failed_) std::rethrow_exception(failure_);
}

/// Windows of the dataset, those included that wait for their commit.
std::size_t Recorder::count() const {
  std::uint64_t windows = 0;
  check_writer(bw_writer_sequences(writer_.get(), &windows));
  return windows;
}

void Recorder::add(const Window& window) {
  const std::string key = "window-" + std::to_string(count());
  const std::array values = {bw_value{window.samples.data(), sizeof window.samples, kFrames},
                             bw_value{&window.activity, sizeof window.activity, 1}};
  const bw_sequence sequence{key.data(), key.size(), values.data(), values.size()};
  check_writer(bw_writer_add(writer_.get(), &sequence, nullptr));
}

void Recorder::write(std::size_t windows, const std::stop_token& stop) {
  while (windows > 0) {
    const std::size_t together = std::min(windows, kTogether);
    for (std::size_t i = 0; i < together; ++i) add(sensor_.next());
    commit(stop);
    windows -= together;
  }
}

/// A full disk is no reason to end: what was added is kept, and the commit may be repeated.
void Recorder::commit(const std::stop_token& stop) {
  for (int tries = 1;; ++tries) {
    const bw_status status = bw_writer_commit(writer_.get());
    if (status != BW_IO_ERROR || tries == kTries || stop.stop_requested()) {
      check_writer(status);
      break;
    }
    std::fprintf(stderr, "edge: %s; once more in a second\n", bw_writer_error_message());
    wait(Clock::now() + std::chrono::seconds(1), stop);
  }
  written_ = count();
}

void Recorder::record(const std::stop_token& stop) {
  const Clock::time_point begin = Clock::now();
  for (std::size_t done = 0; done < recording_.later && !stop.stop_requested();) {
    const std::size_t together = std::min(recording_.later - done, kTogether);
    done += together;
    const std::chrono::duration<double> taken(static_cast<double>(done) / recording_.per_second);
    wait(begin + std::chrono::duration_cast<Clock::duration>(taken), stop);
    if (!stop.stop_requested()) write(together, stop);
  }
}

void Recorder::wait(Clock::time_point until, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  moment_.wait_until(lock, stop, until, [] { return false; });
}

}  // namespace edge
