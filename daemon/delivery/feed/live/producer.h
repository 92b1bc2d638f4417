#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/delivery/feed/ids.h"
#include "daemon/delivery/feed/live/frame_parts.h"
#include "daemon/delivery/feed/live/live_requests.h"
#include "daemon/delivery/feed/live/live_source.h"
#include "daemon/live/live.h"
#include "formats/formats.h"

namespace batchwright {

struct SpooledProducer;

/// A producer of a session.
struct ProducerKey {
  SessionId session;
  std::uint32_t number = 0;
  friend constexpr auto operator<=>(const ProducerKey&, const ProducerKey&) = default;
};

/// What became of a producer's sequences. Threads: one at a time.
class Outcomes {
 public:
  /// So many of the latest are remembered one by one.
  static constexpr std::size_t kMost = kMostOutcomes;

  void set(std::uint64_t number, wire::Outcome outcome);
  /// Those of `count` numbers from `first` on, as far as they are remembered; `first` becomes the
  /// first that is.
  std::vector<wire::Outcome> list(std::uint64_t& first, std::uint64_t count) const;
  /// The first number that is remembered, or will be.
  std::uint64_t first() const { return first_; }
  /// Numbers below this one are forgotten, since they were settled; 0 where others were forgotten
  /// because they were too many. It looks at all that are remembered.
  std::uint64_t settled_before() const;
  /// Goes on with what was known before.
  void resume(const SpooledProducer& known);
  /// Sequences in each state.
  const std::array<std::uint64_t, kOutcomes>& totals() const { return totals_; }
  /// Forgets them one by one where all are settled. The sums stay.
  void forget_settled();
  void count_refused_full() { ++refused_full_; }
  void count_duplicate() { ++duplicates_; }
  std::uint64_t refused_full() const { return refused_full_; }
  std::uint64_t duplicates() const { return duplicates_; }

 private:
  std::uint64_t& total(wire::Outcome outcome) { return totals_[static_cast<std::size_t>(outcome)]; }
  std::uint64_t total(wire::Outcome outcome) const {
    return totals_[static_cast<std::size_t>(outcome)];
  }

  std::uint64_t first_ = 0;  ///< Number of latest_.front().
  std::deque<wire::Outcome> latest_;
  std::array<std::uint64_t, kOutcomes> totals_{};
  std::uint64_t refused_full_ = 0;
  std::uint64_t duplicates_ = 0;
};

/// One Push that is under way: its sequences are offered one by one.
struct PushUnderWay {
  wire::PushT push;
  SharedBytes bytes;  ///< The area, or the frame.
  Result<std::shared_ptr<const Join>> join =
      std::shared_ptr<const Join>();  ///< As PushAsked has it.
  std::size_t next = 0;               ///< Of its sequences, the one that is offered.
  std::size_t key_at = 0;             ///< Of that one, in `keys`.
  std::optional<std::uint64_t> until_ms;
  std::shared_ptr<PushedSequence> offered;  ///< That one, while it waits.
  std::uint64_t event = 0;                  ///< What the pool calls it.
};

/// What a feed knows of a producer, by its name.
struct LiveProducer {
  ProducerId id = 0;
  std::shared_ptr<const std::string> name;
  std::optional<ProducerKey> key;  ///< Empty: it is not connected.
  ClientInfo client;               ///< That it was last.
  SharedBytes area;
  std::uint64_t next = 0;  ///< Number of the first sequence that is not accepted.
  std::uint64_t accepted_bytes = 0;
  std::uint64_t held_bytes = 0;            ///< Of them, those that are kept.
  std::optional<std::uint64_t> pushed_ms;  ///< When its latest sequence was accepted.
  Outcomes outcomes;
  std::optional<FrameParts> frame;  ///< Of the push that comes.
  std::optional<PushUnderWay> push;
  bool may_return = false;             ///< It was here before the daemon started, and not since.
  std::optional<std::uint32_t> claim;  ///< The question of the claim that waits.
  std::vector<std::uint64_t> freed;    ///< Of its area, and not told so far.

  /// One that gave itself no name has one that begins with a byte that is in none.
  std::string shown_name() const { return name->front() == '\x01' ? std::string() : *name; }
};

/// Where the first fields of an offered sequence lie, one for each length. Errors: schema_mismatch,
/// does_not_fit, which name the field and say what was found and what is allowed.
Result<std::vector<FieldValue>> fields_of(const Schema& schema,
                                          std::span<const std::uint32_t> lengths,
                                          std::uint64_t offset, std::span<const std::byte> bytes);

/// The sequences of a feed's producers. Threads: one at a time.
class ProducerTable {
 public:
  /// Names that a feed knows at a time, also of producers that are gone.
  static constexpr std::size_t kMost = 1 << 16;
  /// Producers of one session.
  static constexpr std::size_t kMostOfSession = 64;

  explicit ProducerTable(std::shared_ptr<FrameRoom> frame_room)
      : frame_room_(std::move(frame_room)) {}

  /// The room for their frames in parts.
  const std::shared_ptr<FrameRoom>& frame_room() const { return frame_room_; }

  LiveProducer* find(const ProducerKey& key);
  /// The producer with this name, which may be new. Errors: does_not_fit.
  Result<LiveProducer*> named(const std::string& name);
  LiveProducer& at(ProducerId id) { return *all_.at(id); }
  const LiveProducer& at(ProducerId id) const { return *all_.at(id); }
  /// The table is empty: these are known from before. Those that gave themselves no name never come
  /// again.
  void resume(const std::vector<SpooledProducer>& known);
  void connect(LiveProducer& producer, const ProducerKey& key);
  void disconnect(LiveProducer& producer);
  std::vector<ProducerKey> keys_of(SessionId session) const;
  const std::map<ProducerKey, ProducerId>& connected() const { return connected_; }
  /// Names that it knows.
  std::size_t size() const { return all_.size(); }

  /// The room of a sequence in its area is free: told of with the next take_freed().
  void note_freed(LiveProducer& producer, std::uint64_t number);
  /// Producers with room that was freed, each once.
  std::set<ProducerId> take_freed() { return std::exchange(freed_, {}); }
  /// The sequence that its push offers was accepted.
  void note_accepted(const LiveProducer& producer) { accepted_.insert(producer.id); }
  std::set<ProducerId> take_accepted() { return std::exchange(accepted_, {}); }

 private:
  std::shared_ptr<FrameRoom> frame_room_;
  std::vector<std::unique_ptr<LiveProducer>> all_;  ///< By id.
  std::map<std::string, ProducerId, std::less<>> names_;
  std::map<ProducerKey, ProducerId> connected_;
  std::set<ProducerId> freed_;
  std::set<ProducerId> accepted_;
};

}  // namespace batchwright
