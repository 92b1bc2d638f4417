#include "tests/delivery/feed/slot_admission_model.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "daemon/assembly/assembly.h"
#include "tests/delivery/feed/admission_states.h"

namespace batchwright::test {
namespace {

/// Batches count from 1; of batch n a client was given all up to `given`, its program took all up
/// to `taken`, and released all up to `released`.
struct Client {
  bool here = false;
  bool asks = false;
  bool spoke = false;
  bool releases_first = false;
  bool waits = false;  ///< The program asked for its next batch.
  std::uint8_t given = 0;
  std::uint8_t taken = 0;
  std::uint8_t released = 0;
  std::uint8_t holds() const { return static_cast<std::uint8_t>(given - released); }
};
using State = std::vector<Client>;

class Model {
 public:
  Model(std::size_t slots, const std::vector<Actor>& actors, const Rule& rule, std::uint8_t steps)
      : slots_(slots), actors_(actors), rule_(rule), steps_(steps) {}

  Explored explore() {
    Explored explored;
    push(State(actors_.size()));
    while (!open_.empty()) {
      const State state = std::move(open_.back());
      open_.pop_back();
      ++explored.states;
      const bool moved = expand(state);
      if (moved || all_done(state)) continue;
      explored.stuck = text_of(state);
      return explored;
    }
    return explored;
  }

 private:
  bool works(std::size_t i) const { return actors_[i].program != Actor::Program::idles; }
  bool done(const State& state, std::size_t i) const {
    return state[i].taken == steps_ && state[i].released == steps_;
  }
  bool all_done(const State& state) const {
    for (std::size_t i = 0; i < state.size(); ++i) {
      if (works(i) && !done(state, i)) return false;
    }
    return true;
  }

  /// Whether anything can happen; what follows is explored later.
  bool expand(const State& state) {
    bool moved = false;
    for (std::size_t i = 0; i < state.size(); ++i) {
      if (!state[i].here) {
        State next = state;
        next[i].here = true;
        push(next);
        moved = true;
        continue;
      }
      moved |= give(state, i);
      if (works(i)) moved |= go_on(state, i);
    }
    return moved;
  }

  BatchId batch(std::size_t i, std::uint8_t number) const {
    return {Epoch{actors_[i].epoch}, BatchIndex{number * 100U + actors_[i].rank}};
  }

  AdmissionState standing(const State& state, std::size_t i) const {
    const Client& client = state[i];
    AdmissionState standing;
    standing.job = actors_[i].job;
    if (client.given < steps_) {
      standing.wants = batch(i, static_cast<std::uint8_t>(client.given + 1));
    }
    standing.over = client.given == steps_;
    standing.holds = client.holds();
    standing.served = client.given != 0;
    standing.shows_job = client.released > actors_[i].window;
    standing.spoke = client.spoke;
    standing.asks = client.asks;
    standing.releases_first = client.releases_first;
    return standing;
  }

  SlotCache cache_of(const State& state) const {
    SlotCache cache(static_cast<std::uint32_t>(slots_));
    const auto never = [](const BatchId&) { return std::optional(SlotCache::kNeverNeeded); };
    for (std::size_t i = 0; i < state.size(); ++i) {
      for (auto n = state[i].released; n < state[i].given; ++n) {
        const BatchId id = batch(i, static_cast<std::uint8_t>(n + 1));
        auto slot = cache.find(id);
        if (!slot) {
          slot = cache.take(id, never);
          cache.filled(*slot, {});
        }
        cache.hold(*slot);
      }
    }
    return cache;
  }

  /// The daemon gives a client its next batch.
  bool give(const State& state, std::size_t i) {
    const Client& client = state[i];
    if (client.given == steps_ || client.holds() >= actors_[i].window) return false;
    const SlotCache cache = cache_of(state);
    const bool is_held =
        cache.find(batch(i, static_cast<std::uint8_t>(client.given + 1))).has_value();
    if (!is_held && cache.held() == slots_) return false;
    std::vector<AdmissionState> standings;
    std::size_t one = 0;
    for (std::size_t k = 0; k < state.size(); ++k) {
      if (!state[k].here) continue;
      if (k == i) one = standings.size();
      standings.push_back(standing(state, k));
    }
    if (!rule_(standings, one, cache.held(), is_held)) return false;
    State next = state;
    ++next[i].given;
    next[i].asks = false;
    push(next);
    return true;
  }

