#include "daemon/delivery/wire/event_publisher.h"

#include <utility>

namespace batchwright {
namespace {

/// Events that may pile up for one listener.
constexpr int kQueue = 1000;

SocketOptions publisher_options(Router::Settings settings) {
  SocketOptions options;
  options.kind = SocketOptions::Kind::publisher;
  options.remote = settings.remote;
  options.send_queue = kQueue;
  options.curve_secret_key = std::move(settings.curve_secret_key);
  options.ask_gatekeeper = settings.ask_gatekeeper;
  return options;
}

}  // namespace

EventPublisher::EventPublisher(boost::asio::io_context& loop, SocketThreads& threads,
                               Router::Settings settings)
    : socket_(loop, threads, publisher_options(std::move(settings)), {}) {}

void EventPublisher::publish(wire::EventT event) {
  const std::string topic = event.feed;
  const auto message = encode(std::move(event));
  // A loss is harmless by contract, so it is not reported.
  static_cast<void>(
      socket_.send({std::as_bytes(std::span(topic)),
                    {reinterpret_cast<const std::byte*>(message.data()), message.size()}}));
}

}  // namespace batchwright
