#include "client/library/produce/producer.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace batchwright {
Error Producer::bad_call(const std::string& what) { return {ErrorCode::invalid_argument, what}; }

std::span<std::byte> WrittenRoom::memory() const {
  if (store) return store->at(place, bytes);
  // The frame is the program's until it is committed.
  return {const_cast<std::byte*>(frame.bytes.data()), static_cast<std::size_t>(bytes)};
}

Result<std::unique_ptr<Producer>> Producer::open(const std::string& endpoint,
                                                 ConnectSettings settings,
                                                 std::unique_ptr<Transport> transport,
                                                 Settings wanted) {
  std::unique_ptr<Producer> made(
      new Producer(endpoint, std::move(settings), std::move(transport), std::move(wanted)));
  if (auto opened = made->conversation_.open(); !opened) return opened.error();
  if (auto learnt = made->learn_form(); !learnt) return learnt.error();
  return made;
}

Producer::Producer(std::string endpoint, ConnectSettings settings,
                   std::unique_ptr<Transport> transport, Settings wanted)
    : conversation_(std::move(endpoint), std::move(settings), std::move(transport),
                    std::move(wanted.wanted)),
      slice_(wanted.slice) {}

Result<void> Producer::learn_form() {
  const bw_feed* const feed = conversation_.link().feeds().find_live(conversation_.feed());
  if (feed != nullptr) {
    form_.emplace(*feed);
    values_.resize(form_->fields());
    return {};
  }
  return Error{ErrorCode::malformed_message,
               fmt::format("the daemon takes sequences for feed \"{}\", and does not say what they "
                           "are",
                           conversation_.feed())};
}

/// A call that returned Verdict::pending goes on where it was.
template <class Body>
Result<Producer::Verdict> Producer::run(Kind kind, std::chrono::milliseconds limit,
                                        const Body& body) {
  if (call_ && call_->kind != kind) {
    return bad_call("another call returned BW_PENDING: call it again, or bw_producer_forget");
  }
  if (!call_) call_.emplace(Call{kind, conversation_.after(limit)});
  auto verdict = body(*call_);
  if (!verdict || *verdict != Verdict::pending) call_.reset();
  return verdict;
}

Result<Producer::Verdict> Producer::wait_for(const std::function<bool()>& ready,
                                             const Deadline& deadline, const char* what) {
  const Time now = conversation_.link().now();
  const bool is_cut = slice_.count() != 0 && slice_ < deadline.remaining(now);
  conversation_.pump_until(ready, is_cut ? conversation_.after(slice_) : deadline);
  if (ready()) return Verdict::done;
  if (conversation_.failure()) return *conversation_.failure();
  if (is_cut) return Verdict::pending;
  return waited_in_vain(deadline, what);
}

/// The daemon counts the time, too, and its answer has the reason.
Result<Producer::Verdict> Producer::wait_for_answer(const std::function<bool()>& ready,
                                                    const Deadline& deadline, const char* what) {
  auto waited = wait_for(ready, deadline, what);
  const bool is_late = !waited && waited.error().code == ErrorCode::timed_out;
  if (!is_late || !conversation_.is_producing()) return waited;
  return wait_for(ready, deadline.for_answer(), what);
}

Error Producer::waited_in_vain(const Deadline& deadline, const char* what) const {
  const DaemonLink& link = conversation_.link();
  std::string why = fmt::format("the daemon at {} is alive, and does not answer", link.endpoint());
  if (link.is_away()) why = fmt::format("{}, trying again", link.away_text());
  if (const auto& store = conversation_.store(); store && what == std::string_view("room")) {
    why = fmt::format(
        "{} of {} bytes of the producer's area are taken, by {} sequences that the "
        "daemon has not read yet",
        store->used(), store->bytes(), store->offered());
  }
  return {ErrorCode::timed_out, fmt::format("no {} in feed \"{}\" within {} ms: {}", what,
                                            conversation_.feed(), deadline.limit().count(), why)};
}

Result<Producer::Verdict> Producer::claim(std::uint32_t count, std::chrono::milliseconds limit,
                                          std::uint64_t& version) {
  if (count == 0) return bad_call("a claim of 0 sequences");
  return run(Kind::claim, limit, [&](Call& call) { return claim_within(call, count, version); });
}

