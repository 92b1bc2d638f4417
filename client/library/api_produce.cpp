// The C ABI of producers. Arguments checked, errors reported, exceptions stopped.

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "client/library/api_border.h"
#include "client/library/batchwright/client.h"
#include "client/library/link/zmq_transport.h"
#include "client/library/memory/batch.h"
#include "client/library/produce/producer.h"
#include "formats/formats.h"

using namespace batchwright;

static_assert(BW_NO_GROUP == kNoGroup);
static_assert(BW_MAX_OUTCOMES == kMostOutcomes);
static_assert(BW_OUTCOME_WAITING == static_cast<int>(wire::Outcome::waiting));
static_assert(BW_OUTCOME_DROPPED_STALE == static_cast<int>(wire::Outcome::dropped_stale));
static_assert(BW_OUTCOME_LOST == static_cast<int>(wire::Outcome::MAX));

namespace {

/// A producer and the lock of the thread that uses it. Handles and rooms share it.
struct Shared {
  explicit Shared(std::unique_ptr<Producer> made) : producer(std::move(made)) {}
  Mutex in_use;
  const std::unique_ptr<Producer> producer;  // in_use is held, except for forked() and stop()
};

}  // namespace

struct bw_producer {
  std::shared_ptr<Shared> shared;
};

struct bw_room {
  std::shared_ptr<Shared> shared;
  std::unique_ptr<WrittenRoom> inner;
};

namespace {

bw_produce_options default_produce_options() { return BW_PRODUCE_OPTIONS_INIT; }

bw_status to_c(const Result<Producer::Verdict>& verdict) {
  if (!verdict) return report(verdict.error());
  switch (*verdict) {
    case Producer::Verdict::done: return BW_OK;
    case Producer::Verdict::pending: return BW_PENDING;
    case Producer::Verdict::ended: break;
  }
  return BW_END;
}

bw_status to_c(const Result<void>& done) { return done ? BW_OK : report(done.error()); }

/// Runs `call` for the thread that has the producer, in the process that made it.
template <class Call>
bw_status alone_with(std::shared_ptr<Shared> shared, const Call& call) noexcept {
  if (shared->producer->forked()) return forked();
  // Not waited for: two threads on one producer are a mistake that should show.
  if (!shared->in_use.try_lock()) {
    return report({ErrorCode::busy, "another thread is in a call on this producer"});
  }
  const MutexLock alone(shared->in_use, std::adopt_lock);
  return at_border([&] { return call(*shared->producer); });
}

template <class Call>
bw_status alone_with(bw_producer* producer, std::int64_t timeout_ms, const Call& call) noexcept {
  if (producer == nullptr) return report_invalid("no producer");
  if (timeout_ms < 0) return report_invalid("timeout_ms is below 0");
  return alone_with(producer->shared, call);
}

Result<Producer::Settings> to_producer(const bw_produce_options& options, Transport& transport) {
  if (options.slice_ms < 0) return Error{ErrorCode::invalid_argument, "slice_ms is below 0"};
  Producer::Settings settings;
  settings.wanted = {options.feed, options.name != nullptr ? options.name : "", options.area_bytes};
  settings.slice = std::chrono::milliseconds(options.slice_ms);
  std::string& name = settings.wanted.name;
  if (options.name == nullptr) name = fmt::format("producer-{:016x}", transport.draw_token());
  if (!name.empty() && name.size() <= kMostNameBytes) return settings;
  return Error{
      ErrorCode::invalid_argument,
      fmt::format("a producer's name has 1 to {} bytes, found {}", kMostNameBytes, name.size())};
}

bw_status produce(const Session& session, const bw_produce_options& options,
                  bw_producer** producer) {
  auto transport = ZmqTransport::make();
  if (!transport) return report(transport.error());
  auto settings = to_producer(options, **transport);
  if (!settings) return report(settings.error());
  const DaemonLink& link = session.link();
  auto made =
      Producer::open(link.endpoint(), link.settings(), std::move(*transport), std::move(*settings));
  if (!made) return report(made.error());
  // The program owns it from here, until bw_producer_close().
  *producer = new bw_producer{std::make_shared<Shared>(std::move(*made))};
  return BW_OK;
}

bw_producer_info info_of(const Conversation& conversation) {
  bw_producer_info info{};
  info.struct_size = sizeof info;
  info.name = conversation.name().c_str();
  info.incarnation = conversation.numbers().incarnation;
  info.next = conversation.numbers().next;
  info.version = conversation.numbers().version;
  info.reconnects = conversation.link().reconnects();
  if (const auto& store = conversation.store()) {
    info.area_bytes = store->bytes();
    info.area_used = store->used();
  }
  return info;
}

/// Fills in what `room` has place for.
template <class Struct>
bw_status fill(Struct found, std::size_t room, Struct* place) {
  found.struct_size = std::min(room, sizeof found);
  std::memcpy(place, &found, found.struct_size);
  return BW_OK;
}

bw_outcomes_total total_of(const Producer::Outcomes& outcomes) {
  const auto of = [&](wire::Outcome state) {
    return outcomes.totals.at(static_cast<std::size_t>(state));
  };
  return {sizeof(bw_outcomes_total),    of(wire::Outcome::unknown),
          of(wire::Outcome::waiting),   of(wire::Outcome::delivered),
          of(wire::Outcome::done),      of(wire::Outcome::dropped_stale),
          of(wire::Outcome::abandoned), of(wire::Outcome::lost),
          outcomes.refused_full,        outcomes.duplicates};
}

/// Numbers that the daemon remembers no longer are unknown, and those that nothing has are none.
bw_status outcomes_of(Producer& producer, std::uint64_t first, std::chrono::milliseconds limit,
                      std::span<bw_outcome> room, std::size_t* count) {
  const auto found = producer.outcomes(first, static_cast<std::uint32_t>(room.size()), limit);
  if (!found) return report(found.error());
  std::size_t filled = 0;
  const std::uint64_t next = producer.conversation().numbers().next;
  for (std::uint64_t number = first; number < next && filled < room.size(); ++number) {
    const bool is_known = number >= found->first && number - found->first < found->states.size();
    const auto state = is_known ? found->states[number - found->first] : wire::Outcome::unknown;
    room[filled++] = static_cast<bw_outcome>(state);
  }
  *count = filled;
  return BW_OK;
}

std::chrono::milliseconds ms(std::int64_t count) { return std::chrono::milliseconds(count); }

}  // namespace

