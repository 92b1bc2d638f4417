#include "tests/simulation/clients/programs.h"

#include <deque>

#include "tests/simulation/clients/client.h"

namespace batchwright::simulation {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// Looks at some batches of a whole epoch, or at all of them, from its beginning. Returns the last.
std::optional<Held> evaluate(const Surroundings& around, Client& client) {
  wire::SubscribeT request;
  request.feed = "train";
  request.window = around.world.dice.between(2, 4);
  request.epochs = 1;
  const auto reading = client.subscribe(request);
  std::uint32_t left = around.world.dice.between(1, 12);
  around.world.sometimes(Mark::evaluated_within);
  std::optional<Held> last;
  while (!reading->over() && left != 0) {
    auto event = reading->next();
    if (!event.batch) continue;
    last = std::move(event.batch);
    --left;
  }
  return last;
}

/// One loop, until it is over or broken.
class TrainingLoop {
 public:
  TrainingLoop(const Surroundings& around, Process& process, const ProgramTerms& terms,
               std::optional<Saved>& saved, const Barrier& barrier)
      : around_(around), process_(process), terms_(terms), saved_(saved), barrier_(barrier) {}

  /// Whether all is done.
  bool run(Client& client) {
    if (saved_ && saved_->epoch >= terms_.epochs) return true;
    const auto reading = client.subscribe(client.request(saved_));
    while (!reading->over()) {
      if (around_.world.dice.percent(terms_.foresees)) reading->foresee();
      auto event = reading->next();
      // Another daemon may have granted a smaller window than that of which it keeps a list.
      if (!event.batch && !event.ended && held_.size() > 1) held_.pop_front();
      if (!event.batch) continue;
      const Saved behind = reading->position_behind(*event.batch);
      keep(std::move(*event.batch), reading->window());
      evaluated_.reset();
      client.work();
      const bool keeps = terms_.keeps_last || terms_.keeps_list;
      if (!keeps || reading->window() == 1) held_.clear();
      if (barrier_) {
        barrier_(process_, behind);
      } else {
        saved_ = behind;
      }
      if (around_.world.dice.percent(terms_.evaluates)) evaluated_ = evaluate(around_, client);
      if (!barrier_ && around_.world.dice.percent(terms_.breaks)) {
        around_.world.sometimes(Mark::broke_early);
        return false;
      }
    }
    return true;
  }

 private:
  void keep(Held batch, std::uint32_t window) {
    const std::size_t most = terms_.keeps_list ? window - 1 : 1;
    while (!held_.empty() && held_.size() >= most) held_.pop_front();
    held_.push_back(std::move(batch));
    if (terms_.keeps_list && held_.size() == most)
      around_.world.sometimes(Mark::kept_to_the_window);
  }

  const Surroundings& around_;
  Process& process_;
  const ProgramTerms& terms_;
  std::optional<Saved>& saved_;
  const Barrier& barrier_;
  std::deque<Held> held_;
  std::optional<Held> evaluated_;  ///< Of an evaluation, until the loop goes on.
};

/// What a worker does with the batch that it has worked on. One that keeps it until it has the next
/// says before that that it is done, as a `for` loop in Python does: the others wait for that.
void finish(const Surroundings& around, std::optional<Held>& batch, const ProgramTerms& terms,
            Client& client) {
  Dice& dice = around.world.dice;
  if (dice.percent(terms.undone)) {
    batch->give_back_undone();
    return batch.reset();
  }
  if (terms.keeps_last && !terms.keeps_undone) return batch->done();
  if (terms.keeps_last) return;
  if (dice.percent(terms.done_early)) {
    batch->done();
    client.work();
  }
  batch->release();
  batch.reset();
}

}  // namespace

Process::Main trainer(const Surroundings& around, const ProgramTerms& terms,
                      std::optional<Saved>* saved, Barrier barrier) {
  return [around, terms, saved, barrier = std::move(barrier)](Process& process) {
    Client client(around, process, terms);
    while (!TrainingLoop(around, process, terms, *saved, barrier).run(client)) client.work();
  };
}

Process::Main worker(const Surroundings& around, const ProgramTerms& terms) {
  return [around, terms](Process& process) {
    Client client(around, process, terms);
    const auto reading = client.subscribe(client.request({}));
    std::optional<Held> last;
    while (!reading->over()) {
      auto event = reading->next();
      if (last && (event.batch || event.ended)) last->release();
      if (event.batch || event.ended) last.reset();
      if (!event.batch) continue;
      last = std::move(event.batch);
      client.work();
      finish(around, last, terms, client);
    }
  };
}

Process::Main observer(const Surroundings& around, const ProgramTerms& terms, const bool* over) {
  return [around, terms, over](Process& process) {
    Client client(around, process, terms);
    const auto reading = client.subscribe(client.request({}));
    while (!*over) {
      if (terms.takes_none) {
        process.sleep(milliseconds(500));
        continue;
      }
      reading->next();
      client.work();
    }
  };
}

}  // namespace batchwright::simulation
