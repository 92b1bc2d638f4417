#include "storage/features/recipe/sources/sound_set.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "formats/formats.h"

namespace batchwright {
namespace {

/// Samples looked at for one that is not silent: of hours of noise the first are enough.
constexpr std::uint64_t kPiece = std::uint64_t{1} << 16;

/// What a transformed response takes a tap.
constexpr std::size_t kBytesPerTap = 16;

Error bad_set(const std::filesystem::path& path, std::string_view what) {
  return {ErrorCode::bad_configuration, fmt::format("{}: {}", path.string(), what)};
}

}  // namespace

Result<std::shared_ptr<const SoundSet>> SoundSet::open(
    const std::vector<std::filesystem::path>& datasets, const Use& use, Catalog& catalog) {
  const std::shared_ptr<SoundSet> set(new SoundSet());
  set->use_ = use;
  for (const auto& path : datasets) {
    const std::uint32_t before = set->size();
    if (auto added = set->add(path, catalog); !added) return added.error();
    if (auto heard = set->hear(before); !heard) return heard.error();
  }
  return std::shared_ptr<const SoundSet>(set);
}

Result<void> SoundSet::add(const std::filesystem::path& dataset, Catalog& catalog) {
  const auto opened = catalog.open({dataset}, VerifyRecords::once, Locking::on, Holding::checksums);
  if (!opened) return opened.error();
  auto snapshot = (*opened)->snapshot();
  if (!snapshot) return snapshot.error();
  const auto sound = StoredSound::of((*snapshot)->schema());
  if (!sound) {
    return bad_set(dataset,
                   "a dataset without sound; allowed: one that `batchwright ingest audio "
                   "--store pcm` or `--store encoded` made");
  }
  if (auto there = sound->check_decodable(); !there) {
    return bad_set(dataset, there.error().message);
  }
  if ((*snapshot)->sequences() == 0) return bad_set(dataset, "a dataset without sequences");
  const auto lengths = (*snapshot)->lengths();
  const auto rates = (*snapshot)->field_lengths(sound->rate_field());
  const Member member{*snapshot, *sound, dataset.string()};
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto ratio = rate_ratio(rates[i], use_.rate, Speed{});
    if (!ratio) return bad_set(dataset, ratio.error().message);
    if (!kHasSoundLibraries && rates[i] != use_.rate) {
      return bad_set(dataset, fmt::format("sequence {} has {} Hz; without libsoxr, as in a minimal "
                                          "build, {} Hz alone are allowed",
                                          i, rates[i], use_.rate));
    }
    if (lengths[i] == 0) return bad_set(dataset, fmt::format("sequence {} has no samples", i));
    // Sound of a sample or two may have none at a lower rate: then it is one of silence.
    const std::uint64_t samples =
        std::max<std::uint64_t>(resampled_length(ResamplerKind::soxr, lengths[i], *ratio), 1);
    const Place place{static_cast<std::uint32_t>(members_.size()), lengths[i], i, *ratio, samples};
    if (auto fits = check_length(member, place, rates[i]); !fits) return fits;
    count_memory(member, place);
    places_.push_back(place);
  }
  content_ = mix64(content_ + (*snapshot)->content());
  members_.push_back(member);
  return {};
}

/// Before anything is read: the index has the lengths, and records are compared with it.
Result<void> SoundSet::check_length(const Member& member, const Place& place,
                                    std::uint32_t rate) const {
  const auto refused = [&](const std::string& what) {
    return bad_set(member.name, fmt::format("sequence {} {}", place.ordinal, what));
  };
  if (use_.rooms && place.samples > Room::kMostTaps) {
    return refused(fmt::format("is an impulse response of {} taps at {} Hz; allowed: 1 to {}",
                               place.samples, use_.rate, Room::kMostTaps));
  }
  // Samples at the set's rate are read piece by piece, and no more of them than a row needs.
  if (!is_made(member, place) || place.stored <= std::uint64_t{use_.max_seconds} * rate) return {};
  return refused(fmt::format(
      "has {:.1f} s of sound; allowed: up to max_seconds = {}, or samples at {} Hz (`batchwright "
      "ingest audio --store pcm`)",
      static_cast<double>(place.stored) / rate, use_.max_seconds, use_.rate));
}

void SoundSet::count_memory(const Member& member, const Place& place) {
  if (use_.rooms) room_bytes_ += place.samples * (kBytesPerTap + sizeof(float));
  if (!is_made(member, place)) return;
  (place.bytes() > kMostShortBytes ? long_bytes_ : short_bytes_) += place.bytes();
  const auto files = member.snapshot->field_lengths(member.sound.payload_field());
  const std::uint64_t file = member.sound.is_encoded() ? files[place.ordinal] + kDecoderBytes : 0;
  scratch_bytes_ = std::max(scratch_bytes_, place.stored * sizeof(float) + file);
}

