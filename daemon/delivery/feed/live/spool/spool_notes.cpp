#include "daemon/delivery/feed/live/spool/spool_notes.h"

#include <algorithm>
#include <utility>

namespace batchwright {

void SpoolNotes::accepted(std::shared_ptr<const PushedSequence> sequence,
                          const LiveChange& change) {
  turn_.accepted.push_back({std::move(sequence), change.producer, change.line});
  touched(change.producer, change.number);
}

void SpoolNotes::cut(const std::vector<LiveStep>& steps, const std::vector<LiveChange>& changes) {
  if (steps.empty()) return;
  std::unordered_set<std::uint64_t> left;
  for (const LiveChange& change : changes) {
    if (change.left) left.insert(change.arrival);
  }
  for (const LiveStep& step : steps) {
    SpooledStep& noted = turn_.steps.emplace_back(SpooledStep{step.step, step.version, {}});
    for (const auto& rows : step.batches) {
      auto& batch = noted.batches.emplace_back();
      for (const LiveRow& row : rows) {
        batch.push_back({row.arrival, static_cast<float>(row.weight), row.zeroed, row.filler,
                         row.frames != 0 && left.contains(row.arrival), row.start, row.frames,
                         row.reset, row.last});
        if (batch.back().leaves) left_with_step_.insert(row.arrival);
      }
    }
  }
}

/// One that left the pool with a step is known by its row.
void SpoolNotes::changed(const LiveChange& change) {
  touched(change.producer, change.number);
  if (change.state != SequenceState::delivered) return;
  if (left_with_step_.erase(change.arrival) != 0) return;
  turn_.marks.push_back({change.arrival, change.given, change.last_step, change.left});
}

void SpoolNotes::groups(const std::vector<LiveGroupChange>& changes) {
  turn_.groups.insert(turn_.groups.end(), changes.begin(), changes.end());
}

void SpoolNotes::touched(ProducerId producer, std::optional<std::uint64_t> number) {
  auto& range = touched_[producer];
  if (!number) return;
  if (!range) {
    range = {*number, *number};
  } else {
    range = {std::min(range->first, *number), std::max(range->second, *number)};
  }
}

std::optional<SpoolTurn> SpoolNotes::take(SpoolCounts counts, const ProducerTable& producers) {
  if (is_empty() && counts.kept_from == kept_from_) return {};
  counted_ = false;
  SpoolTurn turn = std::exchange(turn_, {});
  for (const auto& [id, range] : std::exchange(touched_, {})) {
    const LiveProducer& producer = producers.at(id);
    const Outcomes& outcomes = producer.outcomes;
    SpooledProducer& noted = turn.producers.emplace_back();
    noted.id = id;
    noted.name = producer.name;
    noted.next = producer.next;
    noted.totals.assign(outcomes.totals().begin(), outcomes.totals().end());
    noted.refused_full = outcomes.refused_full();
    noted.duplicates = outcomes.duplicates();
    noted.forgotten_before = outcomes.first();
    if (!range) continue;
    noted.first = range->first / kSpoolChunk * kSpoolChunk;
    const std::uint64_t end = (range->second / kSpoolChunk + 1) * kSpoolChunk;
    std::uint64_t from = noted.first;
    const auto listed = outcomes.list(from, end - noted.first);
    // Chunks are written whole: what is forgotten before them is unknown.
    for (; noted.first + noted.outcomes.size() < from && from < end;) noted.outcomes.push_back(0);
    for (const wire::Outcome outcome : listed) {
      if (noted.first + noted.outcomes.size() >= end) break;
      noted.outcomes.push_back(static_cast<std::uint8_t>(outcome));
    }
  }
  turn.gone_steps_from = kept_from_;
  kept_from_ = counts.kept_from;
  turn.counts = std::move(counts);
  return turn;
}

}  // namespace batchwright
