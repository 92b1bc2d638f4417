#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/library/batchwright/client.h"
#include "client/library/produce/conversation.h"
#include "client/library/produce/sequence_form.h"
#include "formats/formats.h"

namespace batchwright {

/// Room for one sequence that a program writes in place: in the producer's area, or in a frame.
/// Lifetime: it keeps the memory, whatever becomes of the producer.
struct WrittenRoom {
  std::vector<ValuePlace> places;
  std::vector<std::uint32_t> lengths;
  std::uint64_t bytes = 0;
  std::shared_ptr<AreaStore> store;  ///< Null: in the frame.
  std::uint64_t place = 0;           ///< In the area.
  Payload frame;
  bool is_over = false;  ///< Its push has no answer: a daemon may have it.

  std::span<std::byte> memory() const;
};

/// A producer of a live feed, as a program sees it: what it asks for, one call at a time.
///
/// Calls that wait end early with Verdict::pending where `slice` is set, and go on when they are
/// called again with the same arguments; forget() gives them up.
/// Threads: one at a time; stop() from any.
class Producer {
 public:
  enum class Verdict : std::uint8_t { done, pending, ended };
  struct Settings {
    Conversation::Wanted wanted;
    std::chrono::milliseconds slice{0};  ///< 0: calls wait to their end.
  };
  /// Sequences to push. `origins` has one for each, or is null.
  struct Sequences {
    std::span<const bw_sequence> sequences;
    const bw_origin* origins = nullptr;
  };
  /// The key and the origin, which may be null, of what was written in place.
  struct Written {
    std::string_view key;
    const bw_origin* origin = nullptr;
  };
  struct Outcomes {
    std::uint64_t first = 0;
    std::vector<wire::Outcome> states;
    std::vector<std::uint64_t> totals;
    std::uint64_t refused_full = 0;
    std::uint64_t duplicates = 0;
  };

  /// Errors: as bw_produce() says.
  static Result<std::unique_ptr<Producer>> open(const std::string& endpoint,
                                                ConnectSettings settings,
                                                std::unique_ptr<Transport> transport,
                                                Settings wanted);

  bool forked() const { return conversation_.link().forked(); }
  const Conversation& conversation() const { return conversation_; }

  /// Errors: as bw_claim() says; `version` is set when it is granted.
  Result<Verdict> claim(std::uint32_t count, std::chrono::milliseconds limit,
                        std::uint64_t& version);
  /// `accepted` says how many were. Errors: as bw_push_many() says.
  Result<Verdict> push(const Sequences& what, std::chrono::milliseconds limit,
                       std::size_t& accepted);
  /// Errors: as bw_reserve() says; `room` is set when there is some.
  Result<Verdict> reserve(std::span<const std::uint32_t> lengths, std::chrono::milliseconds limit,
                          std::unique_ptr<WrittenRoom>& room);
  /// Errors: as bw_commit() says.
  Result<Verdict> commit(WrittenRoom& room, const Written& what, std::chrono::milliseconds limit);
  void drop(const WrittenRoom& room);
  /// The number of the sequence that was accepted last.
  std::uint64_t last_number() const { return conversation_.numbers().next - 1; }

  /// Errors: timed_out, disconnected.
  Result<void> abandon(const wire::AbandonT& what);
  Result<Outcomes> outcomes(std::uint64_t first, std::uint32_t count,
                            std::chrono::milliseconds limit);
  void forget();
  void close(std::chrono::milliseconds limit);
  void stop() { conversation_.stop(); }

 private:
  enum class Kind : std::uint8_t { claim, push, reserve, commit };
  /// A call that waits, over the slices it may take.
  struct Call {
    Kind kind;
    Deadline deadline;
    std::size_t accepted = 0;
    std::vector<std::uint64_t> bytes{};  ///< Of each sequence as it is laid out; once checked.
    WrittenRoom* room = nullptr;         ///< That is being committed.
    std::optional<Deadline> patience{};  ///< Since the area has no room: until a frame is taken.
  };

  Producer(std::string endpoint, ConnectSettings settings, std::unique_ptr<Transport> transport,
           Settings wanted);
  Result<void> learn_form();
  template <class Body>
  Result<Verdict> run(Kind kind, std::chrono::milliseconds limit, const Body& body);
  Result<Verdict> wait_for(const std::function<bool()>& ready, const Deadline& deadline,
                           const char* what);
  Result<Verdict> wait_for_answer(const std::function<bool()>& ready, const Deadline& deadline,
                                  const char* what);
  Error waited_in_vain(const Deadline& deadline, const char* what) const;
  Result<Verdict> claim_within(Call& call, std::uint32_t count, std::uint64_t& version);
  static Error bad_call(const std::string& what);

  // pushing.cpp
  Result<Verdict> push_within(Call& call, const Sequences& what);
  Result<Verdict> commit_within(Call& call, WrittenRoom& room, const Written& what);
  Result<Verdict> await_turn(const Deadline& deadline);
  Result<Verdict> await_room(Call& call);
  bool may_take_frame(const Call& call) const;
  bool takes_frame(const Call& call, std::uint64_t bytes) const;
  Result<Verdict> await_accepted(Call& call);
  void give_up_push(const Call& call);
  Result<void> check_all(Call& call, const Sequences& what);
  Result<std::uint64_t> check_one(const Sequences& what, std::size_t i, std::size_t ahead);
  Result<std::optional<Offer>> lay_out(const Call& call, const Sequences& what);
  Result<bool> lay_out_one(Offer& offer, const Sequences& what, std::size_t i, std::uint64_t bytes);
  Result<Offer> offer_of(const WrittenRoom& room, std::string_view key, const bw_origin& origin);
  Result<bw_sequence> named(const bw_sequence& sequence, std::size_t ahead);
  Result<bw_origin> origin_of(const bw_origin* given) const;

  Conversation conversation_;
  const std::chrono::milliseconds slice_;
  std::optional<SequenceForm> form_;
  std::optional<Call> call_;              ///< The one that is under way.
  std::optional<std::uint64_t> claimed_;  ///< The version of the last claim.
  std::vector<FieldValue> values_;        ///< Of the sequence at hand.
  std::string name_;                      ///< Of one without a key.
};

}  // namespace batchwright
