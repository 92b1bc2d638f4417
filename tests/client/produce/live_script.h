#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/library/produce/producer.h"
#include "tests/client/link/scripted_transport.h"

namespace batchwright::test {

using namespace std::chrono_literals;

/// A sequence that the daemon was offered, with its bytes as they lay there.
struct OfferedBytes {
  std::uint64_t number = 0;
  wire::OfferedSequence offered;
  std::string key;
  std::vector<std::uint32_t> lengths;
  std::vector<std::byte> bytes;  ///< 64 of them, from its place on.
};

/// How a script's daemon is, and its producer.
struct LiveSettings {
  std::uint64_t area_bytes = 4096;  ///< That the daemon grants; 0: no area.
  std::chrono::milliseconds reconnect = 60s;
  std::chrono::milliseconds slice{0};
  bool allow_nan = false;
  bool knows_live = true;
  bool knows_parts = true;
  std::size_t opening = 0;  ///< So many Welcomes do not name the feed yet.
  std::uint32_t max_length = 1000;
};

/// A producer, and a daemon under a script that answers what it is asked, 1 ms later each time. Its
/// feed takes "frames" [T, 2] of float32, "labels" [T] of uint8, "text" [U] of uint8 and "reward",
/// a float32.
struct LiveScript {
  explicit LiveScript(LiveSettings given = {}) : settings(given) {
    auto transport = std::make_unique<ScriptedTransport>();
    world = transport.get();
    world->hear = [this](const ControlMessage& message) { answer(message); };
    world->area = [this](ArenaNumber) { return map_area(); };
    ConnectSettings connect;
    connect.limit = 10s;
    connect.reconnect = settings.reconnect;
    Producer::Settings wanted;
    wanted.wanted = {"rollouts", "actor", 1U << 16};
    wanted.slice = settings.slice;
    made = Producer::open("ipc:///simulated/batchwright.sock", connect, std::move(transport),
                          std::move(wanted));
  }
  ~LiveScript() {
    if (daemons != nullptr) ::munmap(daemons, settings.area_bytes);
  }
  LiveScript(const LiveScript&) = delete;
  LiveScript& operator=(const LiveScript&) = delete;

  Producer& producer() {
    REQUIRE_MESSAGE(made->has_value(), (*made ? "" : made->error().message));
    return *made->value();
  }

