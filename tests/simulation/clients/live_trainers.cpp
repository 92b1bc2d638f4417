#include <optional>
#include <utility>

#include "tests/simulation/clients/client.h"
#include "tests/simulation/clients/live_programs.h"

namespace batchwright::simulation {
namespace {

using std::chrono::milliseconds;

/// One start of a program that trains on the steps of a live feed.
class LiveTraining {
 public:
  LiveTraining(const Surroundings& around, Process& process, const ProgramTerms& terms,
               LiveSaved& saved)
      : around_(around), process_(process), terms_(terms), saved_(saved), steps_(saved.steps) {}

  void run(const Barrier& barrier) {
    if (is_done()) return;
    Client client(around_, process_, terms_);
    if (terms_.announces && saved_.version != 0) client.announce(saved_.version);
    const auto reading = client.subscribe(client.request({}));
    std::optional<Held> last;
    while (!reading->over() && !is_done()) {
      auto event = reading->next();
      if (!event.batch) continue;
      last = std::move(event.batch);
      client.work();
      const Saved behind = reading->position_behind(*last);
      if (!terms_.keeps_last || reading->window() == 1) last.reset();
      if (barrier) barrier(process_, behind);
      if (step_ && *step_ == behind.step) continue;  // it has another batch of that step
      step_ = behind.step;
      ++steps_;
      if (terms_.rank != 0) continue;
      saved_.steps = steps_;
      if (!terms_.announces) continue;
      client.announce(++saved_.version);
    }
  }

 private:
  bool is_done() const { return terms_.steps != 0 && steps_ >= terms_.steps; }

  const Surroundings& around_;
  Process& process_;
  const ProgramTerms& terms_;
  LiveSaved& saved_;
  std::uint64_t steps_;
  std::optional<std::uint64_t> step_;  ///< After which it is.
};

}  // namespace

Process::Main live_trainer(const Surroundings& around, const ProgramTerms& terms, LiveSaved* saved,
                           Barrier barrier) {
  return [around, terms, saved, barrier = std::move(barrier)](Process& process) {
    LiveTraining(around, process, terms, *saved).run(barrier);
  };
}

Process::Main ender(const Surroundings& around, std::function<bool()> due,
                    std::function<bool()> over) {
  return [around, due = std::move(due), over = std::move(over)](Process& process) {
    while (!due()) process.sleep(milliseconds(100));
    const ProgramTerms terms;
    while (!over()) {
      Client(around, process, terms).end_feed();
      process.sleep(milliseconds(1000));
    }
  };
}

}  // namespace batchwright::simulation
