#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "client/library/deadline.h"
#include "client/library/link/daemon_link.h"
#include "client/library/produce/area_store.h"
#include "client/library/produce/offer.h"
#include "formats/formats.h"

namespace batchwright {

/// What a producer asks the daemon, and what it answers, over a link that is made again when the
/// daemon is gone. A question that has no answer by then is asked again: a claim as it is, and of a
/// push what the daemon does not have, which Produced.next tells.
///
/// Threads: one at a time; stop() from any.
class Conversation {
 public:
  struct Wanted {
    std::string feed;
    std::string name;
    std::uint64_t area_bytes = 0;
    std::size_t part_bytes = kMostFrameBytes;  ///< Of a frame; a larger one travels in parts.
  };
  /// What the daemon says of the producer.
  struct Numbers {
    std::uint64_t incarnation = 0;  ///< Of the feed.
    std::uint64_t next = 0;         ///< The first number that is not accepted.
    std::uint64_t version = 0;      ///< The last that was heard of.
  };
  /// A question, and its answer once that is there. One that is forgotten has no call that waits
  /// for its answer, which must come all the same before the next one of its kind can be asked.
  template <class AnswerT>
  struct Asked {
    Deadline deadline;
    std::uint32_t question = 0;
    bool sent = false;  ///< To the present daemon.
    bool forgotten = false;
    std::optional<AnswerT> answer{};
  };
  struct Claim : Asked<wire::ClaimedT> {
    std::uint32_t count = 0;
  };
  struct Push : Asked<wire::AcceptedT> {
    Offer offer;
    bool was_sent = false;         ///< To some daemon, which may have accepted it.
    std::uint64_t sent_bytes = 0;  ///< Of a frame that travels in parts.
  };
  struct Listing : Asked<wire::OutcomesT> {
    std::uint64_t first = 0;
    std::uint32_t count = 0;
  };

  Conversation(std::string endpoint, ConnectSettings settings, std::unique_ptr<Transport> transport,
               Wanted wanted);

  /// Meets the daemon and becomes a producer, within the connection's limit.
  /// Errors: as bw_produce() says.
  Result<void> open();
  /// Whether the daemon has us as a producer now.
  bool is_producing() const { return state_ == State::producing; }
  /// Whether the daemon has said that the feed has ended.
  bool has_ended() const { return ended_; }
  /// Why the conversation is over.
  const std::optional<Error>& failure() const { return failure_; }
  /// What the link says, and its clock.
  const DaemonLink& link() const { return link_; }
  Deadline after(std::chrono::milliseconds limit) const { return {limit, link_.now()}; }

  const std::string& name() const { return wanted_.name; }
  const std::string& feed() const { return wanted_.feed; }
  const Numbers& numbers() const { return numbers_; }
  /// The area; null where sequences travel in frames, and while the daemon is away.
  const std::shared_ptr<AreaStore>& store() const { return store_; }

  // The questions under way. None may be asked while one of its kind is.
  std::optional<Claim>& claim() { return claim_; }
  std::optional<Push>& push() { return push_; }
  std::optional<Listing>& listing() { return listing_; }
  void ask_claim(std::uint32_t count, const Deadline& deadline);
  void ask_push(Offer offer, const Deadline& deadline);
  void ask_outcomes(std::uint64_t first, std::uint32_t count, const Deadline& deadline);
  /// No call waits for the answers.
  void forget_claim();
  void forget_push();

  /// Takes in what comes until `done` or the failure; false when the time is over before.
  bool pump_until(const std::function<bool()>& done, const Deadline& deadline);
  /// The daemon must have us as a producer.
  void abandon(const wire::AbandonT& what);

  /// Ends the producer, and the conversation.
  void close();
  /// The thread that is in pump_until() ends the conversation. Threads: any.
  void stop();

  /// Whether messages of this kind are taken.
  static bool handles(wire::Body kind);

 private:
  enum class State : std::uint8_t { away, asked, producing };
  struct Handler {
    wire::Body kind;
    void (Conversation::*handle)(const ControlMessage&);  ///< Null: nothing is to do.
  };
  static const Handler kHandlers[];

  void pump(const Deadline& deadline);
  void dispatch(const ControlMessage& message);
  void on_welcome(const ControlMessage& message);
  void on_produced(const ControlMessage& message);
  void on_claimed(const ControlMessage& message);
  void on_accepted(const ControlMessage& message);
  void on_freed(const ControlMessage& message);
  void on_outcomes(const ControlMessage& message);
  void on_refused(const ControlMessage& message);
  void on_bye(const ControlMessage& message);
  void arrive(const Deadline& deadline);
  void produce();
  void meet_again();
  Result<std::shared_ptr<AreaStore>> fetch_area(std::uint32_t number);
  void resume(bool is_known);
  void ask_what_is_due();
  void send_push();
  void send_part();
  void area_trouble(const Error& error);
  void lose(const std::string& how);
  void lost();
  void fail(const Error& error);
  void send(const flatbuffers::DetachedBuffer& message, const Payload& frame = {});

  DaemonLink link_;
  const Wanted wanted_;
  std::atomic<bool> stopped_ = false;
  State state_ = State::away;
  /// Our number in the session: another one with each Produce, so that what is said to an earlier
  /// one is not taken for ours.
  std::uint32_t producer_ = 0;
  bool ended_ = false;
  bool was_produced_ = false;
  std::optional<Deadline> patience_;  ///< For a name that our own old session still has.
  Numbers numbers_;
  std::shared_ptr<AreaStore> store_;
  std::uint32_t last_question_ = 0;
  std::optional<Claim> claim_;
  std::optional<Push> push_;
  std::optional<Listing> listing_;
  std::optional<Error> failure_;
};

}  // namespace batchwright
