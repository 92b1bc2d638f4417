#include "daemon/delivery/feed/live/producer.h"

#include <fmt/format.h>

#include <algorithm>

#include "daemon/delivery/feed/live/spool_turn.h"

namespace batchwright {

void Outcomes::set(std::uint64_t number, wire::Outcome outcome) {
  if (number == first_ + latest_.size()) {
    latest_.push_back(outcome);
    ++total(outcome);
    if (latest_.size() > kMost) {
      latest_.pop_front();
      ++first_;
    }
    return;
  }
  // One that is no longer remembered was waiting or delivered.
  const bool known = number >= first_ && number - first_ < latest_.size();
  wire::Outcome before =
      total(wire::Outcome::delivered) != 0 ? wire::Outcome::delivered : wire::Outcome::waiting;
  if (known) {
    before = std::exchange(latest_[static_cast<std::size_t>(number - first_)], outcome);
  }
  if (total(before) != 0) --total(before);
  ++total(outcome);
}

std::vector<wire::Outcome> Outcomes::list(std::uint64_t& first, std::uint64_t count) const {
  first = std::clamp(first, first_, first_ + latest_.size());
  const auto begin = latest_.begin() + static_cast<std::ptrdiff_t>(first - first_);
  const auto most = static_cast<std::uint64_t>(latest_.end() - begin);
  return {begin, begin + static_cast<std::ptrdiff_t>(std::min(count, most))};
}

void Outcomes::forget_settled() {
  if (total(wire::Outcome::waiting) != 0 || total(wire::Outcome::delivered) != 0) return;
  first_ += latest_.size();
  latest_ = {};
}

std::uint64_t Outcomes::settled_before() const {
  const auto is_open = [](wire::Outcome outcome) {
    return outcome == wire::Outcome::waiting || outcome == wire::Outcome::delivered;
  };
  const auto open =
      static_cast<std::uint64_t>(std::count_if(latest_.begin(), latest_.end(), is_open));
  return total(wire::Outcome::waiting) + total(wire::Outcome::delivered) == open ? first_ : 0;
}

void Outcomes::resume(const SpooledProducer& known) {
  first_ = known.first;
  latest_.clear();
  for (const std::uint8_t outcome : known.outcomes) {
    latest_.push_back(static_cast<wire::Outcome>(outcome));
  }
  std::copy_n(known.totals.begin(), std::min(known.totals.size(), totals_.size()), totals_.begin());
  refused_full_ = known.refused_full;
  duplicates_ = known.duplicates;
}

Result<std::vector<FieldValue>> fields_of(const Schema& schema,
                                          std::span<const std::uint32_t> lengths,
                                          std::uint64_t offset, std::span<const std::byte> bytes) {
  if (offset % kTensorAlignment != 0 || offset > bytes.size()) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("offset {}; allowed: multiples of 64 up to {}", offset, bytes.size())};
  }
  const auto places = offered_places(schema, lengths);
  if (!places) return places.error();
  const auto within = bytes.subspan(static_cast<std::size_t>(offset));
  std::vector<FieldValue> values;
  values.reserve(places->size());
  for (std::size_t f = 0; f < places->size(); ++f) {
    const auto [at, size] = (*places)[f];
    if (at > within.size() || size > within.size() - at) {
      return Error{ErrorCode::does_not_fit,
                   fmt::format("field \"{}\" of {} bytes at {}, which is not within {} bytes",
                               schema.fields[f].name, size, offset + at, bytes.size())};
    }
    values.push_back(
        {within.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(size)), lengths[f]});
  }
  return values;
}

LiveProducer* ProducerTable::find(const ProducerKey& key) {
  const auto found = connected_.find(key);
  return found == connected_.end() ? nullptr : all_[found->second].get();
}

Result<LiveProducer*> ProducerTable::named(const std::string& name) {
  if (const auto found = names_.find(name); found != names_.end()) return all_[found->second].get();
  if (all_.size() >= kMost) {
    return Error{ErrorCode::does_not_fit,
                 fmt::format("the feed has had {} producers by different names, and knows no more; "
                             "give producers names that stay the same when they start again",
                             kMost)};
  }
  auto made = std::make_unique<LiveProducer>();
  made->id = static_cast<ProducerId>(all_.size());
  made->name = std::make_shared<const std::string>(name);
  names_.emplace(name, made->id);
  all_.push_back(std::move(made));
  return all_.back().get();
}

void ProducerTable::resume(const std::vector<SpooledProducer>& known) {
  for (const SpooledProducer& one : known) {
    auto made = std::make_unique<LiveProducer>();
    made->id = static_cast<ProducerId>(all_.size());
    made->name = one.name;
    made->next = one.next;
    made->outcomes.resume(one);
    made->may_return = true;
    names_.emplace(*one.name, made->id);
    all_.push_back(std::move(made));
  }
}

void ProducerTable::connect(LiveProducer& producer, const ProducerKey& key) {
  producer.key = key;
  producer.may_return = false;
  connected_.emplace(key, producer.id);
}

void ProducerTable::disconnect(LiveProducer& producer) {
  if (producer.key) connected_.erase(*producer.key);
  producer.key.reset();
  producer.area = {};
  producer.push.reset();
  producer.claim.reset();
  producer.freed.clear();
  producer.outcomes.forget_settled();
}

void ProducerTable::note_freed(LiveProducer& producer, std::uint64_t number) {
  producer.freed.push_back(number);
  freed_.insert(producer.id);
}

std::vector<ProducerKey> ProducerTable::keys_of(SessionId session) const {
  std::vector<ProducerKey> keys;
  for (auto at = connected_.lower_bound({session, 0});
       at != connected_.end() && at->first.session == session; ++at) {
    keys.push_back(at->first);
  }
  return keys;
}

}  // namespace batchwright
