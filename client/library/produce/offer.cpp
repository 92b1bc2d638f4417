#include "client/library/produce/offer.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "client/library/c_values.h"

namespace batchwright {
namespace {

/// What a message says beside its sequences, with room to spare.
constexpr std::size_t kMessageBytes = 1024;

wire::OfferedSequence moved(const wire::OfferedSequence& from, std::uint64_t place) {
  return {place,        from.version(),    from.version_newest(),
          from.group(), from.group_size(), from.key_bytes(),
          from.weight()};
}

}  // namespace

Payload frame_memory(std::uint64_t bytes) {
  constexpr std::align_val_t kAligned{kTensorAlignment};
  const auto size = static_cast<std::size_t>(std::max<std::uint64_t>(bytes, 1));
  void* const start = ::operator new(size, kAligned);
  std::memset(start, 0, size);  // what lies between the values travels, too
  const std::shared_ptr<const void> keeper(
      start, [](void* memory) { ::operator delete(memory, kAligned); });
  return {keeper, {static_cast<const std::byte*>(start), size}};
}

bool Offer::has_place(std::size_t key_bytes, std::size_t fields, const bw_of* of) const {
  const std::size_t count = size() + 1;
  const std::size_t row = of != nullptr ? sizeof(wire::JoinedRow) : 0;
  const std::size_t bytes = count * (sizeof(wire::OfferedSequence) + 8 + 4 * fields + row) +
                            push_.keys.size() + key_bytes + kMessageBytes;
  if (of != nullptr && push_.of) {
    const bool is_alike =
        push_.of->feed == of->feed && from_wire(*push_.of->fingerprint) == from_c(of->fingerprint);
    if (!is_alike) return false;
  }
  return count <= kMostOffered && bytes <= kMaxControlBytes;
}

std::optional<std::uint64_t> Offer::take_room(std::uint64_t bytes) {
  if (store_) return store_->take(bytes);
  const std::uint64_t place = frame_used_;
  frame_used_ += FreeRoom::taken_by(bytes);
  return place;
}

void Offer::give_room_back(std::uint64_t place, std::uint64_t bytes) {
  if (store_) return store_->give_back(place, bytes);
  frame_used_ = place;
}

std::span<std::byte> Offer::at(std::uint64_t place, std::uint64_t bytes) const {
  if (store_) return store_->at(place, bytes);
  // The frame is ours alone until it is sent.
  return {const_cast<std::byte*>(frame_.bytes.data()) + place, static_cast<std::size_t>(bytes)};
}

void Offer::add(const Sequence& sequence, const bw_origin& origin) {
  const std::uint64_t newest = std::max(origin.version, origin.version_newest);
  push_.sequences.emplace_back(sequence.place, origin.version, newest, origin.group,
                               origin.group_size, static_cast<std::uint32_t>(sequence.key.size()),
                               origin.weight);
  for (const FieldValue& value : sequence.values) push_.lengths.push_back(value.length);
  push_.keys.insert(push_.keys.end(), sequence.key.begin(), sequence.key.end());
  bytes_.push_back(sequence.bytes);
  if (origin.epoch != 0) push_.epochs.resize(size() - 1);
  if (origin.epoch != 0 || !push_.epochs.empty()) push_.epochs.push_back(origin.epoch);
  if (origin.of == nullptr) return;
  const bw_of& of = *origin.of;
  if (!push_.of) {
    push_.of = std::make_unique<wire::OfT>();
    push_.of->feed = of.feed;
    push_.of->fingerprint = std::make_unique<wire::Fingerprint>(to_wire(from_c(of.fingerprint)));
  }
  push_.of->rows.emplace_back(of.epoch, of.ordinal, of.start, of.use);
}

void Offer::number(std::uint64_t first) {
  push_.first = first;
  if (!store_) return;
  for (std::size_t i = 0; i < size(); ++i) {
    store_->offer(first + i, push_.sequences[i].offset(), bytes_[i]);
  }
}

void Offer::settle(std::uint64_t next) {
  const std::size_t taken = next <= first() ? 0 : std::min<std::uint64_t>(next - first(), size());
  accepted_ += taken;
  for (std::size_t i = taken; store_ && i < size(); ++i) {
    if (owns_) {
      store_->freed(first() + i);
    } else {
      store_->withdraw(first() + i);
    }
  }
}

void Offer::move_to(const std::shared_ptr<AreaStore>& store, std::uint64_t next) {
  const std::size_t taken = next <= first() ? 0 : std::min<std::uint64_t>(next - first(), size());
  accepted_ += taken;
  drop_first(taken);
  if (store_ && !(store && move_into(store))) move_into_frame();
  number(next);
}

void Offer::drop_first(std::size_t count) {
  if (count == 0) return;
  const auto fields = static_cast<std::ptrdiff_t>(push_.lengths.size() / size());
  std::ptrdiff_t key_bytes = 0;
  for (std::size_t i = 0; i < count; ++i) key_bytes += push_.sequences[i].key_bytes();
  const auto gone = static_cast<std::ptrdiff_t>(count);
  push_.sequences.erase(push_.sequences.begin(), push_.sequences.begin() + gone);
  push_.lengths.erase(push_.lengths.begin(), push_.lengths.begin() + gone * fields);
  push_.keys.erase(push_.keys.begin(), push_.keys.begin() + key_bytes);
  bytes_.erase(bytes_.begin(), bytes_.begin() + gone);
  if (push_.of) push_.of->rows.erase(push_.of->rows.begin(), push_.of->rows.begin() + gone);
  if (!push_.epochs.empty()) push_.epochs.erase(push_.epochs.begin(), push_.epochs.begin() + gone);
}

/// False, and nothing has changed, when they do not all fit.
bool Offer::move_into(const std::shared_ptr<AreaStore>& store) {
  std::vector<std::uint64_t> places;
  for (const std::uint64_t bytes : bytes_) {
    const auto place = store->take(bytes);
    if (!place) break;
    places.push_back(*place);
  }
  if (places.size() != size()) {
    for (std::size_t i = 0; i < places.size(); ++i) store->give_back(places[i], bytes_[i]);
    return false;
  }
  for (std::size_t i = 0; i < size(); ++i) {
    const auto from = at(push_.sequences[i].offset(), bytes_[i]);
    std::copy(from.begin(), from.end(), store->at(places[i], bytes_[i]).begin());
    push_.sequences[i] = moved(push_.sequences[i], places[i]);
  }
  store_ = store;
  owns_ = true;
  return true;
}

void Offer::move_into_frame() {
  std::uint64_t total = 0;
  for (const std::uint64_t bytes : bytes_) total += FreeRoom::taken_by(bytes);
  Offer framed(frame_memory(total));
  for (std::size_t i = 0; i < size(); ++i) {
    const std::uint64_t place = *framed.take_room(bytes_[i]);
    const auto from = at(push_.sequences[i].offset(), bytes_[i]);
    std::copy(from.begin(), from.end(), framed.at(place, bytes_[i]).begin());
    push_.sequences[i] = moved(push_.sequences[i], place);
  }
  store_ = nullptr;
  owns_ = true;
  frame_ = std::move(framed.frame_);
}

flatbuffers::DetachedBuffer Offer::message(const Asking& asking) {
  push_.producer = asking.producer;
  push_.question = asking.question;
  push_.framed = is_framed();
  push_.timeout_ms = asking.limit.count();
  return encode(wire::PushT(push_));
}

Payload Offer::part(std::uint64_t at, std::size_t most) const {
  Payload part = frame_;
  part.bytes = part.bytes.subspan(at);
  part.bytes = part.bytes.first(std::min(part.bytes.size(), most));
  return part;
}

flatbuffers::DetachedBuffer Offer::part_message(const Asking& asking, std::uint64_t at) {
  push_.total_bytes = frame_.bytes.size();
  push_.part_at = at;
  auto message = this->message(asking);
  push_.total_bytes = push_.part_at = 0;  // another daemon may be offered it in one piece
  return message;
}

}  // namespace batchwright
