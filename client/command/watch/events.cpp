#include <fmt/core.h>

#include <boost/json/object.hpp>

#include "client/command/commands.h"
#include "client/command/exit_code.h"
#include "client/command/interrupt.h"
#include "client/command/keys.h"
#include "client/command/output.h"
#include "client/command/watch/event_stream.h"

namespace batchwright {
namespace {

namespace json = boost::json;

void print_json(const wire::EventT& event) {
  json::object line;
  line["event"] = wire::EnumNameEventKind(event.kind);
  // No default: a kind that is added to the protocol does not compile until it is shown.
  switch (event.kind) {
    case wire::EventKind::epoch_began:
    case wire::EventKind::epoch_ended: line["epoch"] = event.epoch; break;
    case wire::EventKind::dataset_changed: line["sequences"] = event.sequences; break;
    case wire::EventKind::client_joined:
    case wire::EventKind::client_left: line["session"] = fmt::format("{:x}", event.session); break;
    case wire::EventKind::feed_failed: break;
  }
  if (!event.feed.empty()) line["feed"] = event.feed;
  if (!event.text.empty()) line["text"] = event.text;
  print_json_line(line);
}

void print_line(const wire::EventT& event) {
  switch (event.kind) {
    case wire::EventKind::epoch_began:
      fmt::print("{}: epoch {} begins", event.feed, event.epoch);
      break;
    case wire::EventKind::epoch_ended:
      fmt::print("{}: epoch {} ends", event.feed, event.epoch);
      break;
    case wire::EventKind::dataset_changed:
      fmt::print("{}: the dataset has {} sequences", event.feed, event.sequences);
      break;
    case wire::EventKind::feed_failed: fmt::print("{}: failed", event.feed); break;
    case wire::EventKind::client_joined: fmt::print("session {:x} joins", event.session); break;
    case wire::EventKind::client_left: fmt::print("session {:x} leaves", event.session); break;
  }
  fmt::print("{}{}\n", event.text.empty() ? "" : ": ", event.text);
}

Result<EventSource> find_source(const EventsOptions& options) {
  auto own = own_keys(options.keys);
  if (!own) return own.error();
  EventSource source{options.endpoint, options.feed, options.keys.server_key, std::move(*own)};
  // Asked for by itself: then no daemon has to be reached for it, and no session is taken.
  if (!options.events.empty()) {
    source.endpoint = options.events;
    return source;
  }
  if (options.endpoint.find(',') != options.endpoint.npos) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("found the endpoints {}; allowed: one, by --endpoint", options.endpoint)};
  }
  auto events = find_events(source);
  if (!events) return events.error();
  source.endpoint = std::move(*events);
  return source;
}

}  // namespace

int run_events(const EventsOptions& options) {
  auto source = find_source(options);
  if (!source) return fail(source.error());
  // A Unix socket has no encryption, whatever was needed to ask for it.
  if (source->endpoint.starts_with("ipc://")) source->server_key.clear();
  auto stream = EventStream::open(*source);
  if (!stream) return fail(stream.error());
  // Ctrl-C is its usual end, and so ends it with 0.
  const Interrupt interrupt;
  std::uint64_t shown = 0;
  while (!interrupt.came() && (options.count == 0 || shown < options.count)) {
    auto event = (*stream)->next();
    if (!event) return fail(event.error());
    // A topic matches by its beginning, so that of another feed may come along.
    if (!*event || (!options.feed.empty() && (*event)->feed != options.feed)) continue;
    options.json ? print_json(**event) : print_line(**event);
    flush_output();  // a program that reads along waits for this line
    ++shown;
  }
  return kDone;
}

}  // namespace batchwright
