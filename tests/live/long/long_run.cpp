// Producers, trainers and a clock around a LivePool. What is checked is counted again here: which
// version and line of training each sequence is of, and how stale that is by
// daemon/live/DEFINITIONS.md.

#include "tests/live/long/long_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "formats/base/base.h"
#include "tests/live/long/long_parts.h"

namespace batchwright::test {
namespace {

constexpr std::uint64_t kOfOnePool = 5'000;      ///< Rows, before the next pool is drawn.
constexpr std::uint64_t kRemembered = 1U << 14;  ///< Sequences of a producer; more than a pool has.
constexpr std::size_t kKept = 6;                 ///< Steps that a trainer may take again.
constexpr std::uint64_t kPatience = 1'000'000;   ///< Events without a step.

/// One pool, until its trainers have had so many sequences.
class OnePool {
 public:
  OnePool(const LongRun& run, const LiveSettings& settings, std::uint64_t together, Dice& dice,
          LongRunFigures& figures)
      : run_(run),
        settings_(settings),
        together_(together),
        dice_(dice),
        figures_(figures),
        pool_(settings) {}

  void go(std::uint64_t rows) {
    begin();
    const std::uint64_t goal = figures_.rows + rows;
    std::uint64_t idle = 0;
    while (figures_.rows < goal && figures_.fault.empty()) {
      const std::uint64_t before = figures_.steps;
      next_thing();
      idle = figures_.steps == before ? idle + 1 : 0;
      if (idle > kPatience) fail("no step was had for long");
    }
  }

 private:
  void fail(const std::string& what) {
    if (figures_.fault.empty()) {
      figures_.fault = fmt::format("pool {}, {} ms: {}", figures_.pools, now_ms_, what);
    }
  }

  void begin() {
    ++figures_.pools;
    makers_.resize(dice_.between(1, 8));
    const bool mixes = !run_.is_paced && settings_.groups == LiveGroups::none && dice_.percent(30);
    const bool all_claim = run_.is_paced || dice_.percent(60);
    for (Maker& one : makers_) {
      one.claims = mixes ? dice_.percent(50) : all_claim;
      one.speed = run_.is_paced ? 1 : dice_.between(1, 5);
      one.sequences.resize(kRemembered);
    }
    loopers_.resize(run_.is_paced || dice_.percent(60) ? 1 : 2);
    for (Looper& one : loopers_) {
      one.prefetch = run_.is_paced ? run_.prefetch : static_cast<std::uint32_t>(dice_.below(3));
      one.announces = &one == loopers_.data() || dice_.percent(20);
      one.work_ms = dice_.between(1, 60);
    }
    for (std::uint32_t who = 0; who < makers_.size() + loopers_.size(); ++who) later(0, who);
  }

  void later(std::uint64_t ms, std::uint32_t who) {
    due_.push({now_ms_ + ms, order_++, who < makers_.size() ? makers_[who].life : 0, who});
  }

  /// Whatever is due next: something of a producer or trainer, or a time limit of the pool.
  void next_thing() {
    const auto limit = pool_.next_deadline();
    if (due_.empty() || (limit && *limit < due_.top().at_ms)) {
      if (!limit) return fail("all wait for each other");
      now_ms_ = *limit;
      tell(TimePassed{});
      return hear();
    }
    const Due due = due_.top();
    due_.pop();
    now_ms_ = due.at_ms;
    if (due.who >= makers_.size()) {
      train(due.who - static_cast<std::uint32_t>(makers_.size()));
    } else if (makers_[due.who].life == due.life) {
      produce(due.who);
    }
  }

  /// Returns the event's number. What follows is heard by hear().
  std::uint64_t tell(const LiveEvent& event) {
    ++figures_.events;
    return pool_.on(event, now_ms_, results_);
  }

  void hear() {
    LiveResults news;
    std::swap(news, results_);
    for (const LiveChange& change : news.changes) {
      const bool is_new = change.state == SequenceState::waiting;
      if (is_new && change.number == makers_[change.producer].next) accepted(change.producer);
      if (change.state == SequenceState::dropped_stale && change.why == "stale") dropped(change);
    }
    for (LiveStep& step : news.steps) steps_.push_back({std::move(step), lines_.last()});
    for (const LiveAnswer& answer : news.answers) heard(answer);
  }

  void heard(const LiveAnswer& answer) {
    if (answer.kind == LiveAnswer::Kind::refused) return fail("refused: " + answer.why);
    if (answer.kind == LiveAnswer::Kind::granted) {
      for (std::uint32_t who = 0; who < makers_.size(); ++who) {
        if (makers_[who].asked == answer.event) return granted(who, answer.value);
      }
    }
    if (answer.kind == LiveAnswer::Kind::step) {
      for (std::uint32_t id = 0; id < loopers_.size(); ++id) {
        if (loopers_[id].asked == answer.event) return step_came(id, answer.value);
      }
    }
  }

