// The messages of a live feed's clients: what each does is in daemon/delivery/server_live.cpp.

#include <fmt/format.h>

#include <utility>

#include "tests/simulation/daemon/daemon.h"

namespace batchwright::simulation {

/// Null, and why, where there is none.
FeedHost* Daemon::live_feed(const Peer& peer, Error& why) const {
  if (!peer.session.is_reachable()) {
    why = {ErrorCode::invalid_argument, "connect to the arena socket first"};
  } else if (!feed_ || feed_->core().parts().life.why()) {
    why = being_opened(machine_.settings.name, {}).told();
  } else {
    return feed_.get();
  }
  return nullptr;
}

void Daemon::refuse_producer(const Peer& peer, std::uint32_t producer, const Error& error) {
  wire::RefusedT refused;
  refused.code = static_cast<std::uint16_t>(error.code);
  refused.message = error.message;
  refused.producer = producer;
  send_to_session(peer.session.id(), encode(std::move(refused)));
}

/// Also one that is retired knows its producers.
FeedHost* Daemon::feed_of_producer(const Peer& peer, std::uint32_t producer) {
  if (feed_ && feed_->has_producer({peer.session.id(), producer})) return feed_.get();
  refuse_producer(peer, producer,
                  {ErrorCode::not_found, "this session has no producer of this number"});
  return nullptr;
}

template <class Table>
bool Daemon::pass_on(const Peer& peer, const ControlMessage& message) {
  const auto* request = message.as<Table>();
  if (request == nullptr) return false;
  if (FeedHost* const feed = feed_of_producer(peer, request->producer())) {
    typename Table::NativeTableType asked;
    request->UnPackTo(&asked);
    feed->tell(LiveAsked{peer.session.client, std::move(asked)});
  }
  return true;
}

template <class Table>
bool Daemon::ask_version(const Peer& peer, const ControlMessage& message) {
  const auto* request = message.as<Table>();
  if (request == nullptr) return false;
  Error why;
  if (FeedHost* const feed = live_feed(peer, why)) {
    typename Table::NativeTableType asked;
    request->UnPackTo(&asked);
    feed->tell(LiveAsked{peer.session.client, std::move(asked)});
    return true;
  }
  wire::VersionT answer;
  answer.question = request->question();
  answer.code = static_cast<std::uint16_t>(why.code);
  answer.text = why.message;
  send_to_session(peer.session.id(), encode(std::move(answer)));
  return true;
}

bool Daemon::on_live_message(const Peer& peer, const ControlMessage& message,
                             const std::vector<std::byte>& frame) {
  const ClientInfo client = peer.session.client;
  Error why;
  if (const auto* request = message.as<wire::Produce>()) {
    if (!client.produces) world_.fail("a session that produces did not say so");
    FeedHost* const feed = live_feed(peer, why);
    feed != nullptr ? feed->produce(client, *request)
                    : refuse_producer(peer, request->producer(), why);
    return true;
  }
  if (const auto* push = message.as<wire::Push>()) {
    if (FeedHost* const feed = feed_of_producer(peer, push->producer())) {
      feed->push(client, *push, frame);
    }
    return true;
  }
  return pass_on<wire::Claim>(peer, message) || pass_on<wire::Abandon>(peer, message) ||
         pass_on<wire::CloseProducer>(peer, message) ||
         pass_on<wire::ListOutcomes>(peer, message) || ask_version<wire::Advance>(peer, message) ||
         ask_version<wire::AwaitVersion>(peer, message) ||
         ask_version<wire::EndFeed>(peer, message);
}

std::optional<ArenaFile> Daemon::find_area(SessionId session, ArenaNumber number) const {
  const ProducerArea* const area = feed_ ? feed_->find_area(session, number) : nullptr;
  if (area == nullptr) return {};
  return ArenaFile{area->descriptor(), area->bytes().size()};
}

void Daemon::check_all_done() const { machine_.live->check_all_done(*feed_->core().parts().live); }

std::string Daemon::describe_live() const {
  const LiveService& desk = *feed_->core().parts().live;
  std::string text = "trainers wait for " + desk.reason_to_wait(world_.now()) + "\n";
  for (ProducerId id = 0; id < desk.producers().size(); ++id) {
    const LiveProducer& one = desk.producers().at(id);
    text += fmt::format("  {}: {} accepted, {} wait{}{}{}\n", *one.name, one.next,
                        one.outcomes.totals()[static_cast<std::size_t>(wire::Outcome::waiting)],
                        one.push ? ", a push" : "", one.claim ? ", a claim" : "",
                        one.key ? "" : ", gone");
  }
  return text;
}

}  // namespace batchwright::simulation
