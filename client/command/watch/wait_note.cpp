#include "client/command/watch/wait_note.h"

#include <fmt/core.h>

#include <utility>

#include "client/command/exit_code.h"
#include "formats/formats.h"

namespace batchwright {
namespace {

// A healthy daemon answers long before: the note tells of trouble alone.
constexpr std::chrono::seconds kLate{1};

}  // namespace

// A thread of its own, since the one that waits is inside the library.
WaitNote::WaitNote(std::string text)
    : text_(std::move(text)),
      thread_(start_thread(nullptr, [this](const auto&) { say_if_late(); })) {}

WaitNote::~WaitNote() {
  {
    // Without the lock the thread could miss the call between its look and its wait.
    const MutexLock lock(mutex_);
    is_over_ = true;
  }
  over_.notify_one();
  thread_.reset();  // joined
}

void WaitNote::say_if_late() {
  MutexLock lock(mutex_);
  const auto is_over = [this]() REQUIRES(mutex_) { return is_over_; };
  if (!over_.wait_for(lock, kLate, is_over)) warn(text_);
}

std::string waiting_for(const std::string& endpoint) {
  return fmt::format("{} has not answered yet; waiting for up to 10 s", endpoint);
}

std::unique_ptr<client::Connection> connect_noted(const std::string& endpoint,
                                                  const client::ConnectOptions& wanted) {
  const WaitNote note(waiting_for(endpoint));
  return std::make_unique<client::Connection>(endpoint, wanted);
}

}  // namespace batchwright