extern "C" {

bw_status bw_produce(bw_connection* connection, const bw_produce_options* options,
                     bw_producer** producer) {
  if (producer == nullptr) return report_invalid("no place for the producer is given");
  *producer = nullptr;
  if (options == nullptr) return report_invalid("no options");
  const auto read = read_options(options, default_produce_options());
  if (!read) return report(read.error());
  return with_live(connection, read->feed,
                   [&](Session& session, bool) { return produce(session, *read, producer); });
}

bw_status bw_producer_get_info(bw_producer* producer, bw_producer_info* info) {
  if (info == nullptr) return report_invalid("no place for the state is given");
  const std::size_t room = info->struct_size;
  if (room < sizeof info->struct_size) return report_invalid("struct_size is not set");
  return alone_with(producer, 0, [&](Producer& found) {
    return fill(info_of(found.conversation()), room, info);
  });
}

bw_status bw_claim(bw_producer* producer, uint32_t count, int64_t timeout_ms, uint64_t* version) {
  if (version == nullptr) return report_invalid("no place for the version is given");
  return alone_with(producer, timeout_ms, [&](Producer& found) {
    return to_c(found.claim(count, ms(timeout_ms), *version));
  });
}

bw_status bw_push(bw_producer* producer, const bw_sequence* sequence, const bw_origin* origin,
                  int64_t timeout_ms, uint64_t* number) {
  if (sequence == nullptr) return report_invalid("no sequence");
  return alone_with(producer, timeout_ms, [&](Producer& found) {
    std::size_t accepted = 0;
    const bw_status status = to_c(found.push({{sequence, 1}, origin}, ms(timeout_ms), accepted));
    if (status == BW_OK && number != nullptr) *number = found.last_number();
    return status;
  });
}

bw_status bw_push_many(bw_producer* producer, const bw_sequence* sequences, size_t count,
                       const bw_origin* origins, int64_t timeout_ms, size_t* accepted) {
  if (accepted != nullptr) *accepted = 0;
  if (sequences == nullptr && count != 0) return report_invalid("no sequences");
  return alone_with(producer, timeout_ms, [&](Producer& found) {
    std::size_t taken = 0;
    const bw_status status = to_c(found.push({{sequences, count}, origins}, ms(timeout_ms), taken));
    if (accepted != nullptr) *accepted = taken;
    return status;
  });
}

bw_status bw_reserve(bw_producer* producer, const uint32_t* lengths, size_t count,
                     int64_t timeout_ms, bw_room** room) {
  if (room == nullptr) return report_invalid("no place for the room is given");
  *room = nullptr;
  if (lengths == nullptr) return report_invalid("no lengths");
  return alone_with(producer, timeout_ms, [&](Producer& found) {
    auto made = std::make_unique<bw_room>();
    made->shared = producer->shared;
    const auto verdict = found.reserve({lengths, count}, ms(timeout_ms), made->inner);
    if (verdict && *verdict == Producer::Verdict::done) *room = made.release();
    return to_c(verdict);
  });
}

void* bw_room_field(const bw_room* room, size_t field, uint64_t* bytes) {
  if (room == nullptr || field >= room->inner->places.size()) return nullptr;
  const ValuePlace& place = room->inner->places[field];
  if (bytes != nullptr) *bytes = place.bytes;
  return room->inner->memory().data() + place.offset;
}

bw_memory* bw_room_memory(const bw_room* room) {
  if (room == nullptr) return nullptr;
  const WrittenRoom& found = *room->inner;
  return new (std::nothrow) bw_memory{found.store ? found.store->keeper() : found.frame.keeper};
}

bw_status bw_commit(bw_room* room, const char* key, size_t key_bytes, const bw_origin* origin,
                    int64_t timeout_ms, uint64_t* number) {
  if (room == nullptr) return report_invalid("no room");
  if (timeout_ms < 0) return report_invalid("timeout_ms is below 0");
  const bw_status status = alone_with(room->shared, [&](Producer& found) {
    const auto verdict = found.commit(*room->inner, {{key, key_bytes}, origin}, ms(timeout_ms));
    if (verdict && *verdict == Producer::Verdict::done && number != nullptr) {
      *number = found.last_number();
    }
    return to_c(verdict);
  });
  if (status == BW_OK) delete room;
  return status;
}

bw_status bw_room_drop(bw_room* room) {
  if (room == nullptr) return BW_OK;
  const bw_status status = alone_with(room->shared, [&](Producer& found) {
    found.drop(*room->inner);
    return BW_OK;
  });
  if (status == BW_OK || status == BW_FORKED) delete room;
  return status;
}

bw_status bw_abandon(bw_producer* producer, uint64_t group, uint32_t count) {
  return alone_with(producer, 0, [&](Producer& found) {
    wire::AbandonT what;
    what.group = group;
    what.count = count;
    return to_c(found.abandon(what));
  });
}

bw_status bw_abandon_number(bw_producer* producer, uint64_t number) {
  return alone_with(producer, 0, [&](Producer& found) {
    wire::AbandonT what;
    what.group = kNoGroup;
    what.number = number;
    what.by_number = true;
    return to_c(found.abandon(what));
  });
}

bw_status bw_outcomes(bw_producer* producer, int64_t timeout_ms, bw_outcomes_total* total) {
  if (total == nullptr) return report_invalid("no place for the outcomes is given");
  const std::size_t room = total->struct_size;
  if (room < sizeof total->struct_size) return report_invalid("struct_size is not set");
  return alone_with(producer, timeout_ms, [&](Producer& found) {
    const auto outcomes = found.outcomes(0, 0, ms(timeout_ms));
    return outcomes ? fill(total_of(*outcomes), room, total) : report(outcomes.error());
  });
}

bw_status bw_outcomes_of(bw_producer* producer, uint64_t first, int64_t timeout_ms,
                         bw_outcome* outcomes, size_t* count) {
  if (outcomes == nullptr || count == nullptr) {
    return report_invalid("no place for the outcomes is given");
  }
  if (*count < 1 || *count > BW_MAX_OUTCOMES) {
    return report({ErrorCode::invalid_argument,
                   fmt::format("count is {}; it is 1 to {}", *count, BW_MAX_OUTCOMES)});
  }
  return alone_with(producer, timeout_ms, [&](Producer& found) {
    return outcomes_of(found, first, ms(timeout_ms), {outcomes, *count}, count);
  });
}

bw_status bw_producer_forget(bw_producer* producer) {
  return alone_with(producer, 0, [](Producer& found) {
    found.forget();
    return BW_OK;
  });
}

bw_status bw_producer_close(bw_producer* producer, int64_t timeout_ms) {
  if (producer == nullptr) return BW_OK;
  if (timeout_ms < 0) return report_invalid("timeout_ms is below 0");
  if (producer->shared->producer->forked()) return forked();
  const std::unique_ptr<bw_producer> gone(producer);
  return at_border([&] {
    Shared& shared = *gone->shared;
    if (!shared.in_use.try_lock()) {
      shared.producer->stop();  // the thread that is in a call ends it
      shared.in_use.lock();
    }
    const MutexLock alone(shared.in_use, std::adopt_lock);
    shared.producer->close(ms(timeout_ms));
    return BW_OK;
  });
}

}  // extern "C"