  void dropped(const LiveChange& change) {
    ++figures_.dropped;
    if (run_.is_paced)
      fail(fmt::format("number {} of {} is dropped", change.number, change.producer));
  }

  // ---- producers

  void produce(std::uint32_t who) {
    Maker& one = makers_[who];
    if (dice_.once_in(3000)) {
      ++figures_.pauses;
      return later(dice_.between(100, 5000), who);
    }
    if (!run_.is_paced && dice_.once_in(2000)) return come_anew(who);
    if (one.left != 0) return push(who);
    if (one.claims) {
      one.asked = tell(LiveClaim{who, together_, {}});
      return hear();
    }
    const std::uint64_t back = dice_.below(8);
    one.version = back == 7 ? *std::max_element(lines_.tops.begin(), lines_.tops.end())
                            : lines_.current - std::min(lines_.current, back);
    begin_items(who);
  }

  void granted(std::uint32_t who, std::uint64_t version) {
    Maker& one = makers_[who];
    one.asked.reset();
    one.version = version;
    const Claimed claimed{{version, lines_.last()}, now_ms_ + settings_.claim_timeout_ms};
    one.claimed.insert(one.claimed.end(), together_, claimed);
    begin_items(who);
  }

  void begin_items(std::uint32_t who) {
    makers_[who].left = together_;
    makers_[who].group = (std::uint64_t{who} << 40U) + ++groups_;
    begin_item(who);
  }

  /// A long one takes up to a hundred times as much.
  void begin_item(std::uint32_t who) {
    Maker& one = makers_[who];
    const std::uint64_t most = dice_.percent(50) ? kLongest / 10 : kLongest;
    one.length = static_cast<std::uint32_t>(dice_.between(1, most));
    later(one.length * one.speed, who);
  }

  void push(std::uint32_t who) {
    const Maker& one = makers_[who];
    LivePush push;
    push.producer = who;
    push.number = one.next;
    push.length = one.length;
    push.bytes = one.length;
    push.version = push.version_newest = one.version;
    if (settings_.groups != LiveGroups::none) {
      push.group = one.group;
      push.group_size = together_;
    }
    tell(push);
    hear();
  }

  void accepted(std::uint32_t who) {
    Maker& one = makers_[who];
    one.sequences[one.next % kRemembered] = {{one.version, one.use_claim(lines_, now_ms_)},
                                             one.length};
    ++one.next;
    ++figures_.pushed;
    figures_.pushed_frames += one.length;
    if (--one.left == 0) {
      later(0, who);
    } else {
      begin_item(who);
    }
  }

  void come_anew(std::uint32_t who) {
    Maker& one = makers_[who];
    one.claimed.clear();
    one.asked.reset();
    one.left = 0;
    ++one.life;
    tell(ProducerGone{who});
    hear();
    later(dice_.between(1, 200), who);
  }

  // ---- trainers

  void train_later(std::uint32_t id) {
    const auto who = static_cast<std::uint32_t>(makers_.size() + id);
    const bool pauses = dice_.once_in(200);
    figures_.pauses += pauses ? 1 : 0;
    later(pauses ? dice_.between(100, 5000) : dice_.between(1, 2 * loopers_[id].work_ms), who);
  }

  /// Its loop has done with what it had, and calls next().
  void train(std::uint32_t id) {
    Looper& one = loopers_[id];
    if (one.at_hand) finish(id);
    if (one.again != 0) return take_again(id);
    one.waits = true;
    if (!one.ready.empty()) return had(id);
    take(id, false);
  }

  void take(std::uint32_t id, bool prefetch) {
    Looper& one = loopers_[id];
    if (prefetch && (one.asked || one.ready.size() >= one.prefetch)) return;
    one.asked = tell(LiveTake{id, one.next, prefetch});
    hear();
  }

  void step_came(std::uint32_t id, std::uint64_t step) {
    Looper& one = loopers_[id];
    one.asked.reset();
    one.next = step + 1;
    one.ready.push_back(step);
    if (one.waits) {
      had(id);
    } else {
      take(id, true);
    }
  }

  /// next() returns.
  void had(std::uint32_t id) {
    Looper& one = loopers_[id];
    one.waits = false;
    one.at_hand = one.ready.front();
    one.ready.pop_front();
    const CutStep& had = steps_[static_cast<std::size_t>(*one.at_hand)];
    look(had);
    one.kept.push_back(had.step.version);
    if (one.kept.size() > kKept) one.kept.pop_front();
    train_later(id);
    take(id, true);
  }