std::uint64_t SoundSet::kept_bytes() const {
  return std::min<std::uint64_t>(short_bytes_, kKeptSoundBytes) + long_bytes_ +
         std::min<std::uint64_t>(room_bytes_, kKeptRoomBytes);
}

std::string SoundSet::name(std::uint32_t index) const {
  const Place& place = places_[index];
  const Member& member = members_[place.member];
  const auto record = member.snapshot->record(Ordinal{place.ordinal});
  std::string key(record ? record->key().size() : 0, ' ');
  const bool read = record && copy_from_map(std::as_writable_bytes(std::span(key)),
                                            std::as_bytes(std::span(record->key())));
  return fmt::format("{}: {}", member.name,
                     read ? printable(key) : fmt::format("sequence {}", place.ordinal));
}

/// Whether any sound from `first` on is more than silence; the first is, as a rule.
Result<void> SoundSet::hear(std::uint32_t first) const {
  Scratch scratch;
  std::vector<float> sound;
  for (std::uint32_t i = first; i < size(); ++i) {
    for (std::uint64_t at = 0; at < samples(i); at += kPiece) {
      if (auto read = this->read(i, at, kPiece, sound, scratch); !read) return read;
      if (std::any_of(sound.begin(), sound.end(), [](float sample) { return sample != 0; })) {
        return {};
      }
    }
  }
  return bad_set(members_.back().name, "every sequence is silent");
}

Result<void> SoundSet::read_stored(const Place& place, std::uint64_t first, std::span<float> out,
                                   Scratch& scratch) const {
  const Member& member = members_[place.member];
  const auto named = [&](const Error& error) {
    return Error{error.code, fmt::format("{}: {}", member.name, error.message)};
  };
  const auto record = member.snapshot->record(Ordinal{place.ordinal});
  if (!record) return named(record.error());
  std::vector<FieldValue> values(member.snapshot->schema().fields.size());
  if (auto there = fields_from_map(*record, values); !there) return named(there.error());
  auto read = member.sound.read(values, first, out, scratch.bytes);
  return read ? read : named(read.error());
}

/// All of one that is not stored as it is needed.
Result<SoundSet::SharedSound> SoundSet::whole(std::uint32_t index, Scratch& scratch) const {
  {
    const MutexLock lock(mutex_);
    for (const auto* kept : {&sounds_, &long_sounds_}) {
      const auto found = kept->values.find(index);
      if (found != kept->values.end()) return found->second;
    }
  }
  const Place& place = places_[index];
  scratch.stored.resize(place.stored);
  if (auto read = read_stored(place, 0, scratch.stored, scratch); !read) return read.error();
  std::vector<float> sound(place.samples);
  auto made = scratch.resampler.resample(place.ratio, scratch.stored, sound);
  if (!made) return made.error();
  // Filters make more of the largest numbers than a float holds.
  if (!std::all_of(sound.begin(), sound.end(), [](float s) { return std::isfinite(s); })) {
    return Error{ErrorCode::corrupt_record,
                 fmt::format("{}: sequence {}: samples too large to be resampled",
                             members_[place.member].name, place.ordinal)};
  }
  auto kept = std::make_shared<const std::vector<float>>(std::move(sound));
  const MutexLock lock(mutex_);
  if (place.bytes() > kMostShortBytes) {
    long_sounds_.add(index, kept, place.bytes(), long_bytes_);
  } else {
    sounds_.add(index, kept, place.bytes(), kKeptSoundBytes);
  }
  return kept;
}

Result<void> SoundSet::read(std::uint32_t index, std::uint64_t first, std::uint64_t count,
                            std::vector<float>& out, Scratch& scratch) const {
  const Place& place = places_[index];
  const std::uint64_t wanted = std::min(count, place.samples - first);
  if (!is_made(members_[place.member], place)) {
    out.resize(wanted);
    return read_stored(place, first, out, scratch);
  }
  const auto all = whole(index, scratch);
  if (!all) return all.error();
  const auto begin = (*all)->begin() + static_cast<std::ptrdiff_t>(first);
  out.assign(begin, begin + static_cast<std::ptrdiff_t>(wanted));
  return {};
}

Result<std::shared_ptr<const Room>> SoundSet::room(std::uint32_t index, Scratch& scratch) const {
  {
    const MutexLock lock(mutex_);
    const auto found = rooms_.values.find(index);
    if (found != rooms_.values.end()) return found->second;
  }
  std::vector<float> response;
  if (auto read = this->read(index, 0, samples(index), response, scratch); !read) {
    return read.error();
  }
  auto room = Room::create(response);
  if (!room) {
    // Its length was looked at when the set was opened: what is left is its content.
    return Error{ErrorCode::corrupt_record,
                 fmt::format("{}: sequence {}: {}", members_[places_[index].member].name,
                             places_[index].ordinal, room.error().message)};
  }
  auto kept = std::make_shared<const Room>(*std::move(room));
  const MutexLock lock(mutex_);
  rooms_.add(index, kept, kept->taps() * kBytesPerTap, kKeptRoomBytes);
  return kept;
}

}  // namespace batchwright
