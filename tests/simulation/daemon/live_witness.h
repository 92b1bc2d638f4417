#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/delivery/feed/core/feed_core.h"
#include "tests/simulation/world/seam.h"
#include "tests/simulation/world/world.h"

namespace batchwright::simulation {

/// Sees what producers of a live feed push, what is cut of it and what trainers get, and fails the
/// run where they do not agree, or a promise of the feed does not hold. It outlives daemons: each
/// incarnation of the feed has its own steps and numbers.
class LiveWitness {
 public:
  LiveWitness(World& world, const LiveSettings& settings) : world_(world), settings_(settings) {}

  /// Several loops wait for steps: what one has not trained is taken for trained once another
  /// waits, so that with `pace`, too, sequences may be dropped.
  void expect_several_loops() { has_several_loops_ = true; }
  /// A feed begins, with no sequence; or goes on, where its spool has so much.
  void begin(std::uint64_t incarnation, const SpooledFeed* spooled);
  /// Before the feed is told.
  void asked(const LiveService& desk, SessionId session, const LiveRequest& request);
  void session_ended(const LiveService& desk, SessionId session);
  /// A message leaves.
  void sent(const LiveService& desk, SessionId session, const ControlMessage& message);
  /// After each event and each turn.
  void check(const LiveService& desk, const BatchSource& source);
  /// The bytes of a batch's rows are read now.
  void check_bytes(const BatchSource& source, BatchIndex index) const;

  /// A program has this batch, or gives it back.
  void check(const Holding& batch) const;
  std::uint64_t steps(std::uint64_t incarnation) const;
  /// All has ended, and nothing went wrong: nothing may be lost.
  void check_all_done(const LiveService& desk) const;

 private:
  using Name = std::pair<std::string, std::uint64_t>;  ///< A producer's, and its number.
  struct Offered {
    std::string key;
    std::uint32_t length = 0;
    std::uint64_t version = 0;
    std::uint64_t group = kNoGroup;
    std::uint32_t deliveries = 0;
    std::uint32_t next = 0;             ///< In lanes: the frame that comes next.
    std::optional<std::uint64_t> step;  ///< The last one with it.
  };
  struct Group {
    std::uint64_t size = 0;
    std::uint64_t abandoned = 0;  ///< At most.
    bool may_lack = false;        ///< Members that were not abandoned.
    std::optional<Time> since;    ///< The first member was offered.
    std::optional<std::set<Name>> cut;
  };
  struct SeenRow {
    std::string producer;
    std::uint64_t number = 0;
    std::uint64_t version = 0;
    std::uint32_t length = 0;
    float weight = 0;
  };
  using SeenBatch = std::vector<SeenRow>;
  struct Producer {
    std::uint64_t claimed = 0;      ///< And not pushed.
    std::uint64_t asked = 0;        ///< By the claim under way.
    std::uint64_t accepted = 0;     ///< Sequences of which it was told so.
    std::uint64_t frame_bytes = 0;  ///< Of one that comes in parts: so many are here.
  };
  /// One life of the feed.
  struct Life {
    std::uint64_t version = 0;
    std::uint64_t first_version = 0;  ///< That was announced before anything was granted.
    bool granted = false;
    bool is_paced = true;  ///< So far each step made one version, and all was claimed.
    bool ended = false;
    std::map<Name, Offered> offered;
    std::map<std::string, Name> keys;
    std::map<std::uint64_t, Group> groups;
    std::map<std::string, Producer> producers;
    std::vector<SeenBatch> batches;
    std::vector<std::optional<Name>> lanes;  ///< What each goes through.
  };

  void go_on(const SpooledFeed& spooled);
  void go_on_in_lanes(const SpooledFeed& spooled);
  bool comes_whole(const LiveProducer& from, const PushAsked& asked);
  void pushed(const LiveService& desk, const LiveProducer& from, const wire::PushT& push);
  void advanced(const wire::AdvanceT& advance);
  void abandoned(const LiveProducer& from, const wire::AbandonT& abandon);
  void check_step(const LiveService& desk, const BatchSource& source, std::uint64_t step);
  void check_row(const LiveService& desk, const BatchSource& source, BatchIndex index,
                 const LiveRows& live, const Row& row, std::size_t r, bool is_filler);
  void check_lanes(const BatchSource& source, std::uint64_t step);
  void check_lane(const LiveRows& live, const Row& row, std::size_t r, std::optional<Name>& lane);
  bool may_fill() const;
  std::map<Name, std::uint32_t> fillers_of(const BatchSource& source, std::uint64_t step) const;
  void check_staleness(const LiveRows& live, const Row& row, std::size_t r);
  void check_group(std::uint64_t id, const std::set<Name>& members);
  void check_producers(const LiveService& desk);
  static std::optional<std::string> name_of(const LiveService& desk, const ProducerKey& key);

  World& world_;
  const LiveSettings settings_;
  bool has_several_loops_ = false;
  std::map<std::uint64_t, Life> lives_;
  Life* life_ = nullptr;  ///< The present one.
};

}  // namespace batchwright::simulation
