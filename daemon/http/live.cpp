#include "daemon/http/live.h"

#include <chrono>

namespace batchwright {
namespace {

constexpr std::chrono::seconds kInterval{1};

}  // namespace

std::optional<std::uint64_t> LiveStream::join(Push push) {
  if (readers_.size() >= most_readers_) return std::nullopt;
  const std::uint64_t reader = ++last_;
  readers_.emplace(reader, std::move(push));
  // The first reader starts the clock, which stops once there is none.
  if (!ticking_) tick();
  return reader;
}

void LiveStream::stop() {
  timer_.cancel();
  readers_.clear();
}

LiveStream::Event LiveStream::make() const {
  const auto event = as_result(ErrorCode::internal, "", [this]() -> Result<Event> {
    // The data is one line: what stands behind a line break would be no data.
    return std::make_shared<const std::string>("event: stats\ndata: " + page_() + "\n\n");
  });
  if (event) return *event;
  log_.note<batchwright::Event::stats_page_failed>(event.error().message);
  return nullptr;
}

void LiveStream::tick() {
  ticking_ = true;
  timer_.expires_after(kInterval);
  timer_.async_wait([this, alive = std::weak_ptr(alive_)](const boost::system::error_code& code) {
    if (code || alive.expired()) return;
    const EventLog::Turn turn(log_, "/live");
    ticking_ = false;
    if (readers_.empty()) return;
    if (const Event event = make()) {
      // A push only begins a write, so no reader leaves while this loop runs.
      for (const auto& [reader, push] : readers_) push(event);
    }
    tick();
  });
}

}  // namespace batchwright
