// What a daemon says, as the client library takes it in: a Welcome's feeds, and for one
// subscription whatever follows, in any order. The input is a list of messages,
// each after its size in two bytes;
// where bytes are no message the connection is lost and made again.

#include "client/library/feeds.h"
#include "client/library/session/client_subscription.h"
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
void take_all(ClientSubscription& subscription) {
  using Coming = ClientSubscription::Coming;
  // A queue's epochs may be told to be over up to the last number there is.
  for (int taken = 0; taken < 100 && subscription.is_served() && subscription.has_news(); ++taken) {
    const auto coming = subscription.look();
    if (!coming || *coming == Coming::nothing) return;
    if (*coming == Coming::epoch_end) {
      static_cast<void>(subscription.take_end());
    } else if (coming->has_value()) {
      static_cast<void>(subscription.take_batch());
      require(subscription.releases_may_wait({}) <= subscription.window() / 2,
              "half of a window is kept for credit");
    }
    static_cast<void>(subscription.expected().position());
    static_cast<void>(subscription.expected().steps());
  }
}

template <class Table>
void take_in(ClientSubscription& subscription, const ControlMessage& message) {
  const auto* news = message.as<Table>();
  if (news == nullptr) return;
  if (auto taken = subscription.on(*news, {}); !taken) subscription.fail(taken.error());
}

void take_in_any(ClientSubscription& subscription, const ControlMessage& message) {
  if (const auto* welcome = message.as<wire::Welcome>()) read_feeds(*welcome);
  take_in<wire::Subscribed>(subscription, message);
  if (subscription.is_served()) {
    take_in<wire::EpochEnd>(subscription, message);
    take_in<wire::EpochBegin>(subscription, message);
  }
  take_in<wire::Waiting>(subscription, message);
  take_in<wire::Upcoming>(subscription, message);
  if (const auto* delivery = message.as<wire::Delivery>()) {
    static_cast<void>(subscription.on(*delivery, {}, false, {}));
  }
  if (const auto* refused = message.as<wire::Refused>()) {
    subscription.refuse({static_cast<ErrorCode>(refused->code()), refused->message()->str()});
  }
}

/// The daemon is gone, and the next one is asked.
void reconnect(ClientSubscription& subscription) {
  subscription.leases().end_session();
  subscription.lost();
  if (subscription.wants_more()) static_cast<void>(encode(subscription.request()));
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
  ClientSubscription subscription(request, false);
  while (!input.empty()) {
    const auto message = ControlMessage::decode(input.take(input.number<std::uint16_t>()));
    if (message) {
      take_in_any(subscription, *message);
      take_all(subscription);
    } else {
      reconnect(subscription);
    }
  }
  return 0;
}
