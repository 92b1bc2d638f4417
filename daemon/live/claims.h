#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "daemon/live/events.h"
#include "daemon/live/settings.h"
#include "daemon/live/versions.h"

namespace batchwright {

/// The granted claims, and what they will bring: the amount, in the unit of the step's budget,
/// beyond the members that begun groups of the same producer lack.
///
/// Using a claim up costs O(log claims), and a step more for each claim of its producer that is
/// older, or that stands for missing members.
class Claims {
 public:
  /// What claims of one age will bring.
  struct Coming {
    std::uint64_t claims = 0;  ///< Of those with an amount.
    std::uint64_t amount = 0;
  };

  Claims(const LiveSettings& settings, const Versions& versions)
      : settings_(settings), versions_(versions) {}

  /// Grants a claim with the current version, until claim_timeout is over.
  void grant(ProducerId producer, std::uint64_t count, std::uint64_t now_ms);
  bool holds(ProducerId producer) const;
  /// A sequence of this version has come: uses up one of the producer's oldest claim of the same
  /// version, else of its oldest. Returns the line of a claim of the same version.
  std::optional<std::size_t> use(ProducerId producer, std::uint64_t version);
  /// So many will not come: the producer's oldest claims first.
  void use_up(ProducerId producer, std::uint64_t count);
  /// Claims whose time is over end.
  void run_out(std::uint64_t now_ms);
  void end(ProducerId producer);  ///< All of this producer.
  void end_all();

  /// The producer's begun groups lack so many members more; or, below 0, less.
  void lack(ProducerId producer, std::int64_t more);
  /// The largest group that any push has named.
  void set_largest_group(std::uint64_t size);
  /// The settings have changed, which had these limits.
  void limits_changed(const LiveLimits& before);
  /// Another line has begun.
  void ages_changed();

  /// Sequences that were claimed and have not come: of all, or of one producer.
  std::uint64_t left() const { return left_; }
  std::uint64_t left(ProducerId producer) const;
  std::uint64_t coming() const { return coming_; }
  const std::map<Age, Coming>& coming_by_age() const { return by_age_; }
  std::optional<std::uint64_t> next_deadline() const;

 private:
  struct Claim {
    ProducerId producer = 0;
    std::uint64_t count = 0, left = 0;
    Origin origin;
    Age age;
    std::uint64_t until_ms = 0;
    std::uint64_t covered = 0;  ///< Of what is left: those that begun groups lack.
    std::uint64_t amount = 0;   ///< Of the others.
  };
  struct Own {
    std::deque<std::uint64_t> claims;  ///< In the order in which they were granted.
    std::uint64_t missing = 0;         ///< Members that begun groups lack.
    std::size_t covered = 0;           ///< No claim from here on has a covered part.
  };

  Own& own(ProducerId producer);
  void take(std::uint64_t id, std::uint64_t count);
  void cover(Own& own);
  void count(Claim& claim);
  void add(const Claim& claim, bool in);

  const LiveSettings& settings_;
  const Versions& versions_;
  std::map<std::uint64_t, Claim> claims_;  ///< As granted, so that the first ends first.
  std::vector<Own> own_;                   ///< By producer.
  std::map<Age, Coming> by_age_;
  std::uint64_t granted_ = 0;
  std::uint64_t left_ = 0;
  std::uint64_t coming_ = 0;
  std::uint64_t largest_group_ = 1;
};

}  // namespace batchwright
