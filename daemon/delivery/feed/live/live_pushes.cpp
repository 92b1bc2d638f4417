// A push of a producer: its sequences are held against the schema and the bytes, and offered to the
// pool.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "daemon/delivery/feed/live/live_service.h"
#include "storage/dataset/dataset.h"

namespace batchwright {
namespace {

std::optional<std::uint64_t> time_left(const std::optional<std::uint64_t>& until_ms,
                                       std::uint64_t now_ms) {
  if (!until_ms) return {};
  return *until_ms - std::min(*until_ms, now_ms);
}

/// Bytes that it takes in a record, those that are joined to it at their most.
std::size_t recorded_bytes(const Schema& schema, const PushedSequence& sequence) {
  std::size_t bytes = record_bytes({sequence.key, sequence.fields});
  for (std::size_t f = 0; f < sequence.fields.size(); ++f) {
    const FieldValue& value = sequence.fields[f];
    if (value.bytes.empty())
      bytes += value.length * frame_bytes(schema.fields[f]) + kTensorAlignment;
  }
  return bytes;
}

}  // namespace

/// The sequences of its push, one after the other, until one has to wait or all are accepted.
void LiveService::offer(LiveProducer& producer) {
  while (producer.push && !producer.push->offered) {
    PushUnderWay& push = *producer.push;
    if (pool_.has_ended()) return finish_push(producer, {}, true);
    if (push.next == push.push.sequences.size()) return finish_push(producer, {});
    const std::uint64_t number = push.push.first + push.next;
    const wire::OfferedSequence& origin = push.push.sequences[push.next];
    if (number < producer.next) {  // a repeat
      producer.outcomes.count_duplicate();
      ++seen_.counts.duplicates;
      if (spool_) spool_->touched(producer.id);
      push.key_at += origin.key_bytes();
      ++push.next;
      continue;
    }
    auto offered = next_offered(producer);
    if (!offered) return finish_push(producer, offered.error());
    LivePush event;
    event.producer = producer.id;
    event.number = number;
    event.length = (*offered)->fields[settings_.schema.primary()].length;
    event.bytes = (*offered)->bytes();
    event.version = origin.version();
    event.version_newest = origin.version_newest();
    if (origin.group() != kNoGroup) event.group = origin.group();
    event.group_size = origin.group_size();
    event.weight = origin.weight();
    event.timeout_ms = time_left(push.until_ms, clock_.now_ms);
    push.offered = *std::move(offered);
    push.event = tell(event);
    asked_.emplace(push.event, producer.id);
    digest();
  }
}

/// What the client says of its next sequence, held against the schema and the bytes.
Result<std::shared_ptr<PushedSequence>> LiveService::next_offered(
    const LiveProducer& producer) const {
  const PushUnderWay& under_way = *producer.push;
  const wire::PushT& push = under_way.push;
  const wire::OfferedSequence& origin = push.sequences[under_way.next];
  const std::uint64_t number = push.first + under_way.next;
  const std::size_t fields = settings_.pushed();
  const auto wrong = [number](std::string what) {
    return Error{ErrorCode::invalid_argument, fmt::format("sequence {}: {}", number, what)};
  };
  if (number > producer.next) return wrong(fmt::format("{} comes next", producer.next));
  if (push.lengths.size() != fields * push.sequences.size()) {
    return wrong(fmt::format("{} lengths for {} sequences of {} {}fields", push.lengths.size(),
                             push.sequences.size(), fields,
                             settings_.join.from.empty() ? "" : "pushed "));
  }
  if (!std::isfinite(origin.weight()) || origin.weight() < 0) {
    return wrong(fmt::format("weight {}; allowed: 0 and up", origin.weight()));
  }
  if (origin.version_newest() > kLastVersion) return wrong("a version beyond 2^62");
  const std::span<const std::uint32_t> lengths =
      std::span(push.lengths).subspan(fields * under_way.next, fields);
  auto values = fields_of(settings_.schema, lengths, origin.offset(), under_way.bytes.bytes);
  if (!values) {
    return Error{values.error().code,
                 fmt::format("sequence {}: {}", number, values.error().message)};
  }
  auto sequence = std::make_shared<PushedSequence>();
  const auto* key = reinterpret_cast<const char*>(push.keys.data()) + under_way.key_at;
  sequence->key.assign(key, origin.key_bytes());
  sequence->fields = *std::move(values);
  sequence->memory = under_way.bytes.memory;
  sequence->producer = producer.name;
  sequence->number = number;
  sequence->version = origin.version();
  sequence->version_newest = origin.version_newest();
  sequence->group = origin.group();
  sequence->group_size = origin.group_size();
  sequence->weight = origin.weight();
  if (!push.epochs.empty()) sequence->epoch = push.epochs.at(under_way.next);
  if (auto joined = join(under_way, *sequence); !joined) {
    return Error{joined.error().code,
                 fmt::format("sequence {}: {}", number, joined.error().message)};
  }
  if (record_) {
    const std::size_t bytes = recorded_bytes(settings_.schema, *sequence);
    if (bytes > kMaxRecordBytes) {
      return Error{ErrorCode::does_not_fit,
                   fmt::format("sequence {}: it takes {} bytes in live.record; allowed: up to {}",
                               number, bytes, kMaxRecordBytes)};
    }
  }
  return sequence;
}

/// Finds the row that it belongs to, where the feed joins rows.
Result<void> LiveService::join(const PushUnderWay& under_way, PushedSequence& sequence) const {
  const wire::OfT* of = under_way.push.of.get();
  const std::string& from = settings_.join.from;
  if (from.empty() && of == nullptr) return {};
  if (from.empty()) {
    return Error{ErrorCode::invalid_argument, "it names a row, and this feed joins none"};
  }
  if (of == nullptr) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("it names no row of feed {}, which this feed joins to each", from)};
  }
  if (of->feed != from) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("it names a row of feed \"{}\"; allowed: {}", utf8(of->feed), from)};
  }
  if (!under_way.join) return under_way.join.error();
  must(*under_way.join != nullptr, "rows of the feed that is joined were looked up");
  auto row = join_row(settings_, *under_way.join, of->rows[under_way.next], length_of(sequence),
                      sequence.fields);
  if (!row) return row.error();
  sequence.of = *std::move(row);
  return {};
}

void LiveService::finish_push(LiveProducer& producer, const std::optional<Error>& error,
                              bool ended) {
  const wire::PushT& push = producer.push->push;
  wire::AcceptedT answer;
  answer.producer = push.producer;
  answer.question = push.question;
  answer.next = producer.next;
  answer.ended = ended;
  if (error) {
    answer.code = static_cast<std::uint16_t>(error->code);
    answer.text = error->message;
    const bool is_full = error->code == ErrorCode::timed_out;
    ++(is_full ? seen_.counts.pushes_timed_out : seen_.counts.pushes_refused);
  }
  const SessionId to = producer.key->session;
  producer.push.reset();
  send(to, std::move(answer));
}

}  // namespace batchwright
