#include "tests/simulation/world/process.h"

#include <utility>

namespace batchwright::simulation {

Process::~Process() {
  if (!fiber_ || fiber_->has_ended()) return;
  on_end_ = nullptr;  // the run is over
  killed_ = true;
  fiber_->resume();
}

void Process::run() {
  try {
    main_(*this);
  } catch (const Killed&) {
  }
}

void Process::resume_soon(Duration delay) {
  world_.after(delay, [weak = weak_from_this(), parking = parking_] {
    const auto self = weak.lock();
    if (self && self->parked_ && self->parking_ == parking) self->resume();
  });
}

void Process::resume() {
  if (fiber_ && fiber_->has_ended()) return;
  if (stopped_ != 0 && !killed_) {
    late_ = true;
    return;
  }
  if (!fiber_) {
    if (killed_) return;
    fiber_ = std::make_unique<Fiber>([this] { run(); });
  }
  parked_ = false;
  fiber_->resume();
  if (fiber_->has_ended() && on_end_) std::exchange(on_end_, nullptr)();
}

void Process::park(Duration most) {
  if (killed_) throw Killed();
  if (std::exchange(woken_, false)) return;
  ++parking_;
  parked_ = true;
  resume_soon(most);
  fiber_->yield();
  woken_ = false;
  if (killed_) throw Killed();
}

void Process::sleep(Duration time) {
  const Time end = world_.now() + time;
  while (world_.now() < end) park(end - world_.now());
}

void Process::wake() {
  if (!parked_) {
    woken_ = true;
    return;
  }
  woken_ = true;
  resume_soon(Duration::zero());
}

void Process::kill() {
  if (killed_ || has_ended()) return;
  killed_ = true;
  const auto self = shared_from_this();
  if (fiber_) return resume();
  if (on_end_) std::exchange(on_end_, nullptr)();
}

void Process::stop_for(Duration time) {
  ++stopped_;
  world_.after(time, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    --self->stopped_;
    if (self->stopped_ == 0 && std::exchange(self->late_, false)) self->resume();
  });
}

}  // namespace batchwright::simulation
