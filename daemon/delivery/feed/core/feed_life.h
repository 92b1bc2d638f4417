#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "daemon/stats/stats.h"
#include "formats/formats.h"

namespace batchwright {

/// How far a feed has come. It starts, serves once its first batch is there, and ends: by failing,
/// or by being retired, also after it failed. Threads: one at a time.
class FeedLife {
 public:
  enum class Stage : std::uint8_t { starting, serving, failed, retired };

  Stage stage() const { return stage_; }
  /// Whether nothing is delivered any longer; then why() says why.
  bool has_ended() const { return why_.has_value(); }
  bool is_retired() const { return stage_ == Stage::retired; }
  const std::optional<Error>& why() const { return why_; }

  /// True when that changes its stage.
  bool first_batch_is_there() {
    if (stage_ != Stage::starting) return false;
    stage_ = Stage::serving;
    return true;
  }
  /// False when it has ended before: then the first reason stays.
  bool fail(Error why) {
    if (has_ended()) return false;
    stage_ = Stage::failed;
    why_ = std::move(why);
    return true;
  }
  void retire(Error why) {
    stage_ = Stage::retired;
    why_ = std::move(why);
  }

  /// A client has subscribed, now or at some time before.
  void come() { had_client_ = true; }
  bool had_client() const { return had_client_; }

  /// As the statistics name it.
  FeedState state() const {
    if (has_ended()) return FeedState::failed;
    return stage_ == Stage::serving ? FeedState::serving : FeedState::starting;
  }

 private:
  Stage stage_ = Stage::starting;
  std::optional<Error> why_;
  bool had_client_ = false;
};

}  // namespace batchwright