Result<Producer::Verdict> Producer::claim_within(Call& call, std::uint32_t count,
                                                 std::uint64_t& version) {
  std::optional<Conversation::Claim>& asked = conversation_.claim();
  if (asked && asked->forgotten) {
    auto settled = wait_for([&] { return !asked; }, call.deadline, "answer to an earlier claim");
    if (!settled || *settled != Verdict::done) return settled;
  }
  if (!asked) conversation_.ask_claim(count, call.deadline);
  const auto is_answered = [&] { return asked && asked->answer; };
  auto waited = wait_for_answer(is_answered, call.deadline, "answer to a claim");
  if (!waited) conversation_.forget_claim();
  if (!waited || *waited != Verdict::done) return waited;
  const wire::ClaimedT answer = std::move(*asked->answer);
  asked.reset();
  if (answer.ended) return Verdict::ended;
  const auto code = static_cast<ErrorCode>(answer.code);
  if (code == ErrorCode::timed_out) {
    return Error{
        code, fmt::format("no claim of {} sequences of feed \"{}\" within {} ms: it waits "
                          "for {}",
                          count, conversation_.feed(), call.deadline.limit().count(), answer.text)};
  }
  if (answer.code != 0) return Error{code, answer.text};
  claimed_ = version = answer.version;
  return Verdict::done;
}

Result<Producer::Verdict> Producer::push(const Sequences& what, std::chrono::milliseconds limit,
                                         std::size_t& accepted) {
  return run(Kind::push, limit, [&](Call& call) {
    auto verdict = push_within(call, what);
    accepted = call.accepted;
    return verdict;
  });
}

Result<Producer::Verdict> Producer::reserve(std::span<const std::uint32_t> lengths,
                                            std::chrono::milliseconds limit,
                                            std::unique_ptr<WrittenRoom>& room) {
  auto places = form_->places(lengths);
  if (!places) return places.error();
  auto made = std::make_unique<WrittenRoom>();
  made->bytes = places->back().offset + places->back().bytes;
  made->places = std::move(*places);
  made->lengths.assign(lengths.begin(), lengths.end());
  return run(Kind::reserve, limit, [&](Call& call) -> Result<Verdict> {
    while (true) {
      const auto is_there = [this] { return conversation_.is_producing(); };
      auto there = wait_for(is_there, call.deadline, "room");
      if (!there || *there != Verdict::done) return there;
      const std::shared_ptr<AreaStore>& store = conversation_.store();
      if (takes_frame(call, made->bytes)) {
        made->frame = frame_memory(made->bytes);
      } else if (const auto place = store->take(made->bytes)) {
        made->store = store;
        made->place = *place;
      } else {
        auto waited = await_room(call);
        if (!waited || *waited != Verdict::done) return waited;
        continue;
      }
      room = std::move(made);
      return Verdict::done;
    }
  });
}

Result<Producer::Verdict> Producer::commit(WrittenRoom& room, const Written& what,
                                           std::chrono::milliseconds limit) {
  if (room.is_over) return bad_call("this room was committed, and its push had no answer");
  return run(Kind::commit, limit, [&](Call& call) -> Result<Verdict> {
    if (call.room != nullptr && call.room != &room) {
      return bad_call("this is not the room of the call that returned BW_PENDING");
    }
    call.room = &room;
    return commit_within(call, room, what);
  });
}

void Producer::drop(const WrittenRoom& room) {
  if (call_ && call_->room == &room) forget();
  if (room.store && !room.is_over) room.store->give_back(room.place, room.bytes);
}

Result<void> Producer::abandon(const wire::AbandonT& what) {
  const Deadline deadline = conversation_.after(conversation_.link().settings().limit);
  conversation_.pump_until([this] { return conversation_.is_producing(); }, deadline);
  if (conversation_.is_producing()) conversation_.abandon(what);
  if (conversation_.failure()) return *conversation_.failure();
  if (!conversation_.is_producing()) return waited_in_vain(deadline, "abandoning");
  return {};
}

Result<Producer::Outcomes> Producer::outcomes(std::uint64_t first, std::uint32_t count,
                                              std::chrono::milliseconds limit) {
  const Deadline deadline = conversation_.after(limit);
  std::optional<Conversation::Listing>& listing = conversation_.listing();
  conversation_.ask_outcomes(first, count, deadline);
  const auto is_answered = [&] { return listing->answer.has_value(); };
  conversation_.pump_until(is_answered, deadline);
  const auto asked = std::exchange(listing, std::nullopt);
  if (!asked->answer) {
    if (conversation_.failure()) return *conversation_.failure();
    return waited_in_vain(deadline, "outcomes");
  }
  const wire::OutcomesT& answer = *asked->answer;
  return Outcomes{answer.first, answer.outcomes, answer.totals, answer.refused_full,
                  answer.duplicates};
}

void Producer::forget() {
  if (!call_) return;
  if (call_->kind == Kind::claim) conversation_.forget_claim();
  if (call_->kind == Kind::push || call_->kind == Kind::commit) give_up_push(*call_);
  call_.reset();
}

void Producer::close(std::chrono::milliseconds limit) {
  forget();
  conversation_.pump_until([this] { return !conversation_.push(); }, conversation_.after(limit));
  conversation_.close();
}

}  // namespace batchwright