  void look(const CutStep& had) {
    ++figures_.steps;
    if (had.step.batches.size() != settings_.world) fail("a step lacks batches");
    for (const auto& batch : had.step.batches) {
      if (batch.empty()) fail("a batch has no row");
      for (const LiveRow& row : batch) look_at(had, row);
    }
  }

  void look_at(const CutStep& had, const LiveRow& row) {
    const Maker& maker = makers_[row.producer];
    const Sequence& sequence = maker.sequences[row.number % kRemembered];
    const std::uint64_t stale = lines_.distance(sequence.by, {had.step.version, had.line});
    ++figures_.rows;
    figures_.frames += sequence.length;
    figures_.old_lines += sequence.by.line != had.line ? 1 : 0;
    if (row.number + kRemembered <= maker.next) fail("a sequence is older than is remembered");
    const std::uint64_t bound = *settings_.max_staleness;
    ++figures_.bounded;
    figures_.at_bound += stale == bound ? 1 : 0;
    const bool is_zeroed = settings_.stale == StalePolicy::zero && row.weight == 0;
    figures_.zeroed += stale > bound && is_zeroed ? 1 : 0;
    if (stale > bound && !is_zeroed) {
      fail(fmt::format(
          "step {} of version {} has number {} of producer {}, of version {}: {} above {}",
          had.step.step, had.step.version, row.number, row.producer, sequence.by.version, stale,
          bound));
    }
    if (run_.is_paced && lines_.current - sequence.by.version > bound) {
      fail(fmt::format("step {} comes with version {} when the trainer has {}", had.step.step,
                       sequence.by.version, lines_.current));
    }
  }

  void finish(std::uint32_t id) {
    const std::uint64_t step = *std::exchange(loopers_[id].at_hand, std::nullopt);
    if (loopers_[id].announces) announce_next(id);
    tell(LiveRelease{id, step});
    hear();
  }

  void announce_next(std::uint32_t id) {
    LiveAdvance to;
    to.version = lines_.current + 1;
    const std::uint64_t draw = run_.is_paced ? 1000 : dice_.below(1000);
    if (draw < 100) return;  // this step makes none
    if (draw < 150) {
      ++figures_.jumps;
      to.version += dice_.between(1, 5);
    } else if (draw < 160 && loopers_[id].kept.size() == kKept) {
      restore(id, to);
    }
    announce(to);
  }

  /// It has the model of a checkpoint, and takes the steps after it again, or none of them.
  void restore(std::uint32_t id, LiveAdvance& to) {
    ++figures_.restores;
    to.restored = true;
    to.replays = dice_.percent(50);
    const std::uint64_t back = dice_.between(1, kKept - 1);
    to.version = std::min(loopers_[id].kept[kKept - back], lines_.current);
    if (!to.replays) return;
    ++figures_.replays;
    loopers_[id].again = back;
  }

  /// Time limits end first, so that what they cut is of the version before.
  void announce(const LiveAdvance& to) {
    tell(TimePassed{});
    hear();
    lines_.advance(to);
    tell(to);
    hear();
  }

  /// A step that is trained on again is not held against the bound once more.
  void take_again(std::uint32_t id) {
    --loopers_[id].again;
    LiveAdvance to;
    to.version = lines_.current + 1;
    announce(to);
    train_later(id);
  }

  const LongRun& run_;
  const LiveSettings settings_;
  const std::uint64_t together_;  ///< Sequences of a claim, or of a group.
  Dice& dice_;
  LongRunFigures& figures_;
  LivePool pool_;
  LiveResults results_;
  Lines lines_;
  std::vector<Maker> makers_;
  std::vector<Looper> loopers_;
  std::deque<CutStep> steps_;  ///< By their numbers.
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::uint64_t now_ms_ = 0;
  std::uint64_t order_ = 0;
  std::uint64_t groups_ = 0;
};

}  // namespace

LongRunFigures run_long(const LongRun& run) {
  LongRunFigures figures;
  Dice dice(run.seed);
  while (figures.rows < run.sequences && figures.fault.empty()) {
    const auto [drawn, together] = draw_settings(run, dice);
    const auto settings = check_live_settings(drawn);
    must(settings.has_value(), "settings that were drawn for a long run");
    OnePool(run, *settings, together, dice, figures)
        .go(std::min(kOfOnePool, run.sequences - figures.rows));
  }
  return figures;
}

}  // namespace batchwright::test
