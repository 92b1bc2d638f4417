#pragma once

namespace batchwright {

/// Decides what systemd hears of the daemon's state. It waits for READY=1 after the start and after
/// each reload, and until then no other unit depends on the daemon: so READY=1 is sent once the
/// first batches of every feed are there, or will not be soon. A refused configuration leaves what
/// ran before it, ready or not, and systemd hears of that at once. A feed that fails later only
/// changes the status. Threads: one at a time.
class Readiness {
 public:
  struct State {
    bool reloading = false;  ///< A reload is under way.
    bool starting = false;   ///< A feed may have its first batches soon.
    bool refused = false;    ///< The last reload was refused.
  };

  enum class News {
    none,
    status,       ///< The status alone.
    ready,        ///< READY=1, and a line in the log.
    still_ready,  ///< READY=1 after a refused reload, which has its own line.
  };

  /// A reload is over: systemd waits for READY=1 again.
  void reloaded() { owed_ = true; }

  /// What to tell now. It counts as told.
  News next(const State& state) {
    // READY=1 amid a reload would tell systemd that it is over.
    if (!owed_ || state.reloading) return News::status;
    if (state.starting && !(was_ready_ && state.refused)) return News::none;
    const bool is_news = !was_ready_ || !state.refused;
    owed_ = false;
    was_ready_ = true;
    return is_news ? News::ready : News::still_ready;
  }

 private:
  bool owed_ = true;        ///< systemd waits for READY=1.
  bool was_ready_ = false;  ///< systemd has had READY=1.
};

}  // namespace batchwright
