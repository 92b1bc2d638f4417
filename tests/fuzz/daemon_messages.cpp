// What a daemon says, as the client library takes it in: a Welcome's feeds, and for one
// subscription whatever follows, in any order. The input is a list of messages,
// each behind its size in two bytes;
// where bytes are no message the connection is lost and made anew.

#include <optional>

#include "client/library/session/feeds.h"
#include "client/library/session/lane.h"
#include "formats/formats.h"
#include "tests/fuzz/fuzz.h"

using namespace batchwright;
using namespace batchwright::fuzz;

namespace {

void read_feeds(const wire::Welcome& welcome) {
  const auto feeds = Feeds::from(welcome);
  if (!feeds) return;
  for (std::size_t i = 0; i < (*feeds)->size(); ++i) {
    const bw_feed& feed = (*feeds)->at(i);
    touch(std::string_view(feed.name));
    for (const bw_field* field : std::span(feed.fields, feed.field_count)) {
      touch(std::string_view(field->name));
      require(field->ndim <= BW_MAX_DIMENSIONS, "a field's shape has room");
      for (std::uint32_t c = 0; c < field->category_count; ++c) {
        touch(std::string_view(field->categories[c]));
      }
    }
  }
}

/// Takes what is at hand as Session::next() does, until something is not due.
void take_all(Lane& lane) {
  // A queue's epochs may be told to be over up to the last number there is.
  for (int taken = 0; taken < 100 && lane.is_served() && lane.has_news(); ++taken) {
    auto next = lane.look();
    if (!next) return lane.fail(next.error());
    Lane::Next& event = *next;
    if (std::holds_alternative<NothingFollows>(event)) return;
    if (auto* batch = std::get_if<NextBatch>(&event)) {
      static_cast<void>(std::move(*batch).take());
      require(lane.releases_may_wait({}) <= lane.window() / 2,
              "half of a window is kept for credit");
    }
    if (auto* end = std::get_if<NextEnd>(&event)) static_cast<void>(std::move(*end).take());
    static_cast<void>(lane.progress().position());
    static_cast<void>(lane.progress().steps());
  }
}

std::optional<Lane::Event> event_of(const ControlMessage& message) {
  if (const auto* delivery = message.as<wire::Delivery>()) {
    return Ticket{LeaseNumber{delivery->lease()},
                  ArenaNumber{delivery->arena()},
                  delivery->offset(),
                  delivery->size(),
                  delivery->epoch(),
                  delivery->step(),
                  delivery->index(),
                  delivery->rehearsal(),
                  delivery->may_join()};
  }
  if (const auto* ended = message.as<wire::EpochEnd>()) {
    return EpochEnded{ended->epoch(), ended->steps(), ended->last()};
  }
  const auto* began = message.as<wire::EpochBegin>();
  if (began == nullptr || began->fingerprint() == nullptr) return std::nullopt;
  return EpochBegan{began->epoch(), began->steps(), from_wire(*began->fingerprint())};
}

void take_in(Lane& lane, const ControlMessage& message) {
  if (const auto* welcome = message.as<wire::Welcome>()) read_feeds(*welcome);
  if (const auto* subscribed = message.as<wire::Subscribed>()) {
    if (auto granted = lane.granted(*subscribed); !granted) lane.fail(granted.error());
  }
  if (auto event = event_of(message); event && lane.is_served()) lane.push(std::move(*event));
  if (const auto* refused = message.as<wire::Refused>()) {
    lane.refuse({static_cast<ErrorCode>(refused->code()), refused->message()->str()});
  }
  if (const auto* waiting = message.as<wire::Waiting>()) lane.set_reason(waiting->reason()->str());
}

/// The daemon is gone, and the next one is asked.
void reconnect(Lane& lane) {
  lane.lost();
  if (lane.wants_more()) static_cast<void>(encode(lane.resume()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices input(data, size);
  wire::SubscribeT request;
  const std::uint8_t choice = input.byte();
  request.subscription = 1;
  request.feed = "train";
  request.mode = static_cast<wire::Mode>(choice % 3);
  request.ranks = 1 + choice / 3 % 4;
  request.rank = choice / 12 % request.ranks;
  request.epochs = input.byte() % 4;
  request.worst_first = input.byte() % 4;
  Lane lane(request);
  while (!input.empty()) {
    const auto message = ControlMessage::decode(input.take(input.number<std::uint16_t>()));
    if (message) {
      take_in(lane, *message);
      take_all(lane);
    } else {
      reconnect(lane);
    }
  }
  return 0;
}
