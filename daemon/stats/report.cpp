#include "daemon/stats/report.h"

#include <boost/json.hpp>
#include <cmath>

namespace batchwright {

namespace {

namespace json = boost::json;

/// Bytes of the UTF-8 character at `text[at]`; 0 when what stands there is none. Overlong forms,
/// surrogates and what lies behind U+10FFFF are none (RFC 3629).
std::size_t character_bytes(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
  };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned a = byte(0), b = byte(1);
  if (a < 0x80) return 1;
  if (a >= 0xC2 && a <= 0xDF) return follows(1) ? 2 : 0;
  if (a >= 0xE0 && a <= 0xEF) {
    const bool wrong = (a == 0xE0 && b < 0xA0) || (a == 0xED && b > 0x9F);
    return !wrong && follows(1) && follows(2) ? 3 : 0;
  }
  if (a >= 0xF0 && a <= 0xF4) {
    const bool wrong = (a == 0xF0 && b < 0x90) || (a == 0xF4 && b > 0x8F);
    return !wrong && follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

/// `text` with U+FFFD for each byte that is no UTF-8: names come from clients and file systems.
json::string utf8(std::string_view text) {
  json::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = character_bytes(text, at);
    if (bytes == 0) {
      out += "\xEF\xBF\xBD";
      ++at;
    } else {
      out += text.substr(at, bytes);
      at += bytes;
    }
  }
  return out;
}

/// JSON has no infinity and no NaN.
json::value finite(double value) { return std::isfinite(value) ? json::value(value) : nullptr; }

/// What of `padded` frames is padding, a fraction of one.
double padding_share(std::uint64_t frames, std::uint64_t padded) {
  return padded == 0 ? 0.0 : 1.0 - static_cast<double>(frames) / static_cast<double>(padded);
}

const char* name_of(wire::Mode mode) {
  switch (mode) {
    case wire::Mode::replica: return "replica";
    case wire::Mode::sharded: return "sharded";
    case wire::Mode::queue: return "queue";
  }
  return "unknown";
}

const char* name_of(FeedState state) {
  switch (state) {
    case FeedState::starting: return "starting";
    case FeedState::serving: return "serving";
    case FeedState::failed: return "failed";
  }
  return "unknown";
}

json::object render(const SubscriberStats& subscriber) {
  // As text: 64 bits do not survive a reader that keeps numbers as doubles.
  return {{"session", std::to_string(subscriber.session.value)},
          {"subscription", subscriber.subscription},
          {"client", utf8(subscriber.client)},
          {"pid", subscriber.pid},
          {"mode", name_of(subscriber.mode)},
          {"rank", subscriber.rank},
          {"ranks", subscriber.ranks},
          {"epoch", subscriber.epoch.value},
          {"step", subscriber.step.value},
          {"window_batches", subscriber.window},
          {"held_batches", subscriber.held}};
}

json::object render(const PlanStats& plan) {
  return {{"epoch", plan.epoch.value},
          {"steps", plan.steps},
          {"batches", plan.batches},
          {"sequences", plan.sequences},
          {"frames", plan.frames},
          {"padded_frames", plan.padded_frames},
          {"padded_share", padding_share(plan.frames, plan.padded_frames)},
          {"zero_padding_rate", finite(plan.zero_padding_rate)}};
}

json::object render(const SlotStats& slots) {
  return {{"free", slots.free},
          {"filling", slots.filling},
          {"ready", slots.ready},
          {"held", slots.held}};
}

json::object render(const FeedCounters* counters) {
  json::object out;
  for (std::size_t i = 0; i < static_cast<std::size_t>(FeedCounter::count); ++i) {
    const auto counter = static_cast<FeedCounter>(i);
    out[describe(counter).name] = counters == nullptr ? 0 : counters->get(counter);
  }
  return out;
}

json::object render(const FeedStats& feed);

template <class Item>
json::array render_all(const std::vector<Item>& items) {
  json::array out;
  for (const Item& item : items) out.push_back(render(item));
  return out;
}

json::array render_all(const std::vector<std::string>& texts) {
  json::array out;
  for (const std::string& text : texts) out.push_back(utf8(text));
  return out;
}

json::object render(const FeedStats& feed) {
  return {{"name", utf8(feed.name)},
          {"dataset", render_all(feed.dataset)},
          {"state", name_of(feed.state)},
          {"reason", utf8(feed.reason)},
          {"sequences", feed.sequences},
          {"fingerprint", utf8(feed.fingerprint)},
          {"world", feed.world},
          {"counters", render(feed.counters)},
          {"slots", render(feed.slots)},
          {"slot_bytes", feed.slot_bytes},
          {"arena_bytes", feed.arena_bytes},
          {"pinned", utf8(feed.pinned)},
          {"plans", render_all(feed.plans)},
          {"subscribers", render_all(feed.subscribers)}};
}

}  // namespace

std::string render_stats(const StatsSource& source) {
  const ProcessStats& process = source.process;
  return json::serialize(json::object{
      {"version", utf8(source.version)},
      {"uptime_seconds", finite(source.uptime.count())},
      {"pid", process.pid},
      {"cpu_seconds", finite(process.cpu_seconds)},
      {"resident_bytes", process.resident_bytes},
      {"anonymous_bytes", process.anonymous_bytes},
      {"mapped_file_bytes", process.mapped_file_bytes},
      {"shared_memory_bytes", process.shared_memory_bytes},
      {"memory_ceiling_bytes", source.memory_ceiling_bytes},
      {"arena_bytes", source.arena_bytes},
      {"sessions", source.sessions},
      {"feeds", render_all(source.feeds)},
  });
}

}  // namespace batchwright
