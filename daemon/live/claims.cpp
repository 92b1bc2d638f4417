#include "daemon/live/claims.h"

#include <algorithm>

#include "formats/base/base.h"

namespace batchwright {

Claims::Own& Claims::own(ProducerId producer) {
  if (producer >= own_.size()) own_.resize(std::size_t{producer} + 1);
  return own_[producer];
}

void Claims::grant(ProducerId producer, std::uint64_t count, std::uint64_t now_ms) {
  const std::uint64_t id = granted_++;
  Claim claim;
  claim.producer = producer;
  claim.count = claim.left = count;
  claim.origin = {versions_.current(), versions_.line()};
  claim.age = versions_.age_of(claim.origin);
  claim.until_ms = now_ms + settings_.claim_timeout_ms;
  left_ += count;
  Claim& granted = claims_.emplace_hint(claims_.end(), id, claim)->second;
  this->count(granted);
  Own& own = this->own(producer);
  own.claims.push_back(id);
  if (own.missing != 0) cover(own);
}

std::uint64_t Claims::left(ProducerId producer) const {
  std::uint64_t sum = 0;
  if (!holds(producer)) return sum;
  for (const std::uint64_t id : own_[producer].claims) sum += claims_.at(id).left;
  return sum;
}

bool Claims::holds(ProducerId producer) const {
  return producer < own_.size() && !own_[producer].claims.empty();
}

std::optional<std::size_t> Claims::use(ProducerId producer, std::uint64_t version) {
  const Own& own = this->own(producer);
  if (own.claims.empty()) return std::nullopt;
  const auto same = std::ranges::find_if(
      own.claims, [&](std::uint64_t id) { return claims_.at(id).origin.version == version; });
  const bool found = same != own.claims.end();
  const std::uint64_t used = found ? *same : own.claims.front();
  const std::size_t line = claims_.at(used).origin.line;
  take(used, 1);
  return found ? std::optional(line) : std::nullopt;
}

void Claims::use_up(ProducerId producer, std::uint64_t count) {
  while (count > 0 && holds(producer)) {
    const std::uint64_t first = own(producer).claims.front();
    const std::uint64_t used = std::min(count, claims_.at(first).left);
    take(first, used);
    count -= used;
  }
}

void Claims::run_out(std::uint64_t now_ms) {
  while (!claims_.empty() && claims_.begin()->second.until_ms <= now_ms) {
    take(claims_.begin()->first, claims_.begin()->second.left);
  }
}

void Claims::end(ProducerId producer) {
  while (holds(producer)) {
    const std::uint64_t first = own(producer).claims.front();
    take(first, claims_.at(first).left);
  }
}

void Claims::end_all() {
  while (!claims_.empty()) take(claims_.begin()->first, claims_.begin()->second.left);
}

void Claims::take(std::uint64_t id, std::uint64_t count) {
  Claim& claim = claims_.at(id);
  must(count <= claim.left && count <= left_, "no more of a claim is used than it has left");
  left_ -= count;
  claim.left -= count;
  Own& own = this->own(claim.producer);
  claim.covered = std::min(claim.covered, claim.left);
  this->count(claim);
  if (claim.left == 0) {
    // Without an amount it is in no sum.
    if (own.claims.front() == id) {
      own.claims.pop_front();
    } else {
      std::erase(own.claims, id);
    }
    claims_.erase(id);
  }
  cover(own);
}

void Claims::lack(ProducerId producer, std::int64_t more) {
  if (more == 0) return;
  Own& own = this->own(producer);
  own.missing = static_cast<std::uint64_t>(static_cast<std::int64_t>(own.missing) + more);
  must(own.missing < std::uint64_t{1} << 62, "a producer's groups lack no fewer than none");
  cover(own);
}

void Claims::set_largest_group(std::uint64_t size) {
  if (size <= largest_group_) return;
  largest_group_ = size;
  for (auto& [id, claim] : claims_) count(claim);
}

void Claims::limits_changed(const LiveLimits& before) {
  for (auto& [id, claim] : claims_) {
    claim.until_ms = claim.until_ms - before.claim_timeout_ms + settings_.claim_timeout_ms;
    count(claim);
  }
}

void Claims::ages_changed() {
  by_age_.clear();
  for (auto& [id, claim] : claims_) {
    claim.age = versions_.age_of(claim.origin);
    add(claim, true);
  }
}

/// Missing members are the oldest claims'.
void Claims::cover(Own& own) {
  std::uint64_t missing = own.missing;
  std::size_t at = 0;
  for (; at < own.claims.size() && (missing > 0 || at < own.covered); ++at) {
    Claim& claim = claims_.at(own.claims[at]);
    const std::uint64_t covered = std::min(missing, claim.left);
    missing -= covered;
    if (covered == claim.covered) continue;
    claim.covered = covered;
    count(claim);
  }
  own.covered = own.missing == 0 ? 0 : at;
}

/// Brings the amount of a claim up to date.
void Claims::count(Claim& claim) {
  std::uint64_t sequences = claim.left - claim.covered;
  if (settings_.step_unit == StepUnit::groups && claim.count >= largest_group_) {
    // What is left of a group's claim is a group.
    sequences = (sequences + largest_group_ - 1) / largest_group_ * largest_group_;
  }
  const std::uint64_t amount = sequences * settings_.longest();
  if (amount == claim.amount) return;
  if (claim.amount != 0) coming_ -= claim.amount, add(claim, false);
  claim.amount = amount;
  if (claim.amount != 0) coming_ += claim.amount, add(claim, true);
}

void Claims::add(const Claim& claim, bool in) {
  if (claim.amount == 0) return;
  Coming& coming = by_age_[claim.age];
  if (in) {
    ++coming.claims;
    coming.amount += claim.amount;
    return;
  }
  must(coming.claims > 0 && coming.amount >= claim.amount, "sums of claims are those of claims");
  coming.amount -= claim.amount;
  if (--coming.claims == 0) by_age_.erase(claim.age);
}

std::optional<std::uint64_t> Claims::next_deadline() const {
  if (claims_.empty()) return std::nullopt;
  return claims_.begin()->second.until_ms;
}

}  // namespace batchwright
