// The messages of producers, and those of any client to a live feed.

#include <fmt/format.h>

#include <utility>

#include "daemon/delivery/server.h"

namespace batchwright {

/// Null, and why, where there is no live feed with this name.
Feed* Server::live_feed(const Received& received, const flatbuffers::String* name, Error& why) {
  if (!received.session->is_reachable()) {
    why = {ErrorCode::invalid_argument, "connect to the arena socket first"};
    return nullptr;
  }
  Feed* const feed = feeds_.find(name->string_view());
  if (feed != nullptr && feed->is_live()) return feed;
  if (feed != nullptr) {
    why = {ErrorCode::invalid_argument,
           fmt::format("feed {} is not live: it serves a dataset", name->str())};
  } else if (const UnavailableFeed* absent = unavailable_.find(name->string_view())) {
    why = absent->told();
  } else {
    why = {ErrorCode::not_found,
           fmt::format("no feed \"{}\"; this daemon serves: {}", name->str(), feeds_.names())};
  }
  return nullptr;
}

/// Null where the session has no such producer: it is told so.
Feed* Server::feed_of_producer(const Received& received, std::uint32_t producer) {
  for (const auto& feed : feeds()) {
    if (feed->has_producer({received.session->id(), producer})) return feed.get();
  }
  refuse_producer(received, producer,
                  {ErrorCode::not_found, fmt::format("this session has no producer {}", producer)});
  return nullptr;
}

void Server::refuse_producer(const Received& received, std::uint32_t producer, const Error& error) {
  const PeerName peer = received.session->peer;
  refuse(peer, error, {}, producer);
  static_cast<void>(bears_refusal(peer));
}

void Server::on_produce(const Received& received) {
  const auto& request = *received.message.as<wire::Produce>();
  const ClientInfo& client = received.session->client;
  Error why;
  if (!client.produces) {
    why = {ErrorCode::invalid_argument,
           "this session subscribes; its Hello said nothing of producing"};
    return refuse_producer(received, request.producer(), why);
  }
  if (Feed* const feed = live_feed(received, request.feed(), why)) {
    return feed->produce(client, request);
  }
  refuse_producer(received, request.producer(), why);
}

void Server::on_push(const Received& received) {
  const auto& push = *received.message.as<wire::Push>();
  if (Feed* const feed = feed_of_producer(received, push.producer())) {
    feed->push(received.session->client, push, received.incoming.second);
  }
}

template <class Table>
void Server::on_producer(const Received& received) {
  const Table& request = *received.message.as<Table>();
  Feed* const feed = feed_of_producer(received, request.producer());
  if (feed == nullptr) return;
  typename Table::NativeTableType asked;
  request.UnPackTo(&asked);
  feed->ask(received.session->client, std::move(asked));
}

template <class Table>
void Server::on_version(const Received& received) {
  const Table& request = *received.message.as<Table>();
  Error why;
  if (Feed* const feed = live_feed(received, request.feed(), why)) {
    typename Table::NativeTableType asked;
    request.UnPackTo(&asked);
    return feed->ask(received.session->client, std::move(asked));
  }
  wire::VersionT answer;
  answer.question = request.question();
  answer.code = static_cast<std::uint16_t>(why.code);
  answer.text = why.message;
  const PeerName peer = received.session->peer;
  send(peer, encode(std::move(answer)));
  static_cast<void>(bears_refusal(peer));
}

void Server::on_end_feed(const Received& received) {
  const auto& request = *received.message.as<wire::EndFeed>();
  if (request.question() != 0) return on_version<wire::EndFeed>(received);
  Error why;
  if (Feed* const feed = live_feed(received, request.feed(), why)) {
    return feed->ask(received.session->client, wire::EndFeedT{});
  }
  refuse_producer(received, 0, why);
}

/// It has no answer: where the feed is away, its steps are as well.
void Server::on_keep_from(const Received& received) {
  const auto& request = *received.message.as<wire::KeepFrom>();
  Error why;
  Feed* const feed = live_feed(received, request.feed(), why);
  if (feed == nullptr) return;
  wire::KeepFromT mark;
  mark.step = request.step();
  feed->ask(received.session->client, std::move(mark));
}

template void Server::on_producer<wire::Claim>(const Received&);
template void Server::on_producer<wire::Abandon>(const Received&);
template void Server::on_producer<wire::CloseProducer>(const Received&);
template void Server::on_producer<wire::ListOutcomes>(const Received&);
template void Server::on_version<wire::Advance>(const Received&);
template void Server::on_version<wire::AwaitVersion>(const Received&);

}  // namespace batchwright