  bool go_on(const State& state, std::size_t i) {
    const Client& client = state[i];
    if (client.taken == steps_) {
      if (client.released == steps_ || !barrier_open(state, i)) return false;
      return change(state, i, [this](Client& c) { c.released = steps_; });
    }
    if (!client.waits) {  // the body of its loop is over once all are at the barrier
      if (!barrier_open(state, i)) return false;
      return change(state, i, [this, i](Client& c) {
        c.waits = true;
        release(i, c, 0);
      });
    }
    if (client.given > client.taken) {
      return change(state, i, [this, i](Client& c) {
        ++c.taken;
        c.waits = false;
        release(i, c, 1);
      });
    }
    if (client.asks || client.holds() == 0) return false;
    return change(state, i, [](Client& c) { c.asks = c.spoke = true; });
  }

  /// What is released when the next batch is asked for (0), and when it is there (1).
  void release(std::size_t i, Client& client, std::uint8_t with_next) const {
    const Actor& actor = actors_[i];
    std::uint8_t left = static_cast<std::uint8_t>(client.taken - client.released);
    std::uint8_t keeps = left;
    if (actor.program == Actor::Program::gathers) {
      if (with_next == 0 && left >= actor.window) keeps = 0;
    } else if (left > actor.keeps + 0U) {
      keeps = static_cast<std::uint8_t>(actor.keeps);
    }
    if (actor.program == Actor::Program::keeps && actor.keeps == 0 && with_next == 1) return;
    if (keeps == left) return;
    client.released = static_cast<std::uint8_t>(client.taken - keeps);
    client.spoke = true;
    if (client.holds() == 0) client.releases_first = true;
  }

  /// Ranks meet after each step.
  bool barrier_open(const State& state, std::size_t i) const {
    if (actors_[i].job.ranks < 2) return true;
    for (std::size_t k = 0; k < state.size(); ++k) {
      if (!works(k) || actors_[k].job != actors_[i].job) continue;
      if (state[k].taken < state[i].taken) return false;
    }
    return true;
  }

  template <class Change>
  bool change(const State& state, std::size_t i, Change change) {
    State next = state;
    change(next[i]);
    push(next);
    return true;
  }

  void push(const State& state) {
    std::string key;
    for (const Client& c : state) {
      const int flags = c.here | c.asks << 1 | c.spoke << 2 | c.releases_first << 3 | c.waits << 4;
      key += static_cast<char>(flags);
      key += static_cast<char>(c.given);
      key += static_cast<char>(c.taken);
      key += static_cast<char>(c.released);
    }
    if (seen_.insert(key).second) open_.push_back(state);
  }

  std::string text_of(const State& state) const {
    std::string text = std::to_string(slots_) + " slots;";
    for (std::size_t i = 0; i < state.size(); ++i) {
      const Client& c = state[i];
      text += " client " + std::to_string(i) + " holds " + std::to_string(c.holds()) +
              " and has taken " + std::to_string(c.taken) + (c.waits ? ", waits;" : ";");
    }
    return text;
  }

  const std::size_t slots_;
  const std::vector<Actor>& actors_;
  const Rule& rule_;
  const std::uint8_t steps_;
  std::unordered_set<std::string> seen_;
  std::vector<State> open_;
};

}  // namespace

Rule admission_rule(std::size_t slots) {
  return [slots](const std::vector<AdmissionState>& standings, std::size_t one, std::size_t held,
                 bool is_held) {
    AdmissionStates admission(slots);
    for (std::size_t i = 0; i < standings.size(); ++i) {
      admission.note({SessionId{i + 1}, {1}}, standings[i]);
    }
    return admission.may_take({SessionId{one + 1}, {1}}, held, is_held);
  };
}

Rule empty_handed_rule(std::size_t slots) {
  return [slots](const std::vector<AdmissionState>& standings, std::size_t one, std::size_t held,
                 bool is_held) {
    if (standings[one].holds == 0) return true;
    const std::size_t left = slots - held;
    if (is_held) return left > 0;
    std::set<BatchId> needy;
    std::map<std::uint32_t, std::size_t> present;
    for (const AdmissionState& other : standings) {
      if (other.holds == 0 && other.wants) needy.insert(*other.wants);
      if (other.job.ranks > 1) ++present[other.job.ranks];
    }
    std::size_t absent = 0;
    for (const auto& [ranks, count] : present) absent += (ranks - count % ranks) % ranks;
    return left > needy.size() + absent + 1;
  };
}

Explored explore(std::size_t slots, const std::vector<Actor>& actors, const Rule& rule,
                 std::uint8_t steps) {
  return Model(slots, actors, rule, steps).explore();
}

}  // namespace batchwright::test