  Result<std::shared_ptr<const Area>> map_area() {
    Descriptor file(::memfd_create("area", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    REQUIRE(::ftruncate(file.get(), static_cast<off_t>(settings.area_bytes)) == 0);
    REQUIRE(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
    if (daemons != nullptr) ::munmap(daemons, settings.area_bytes);
    void* start = ::mmap(nullptr, settings.area_bytes, PROT_READ, MAP_SHARED, file.get(), 0);
    REQUIRE(start != MAP_FAILED);
    daemons = static_cast<std::byte*>(start);
    return Area::map(file, settings.area_bytes);
  }

  void answer(const ControlMessage& message) {
    if (const auto* hello = message.as<wire::Hello>()) {
      CHECK(hello->produces());
      world->after(1ms, [this] { welcome(); });
    }
    if (const auto* wanted = message.as<wire::Produce>()) {
      names.push_back(wanted->name()->str());
      number = wanted->producer();
      if (refuses_to_produce) return refuse(*refuses_to_produce, wanted->producer());
      wire::ProducedT produced;
      produced.producer = wanted->producer();
      produced.incarnation = incarnation;
      produced.next = next;
      produced.version = 5;
      produced.area = settings.area_bytes != 0 ? 70'000 : 0;
      produced.area_bytes = settings.area_bytes;
      world->after(1ms, [this, produced] { world->say(wire::ProducedT(produced)); });
    }
    if (const auto* claim = message.as<wire::Claim>()) {
      claims.emplace_back();
      claim->UnPackTo(&claims.back());
      if (!holds_claims) world->after(1ms, [this] { grant(claims.back()); });
    }
    if (const auto* push = message.as<wire::Push>()) {
      pushes.emplace_back();
      push->UnPackTo(&pushes.back());
      if (push->part_at() == 0 && refuses_push) refusals = {*refuses_push};
      if (!refusals.empty()) return refuse_part(pushes.back());
      if (push->total_bytes() != 0 && !is_whole(pushes.back())) return;
      take_in(pushes.back());
      if (!holds_pushes) world->after(1ms, [this] { accept(pushes.back()); });
    }
    if (const auto* what = message.as<wire::Abandon>()) {
      abandoned.emplace_back();
      what->UnPackTo(&abandoned.back());
    }
    if (const auto* question = message.as<wire::ListOutcomes>()) {
      wire::OutcomesT outcomes;
      outcomes.producer = question->producer();
      outcomes.question = question->question();
      outcomes.first = std::max<std::uint64_t>(question->first(), 1);  // it forgot number 0
      outcomes.totals.assign(kOutcomes, 0);
      outcomes.totals[3] = next;
      outcomes.duplicates = 2;
      for (std::uint64_t i = outcomes.first; i < next && i < question->first() + question->count();
           ++i) {
        outcomes.outcomes.push_back(wire::Outcome::done);
      }
      world->after(1ms, [this, outcomes] { world->say(wire::OutcomesT(outcomes)); });
    }
    if (message.as<wire::CloseProducer>() != nullptr) ++closes;
    if (message.as<wire::Bye>() != nullptr) ++byes;
  }

  void welcome() {
    wire::WelcomeT welcome;
    welcome.protocol = kProtocolVersion;
    welcome.arena_socket = "/simulated/batchwright.sock.arena";
    welcome.abilities = settings.knows_live ? kAbilities.bits() : 0;
    if (!settings.knows_parts) {
      welcome.abilities &= ~static_cast<std::uint64_t>(Ability::push_parts);
    }
    auto feed = std::make_unique<wire::FeedInfoT>();
    feed->name = "rollouts";
    feed->world = 1;
    const auto add = [&](const char* name, FieldKind kind, DType dtype,
                         std::vector<std::uint32_t> shape) {
      auto field = std::make_unique<wire::FieldInfoT>();
      field->name = name;
      field->kind = kind;
      field->dtype = dtype;
      field->shape = std::move(shape);
      feed->fields.push_back(std::move(field));
    };
    add("frames", FieldKind::primary, DType::float32, {2});
    add("labels", FieldKind::aligned, DType::uint8, {});
    add("text", FieldKind::independent, DType::uint8, {});
    add("reward", FieldKind::scalar, DType::float32, {});
    feed->live = std::make_unique<wire::LiveInfoT>();
    feed->live->max_length = settings.max_length;
    feed->live->max_bytes = 9 * std::uint64_t{settings.max_length};
    feed->live->allow_nan = settings.allow_nan;
    if (++welcomes > settings.opening) welcome.feeds.push_back(std::move(feed));
    world->say(std::move(welcome));
  }

  void refuse(const Error& error, std::uint32_t producer) {
    wire::RefusedT refusal;
    refusal.code = static_cast<std::uint16_t>(error.code);
    refusal.message = error.message;
    refusal.producer = producer;
    world->after(1ms, [this, refusal] { world->say(wire::RefusedT(refusal)); });
  }

  void grant(const wire::ClaimT& claim) {
    wire::ClaimedT claimed;
    claimed.producer = claim.producer;
    claimed.question = claim.question;
    claimed.version = 7;
    world->say(std::move(claimed));
  }

  /// Accepts what the last push offers, or so many of it.
  void accept(const wire::PushT& push, std::size_t count = SIZE_MAX, const Error& why = {},
              bool ended = false) {
    const std::size_t taken = std::min(count, push.sequences.size());
    next = std::max(next, push.first + taken);
    wire::AcceptedT accepted;
    accepted.producer = push.producer;
    accepted.question = push.question;
    accepted.next = push.first + taken;
    accepted.ended = ended;
    if (taken < push.sequences.size() && !ended) {
      accepted.code = static_cast<std::uint16_t>(why.code);
      accepted.text = why.message;
    }
    world->say(std::move(accepted));
  }

  /// As the daemon does: of what comes after a refused part it knows nothing.
  void refuse_part(const wire::PushT& part) {
    wire::AcceptedT told;
    told.producer = part.producer;
    told.question = part.question;
    told.next = next;
    told.code = static_cast<std::uint16_t>(refusals.back().code);
    told.text = refusals.back().message;
    refusals.push_back({ErrorCode::malformed_message, "a part without the first one"});
    world->after(1ms, [this, told] { world->say(wire::AcceptedT(told)); });
    if (part.part_at + world->frame.size() >= part.total_bytes) refusals.clear();
  }

  /// Takes a part of a frame, and says so. Whether that is the last: then the frame is whole.
  bool is_whole(const wire::PushT& part) {
    if (part.part_at == 0) parts.clear();
    CHECK(part.part_at == parts.size());
    parts.insert(parts.end(), world->frame.begin(), world->frame.end());
    ahead = std::max(ahead, ++parts_untold);
    if (parts.size() == part.total_bytes) {
      parts_untold = 0;
      world->frame = parts;
      return true;
    }
    wire::AcceptedT told;
    told.producer = part.producer;
    told.question = part.question;
    told.next = next;
    told.taken = parts.size();
    world->after(1ms, [this, told] {
      if (parts_untold != 0) --parts_untold;
      world->say(wire::AcceptedT(told));
    });
    return false;
  }

  void take_in(const wire::PushT& push) {
    std::size_t key = 0;
    const std::size_t fields = push.lengths.size() / push.sequences.size();
    for (std::size_t i = 0; i < push.sequences.size(); ++i) {
      const wire::OfferedSequence& each = push.sequences[i];
      OfferedBytes one;
      one.number = push.first + i;
      one.offered = each;
      const auto* keys = reinterpret_cast<const char*>(push.keys.data());
      one.key.assign(keys + key, each.key_bytes());
      key += each.key_bytes();
      one.lengths.assign(push.lengths.begin() + static_cast<std::ptrdiff_t>(i * fields),
                         push.lengths.begin() + static_cast<std::ptrdiff_t>((i + 1) * fields));
      CHECK(each.offset() % 64 == 0);
      const std::byte* from = push.framed ? world->frame.data() : daemons;
      one.bytes.assign(from + each.offset(), from + each.offset() + 64);
      offered.push_back(std::move(one));
    }
  }

  void free(std::vector<std::uint64_t> numbers) {
    wire::FreedT freed;
    freed.producer = number;
    freed.numbers = std::move(numbers);
    world->say(std::move(freed));
  }

  /// Another daemon, or the same, listens from now on, and has so many sequences.
  void come_back(std::uint64_t its_incarnation, std::uint64_t its_next) {
    world->after(100ms, [this, its_incarnation, its_next] {
      incarnation = its_incarnation;
      next = its_next;
      world->rise();
    });
  }

  /// Pushes `count` sequences of `length` frames, whose first number is that of the sequence.
  Result<Producer::Verdict> push(std::size_t count, std::size_t& accepted,
                                 std::chrono::milliseconds limit = 5s, std::uint64_t length = 2) {
    sequences.assign(count, {});
    std::vector<bw_sequence> list;
    for (std::size_t i = 0; i < count; ++i) {
      Values& one = sequences[i];
      one.frames.assign(length * 2, static_cast<float>(pushed + i));
      one.labels.assign(length, 9);
      one.values = {bw_value{one.frames.data(), length * 8, length},
                    bw_value{one.labels.data(), length, length}, bw_value{"hello", 5, 5},
                    bw_value{&one.reward, 4, 1}};
      list.push_back({nullptr, 0, one.values.data(), one.values.size()});
    }
    auto verdict = producer().push({list, nullptr}, limit, accepted);
    if (!verdict || *verdict != Producer::Verdict::pending) pushed += accepted;
    return verdict;
  }

  struct Values {
    std::vector<float> frames;
    std::vector<std::uint8_t> labels;
    float reward = 0.5F;
    std::vector<bw_value> values;
  };

  const LiveSettings settings;
  ScriptedTransport* world = nullptr;
  std::byte* daemons = nullptr;  ///< The area, as the daemon maps it.
  std::uint64_t incarnation = 11;
  std::uint64_t next = 0;
  std::vector<std::byte> parts;  ///< Of the frame that comes.
  int parts_untold = 0;
  int ahead = 0;  ///< Most of them that came before an answer.
  bool holds_claims = false;
  bool holds_pushes = false;
  std::optional<Error> refuses_push;  ///< Each push, or its first part, with this.
  std::vector<Error> refusals;        ///< Of the parts of one.
  std::optional<Error> refuses_to_produce;
  std::vector<std::string> names;
  std::uint32_t number = 0;  ///< Of the producer, as it asked last.
  std::vector<wire::ClaimT> claims;
  std::vector<wire::PushT> pushes;
  std::vector<wire::AbandonT> abandoned;
  std::vector<OfferedBytes> offered;
  std::size_t closes = 0;
  std::size_t byes = 0;
  std::size_t welcomes = 0;
  std::vector<Values> sequences;
  std::size_t pushed = 0;
  std::optional<Result<std::unique_ptr<Producer>>> made;
};

inline constexpr auto kSettled = Producer::Verdict::done;
inline constexpr auto kPending = Producer::Verdict::pending;
inline constexpr auto kEnded = Producer::Verdict::ended;

inline bool is(const Result<Producer::Verdict>& verdict, Producer::Verdict wanted) {
  return verdict.has_value() && *verdict == wanted;
}

inline bool is(const Result<Producer::Verdict>& verdict, ErrorCode code) {
  return !verdict.has_value() && verdict.error().code == code;
}

/// Whether an error has these words.
inline bool says(const Result<Producer::Verdict>& verdict, std::string_view words) {
  if (verdict.has_value()) return false;
  if (verdict.error().message.find(words) != std::string::npos) return true;
  MESSAGE(verdict.error().message);
  return false;
}

/// The first number of what was offered.
inline float first_of(const OfferedBytes& offered) {
  float value = 0;
  std::memcpy(&value, offered.bytes.data(), sizeof value);
  return value;
}

}  // namespace batchwright::test
