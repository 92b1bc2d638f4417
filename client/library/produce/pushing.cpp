// How a producer pushes: sequences are checked, laid out, offered, and waited for.

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "client/library/produce/producer.h"

namespace batchwright {
namespace {

Error in_place(const Error& error, std::size_t place, std::size_t of) {
  if (of == 1) return error;
  return {error.code, fmt::format("sequence {}: {}", place, error.message)};
}

/// A full area is read within this, unless what lies there waits for more.
constexpr std::chrono::milliseconds kAreaPatience{100};

bw_origin default_origin() { return BW_ORIGIN_INIT; }

/// One of several, which are as long as the first says: the program may have another header.
const bw_origin* origin_at(const bw_origin* origins, std::size_t i) {
  if (origins == nullptr) return nullptr;
  const auto* const bytes = reinterpret_cast<const std::byte*>(origins);
  return reinterpret_cast<const bw_origin*>(bytes + i * origins->struct_size);
}

}  // namespace

Result<Producer::Verdict> Producer::push_within(Call& call, const Sequences& what) {
  if (call.bytes.empty()) {
    if (auto sound = check_all(call, what); !sound) return sound.error();
  }
  if (call.bytes.size() != what.sequences.size()) {
    return bad_call("these are not the sequences of the call that returned BW_PENDING");
  }
  while (true) {
    auto taken = await_accepted(call);
    if (!taken || *taken != Verdict::done) return taken;
    if (call.accepted == what.sequences.size()) return Verdict::done;
    auto turn = await_turn(call.deadline);
    if (!turn || *turn != Verdict::done) return turn;
    auto offer = lay_out(call, what);
    if (!offer) return in_place(offer.error(), call.accepted, what.sequences.size());
    if (offer->has_value()) {
      call.patience.reset();
      conversation_.ask_push(std::move(**offer), call.deadline);
      continue;
    }
    auto room = await_room(call);
    if (!room || *room != Verdict::done) return room;
  }
}

/// Waits until this producer may push.
Result<Producer::Verdict> Producer::await_turn(const Deadline& deadline) {
  const auto is_free = [this] { return conversation_.is_producing() && !conversation_.push(); };
  return wait_for(is_free, deadline, "answer to an earlier push");
}

/// To an older daemon a large one would be too large.
bool Producer::may_take_frame(const Call& call) const {
  return call.patience && conversation_.link().has(Ability::push_parts);
}

/// Whether it goes into a frame: where no area can have it, or could for a while. What lies in the
/// area may wait for what is to be pushed, so how much may wait is for the pool to say.
bool Producer::takes_frame(const Call& call, std::uint64_t bytes) const {
  const std::shared_ptr<AreaStore>& store = conversation_.store();
  if (!store || FreeRoom::taken_by(bytes) > store->bytes()) return true;
  return may_take_frame(call) && call.patience->passed(conversation_.link().now());
}

/// Waits until the daemon has read something, is another one, or says that the feed has ended; or
/// until it has been waited for long enough.
Result<Producer::Verdict> Producer::await_room(Call& call) {
  const std::shared_ptr<AreaStore> store = conversation_.store();
  if (!call.patience) call.patience = conversation_.after(kAreaPatience);
  const Time now = conversation_.link().now();
  const bool may_frame =
      may_take_frame(call) && call.patience->remaining(now) < call.deadline.remaining(now);
  const std::uint64_t used = store->used();
  const auto may_have_room = [&] {
    return conversation_.has_ended() || conversation_.store() != store || store->used() < used;
  };
  auto waited = wait_for(may_have_room, may_frame ? *call.patience : call.deadline, "room");
  if (waited && conversation_.has_ended()) return Verdict::ended;
  const bool is_late = !waited && waited.error().code == ErrorCode::timed_out;
  return is_late && may_frame ? Verdict::done : waited;
}

/// Waits for the answer to the push that is under way, if one is.
Result<Producer::Verdict> Producer::await_accepted(Call& call) {
  std::optional<Conversation::Push>& push = conversation_.push();
  if (!push || push->forgotten) return Verdict::done;
  const auto is_answered = [&] { return push->answer.has_value(); };
  auto waited = wait_for_answer(is_answered, call.deadline, "answer to a push");
  if (!waited) give_up_push(call);
  if (!waited || *waited != Verdict::done) return waited;
  const wire::AcceptedT answer = std::move(*push->answer);
  const bool is_whole = answer.next >= push->offer.first() + push->offer.size();
  call.accepted += push->offer.accepted();
  push.reset();
  if (answer.ended) return Verdict::ended;
  if (answer.code == 0 && is_whole) return Verdict::done;
  if (answer.code == 0) {
    return Error{ErrorCode::malformed_message, "an answer to a push that says nothing of a part"};
  }
  const Error error{static_cast<ErrorCode>(answer.code), answer.text};
  return in_place(error, call.accepted, std::max<std::size_t>(call.bytes.size(), 1));
}

/// The call waits for its push no longer. A room that it commits is over once a daemon may have it.
void Producer::give_up_push(const Call& call) {
  const std::optional<Conversation::Push>& push = conversation_.push();
  if (call.room != nullptr) call.room->is_over = push && push->was_sent;
  conversation_.forget_push();
}

Result<void> Producer::check_all(Call& call, const Sequences& what) {
  for (std::size_t i = 0; i < what.sequences.size(); ++i) {
    const auto bytes = check_one(what, i, i);
    if (!bytes) {
      call.bytes.clear();
      return in_place(bytes.error(), i, what.sequences.size());
    }
    call.bytes.push_back(*bytes);
  }
  return {};
}

/// Checks a sequence that `ahead` others come before, reads its values, and returns its bytes.
Result<std::uint64_t> Producer::check_one(const Sequences& what, std::size_t i, std::size_t ahead) {
  const auto sequence = named(what.sequences[i], ahead);
  if (!sequence) return sequence.error();
  const auto origin = origin_of(origin_at(what.origins, i));
  if (!origin) return origin.error();
  return form_->check(*sequence, values_);
}

/// A sequence without a key is named by its producer and the number that it will have.
Result<bw_sequence> Producer::named(const bw_sequence& sequence, std::size_t ahead) {
  if (sequence.values == nullptr && sequence.value_count != 0) {
    return bad_call(fmt::format("{} values, and no place where they are", sequence.value_count));
  }
  if (sequence.key != nullptr) return sequence;
  if (sequence.key_bytes != 0) {
    return bad_call(
        fmt::format("a key of {} bytes, and no place where they are", sequence.key_bytes));
  }
  name_ = fmt::format("{}/{}", conversation_.name(), conversation_.numbers().next + ahead);
  bw_sequence whole = sequence;
  whole.key = name_.data();
  whole.key_bytes = name_.size();
  return whole;
}

Result<bw_origin> Producer::origin_of(const bw_origin* given) const {
  bw_origin defaults = default_origin();
  if (given == nullptr) defaults.version = claimed_.value_or(conversation_.numbers().version);
  auto origin = read_options(given, defaults);
  if (!origin) return origin;
  if (auto sound = SequenceForm::check_origin(*origin); !sound) return sound.error();
  if (auto sound = form_->check_row(origin->of); !sound) return sound.error();
  return origin;
}

/// As many of the sequences as one Push can offer; empty when there is no room for one. The first
/// that has NaN ends it, and is refused when it is its turn.
Result<std::optional<Offer>> Producer::lay_out(const Call& call, const Sequences& what) {
  const std::size_t first = call.accepted;
  const std::shared_ptr<AreaStore>& store = conversation_.store();
  const bool in_area = !takes_frame(call, call.bytes[first]);
  std::size_t end = in_area ? what.sequences.size() : first + 1;
  std::uint64_t frame = FreeRoom::taken_by(call.bytes[first]);
  while (!store && end < what.sequences.size()) {
    const std::uint64_t more = FreeRoom::taken_by(call.bytes[end]);
    if (frame + more > kMostFrameBytes) break;
    frame += more;
    ++end;
  }
  Offer offer = in_area ? Offer(store) : Offer(frame_memory(frame));
  for (std::size_t i = first; i < end; ++i) {
    const auto laid = lay_out_one(offer, what, i, call.bytes[i]);
    if (!laid && offer.size() == 0) return laid.error();
    if (!laid || !*laid) break;
  }
  if (offer.size() == 0) return std::optional<Offer>();
  return std::optional(std::move(offer));
}

/// False when there is no room for it.
Result<bool> Producer::lay_out_one(Offer& offer, const Sequences& what, std::size_t i,
                                   std::uint64_t bytes) {
  const auto found = check_one(what, i, offer.size());  // it may have changed since
  if (!found) return found.error();
  if (*found != bytes) return bad_call("it has changed since the call that returned BW_PENDING");
  const bw_sequence sequence = named(what.sequences[i], offer.size()).value();
  const std::string_view key(sequence.key, sequence.key_bytes);
  const auto origin = origin_of(origin_at(what.origins, i));
  if (!origin) return origin.error();
  if (!offer.has_place(key.size(), form_->fields(), origin->of)) return false;
  const auto place = offer.take_room(bytes);
  if (!place) return false;
  if (auto written = form_->write(key, values_, offer.at(*place, bytes)); !written) {
    offer.give_room_back(*place, bytes);
    return written.error();
  }
  offer.add({*place, bytes, key, values_}, *origin);
  return true;
}

Result<Producer::Verdict> Producer::commit_within(Call& call, WrittenRoom& room,
                                                  const Written& what) {
  while (true) {
    auto taken = await_accepted(call);
    if (!taken || *taken != Verdict::done) return taken;
    if (call.accepted != 0) return Verdict::done;
    auto turn = await_turn(call.deadline);
    if (!turn || *turn != Verdict::done) return turn;
    const auto origin = origin_of(what.origin);
    if (!origin) return origin.error();
    const auto sequence = named({what.key.data(), what.key.size(), nullptr, 0}, 0);
    if (!sequence) return sequence.error();
    const std::string_view key(sequence->key, sequence->key_bytes);
    auto offer = offer_of(room, key, *origin);
    if (!offer) return offer.error();
    conversation_.ask_push(std::move(*offer), call.deadline);
  }
}

/// Where it was written; or a copy, when the daemon that made the area is gone.
Result<Offer> Producer::offer_of(const WrittenRoom& room, std::string_view key,
                                 const bw_origin& origin) {
  if (key.empty() || key.size() > kMaxKeyBytes) {
    return bad_call(fmt::format("a key has 1 to 511 bytes, found {}", key.size()));
  }
  const std::span<const std::byte> memory = room.memory();
  if (auto sound = form_->check_written(key, room.places, memory); !sound) return sound.error();
  for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = {{}, room.lengths[i]};
  const std::shared_ptr<AreaStore>& store = conversation_.store();
  if (!room.store || room.store == store) {
    Offer offer = room.store ? Offer(store, false) : Offer(room.frame);
    offer.add({room.place, room.bytes, key, values_}, origin);
    return offer;
  }
  const auto place = store ? store->take(room.bytes) : std::nullopt;
  Offer copy = place ? Offer(store) : Offer(frame_memory(room.bytes));
  std::copy(memory.begin(), memory.end(), copy.at(place.value_or(0), room.bytes).begin());
  copy.add({place.value_or(0), room.bytes, key, values_}, origin);
  return copy;
}

}  // namespace batchwright
