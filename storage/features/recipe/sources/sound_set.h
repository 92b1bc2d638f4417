#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/formats.h"
#include "storage/features/frontend/frontend.h"
#include "storage/features/recipe/sources/stored_sound.h"

namespace batchwright {

/// The sound of one or more datasets, one behind the other: noise, or impulse responses of rooms.
/// Immutable, except for what is kept of them. Threads: any.
class SoundSet {
 public:
  /// What a set is opened for, and how long its sounds may be.
  struct Use {
    std::uint32_t rate = 0;         ///< Hz, what the sound is resampled to.
    std::uint32_t max_seconds = 0;  ///< Of a sound that is decoded or resampled, as stored.
    bool rooms = false;             ///< They are impulse responses.
  };

  /// Errors: bad_configuration, naming the dataset: it has no sound, or no sequence, or one that is
  /// too long; those of opening it.
  static Result<std::shared_ptr<const SoundSet>> open(
      const std::vector<std::filesystem::path>& datasets, const Use& use, Catalog& catalog);

  std::uint32_t size() const { return static_cast<std::uint32_t>(places_.size()); }
  /// Changes with any byte of the datasets.
  std::uint64_t content() const { return content_; }
  /// Samples of one at the set's rate.
  std::uint64_t samples(std::uint32_t index) const { return places_[index].samples; }

  /// "DATASET: KEY"; a number in place of a key that cannot be read.
  std::string name(std::uint32_t index) const;

  /// Memory that reading takes; it grows to the longest sound and is used again.
  struct Scratch {
    std::vector<std::byte> bytes;
    std::vector<float> stored;
    Resampler resampler{ResamplerKind::soxr};
  };

  /// Memory that all scratches of a thread take at most, and that what is kept takes.
  std::uint64_t scratch_bytes() const { return scratch_bytes_; }
  std::uint64_t kept_bytes() const;

  /// Samples [first, first + count) of one, or as many as there are from there on; `out` is
  /// resized. What is stored at the set's rate as samples is read no further than that; what is
  /// decoded or resampled for it is kept: up to kKeptSoundBytes of those of kMostShortBytes or
  /// less, and each longer one for good, so that no two drive each other out at every row.
  /// Errors: corrupt_record, store_unavailable, naming the sequence.
  Result<void> read(std::uint32_t index, std::uint64_t first, std::uint64_t count,
                    std::vector<float>& out, Scratch& scratch) const;

  /// One as an impulse response, transformed when it is asked for the first time. Up to
  /// kKeptRoomBytes are kept. Errors: also corrupt_record, where Room::create() refuses it.
  Result<std::shared_ptr<const Room>> room(std::uint32_t index, Scratch& scratch) const;

  static constexpr std::size_t kKeptRoomBytes = std::size_t{128} << 20;
  static constexpr std::size_t kKeptSoundBytes = std::size_t{128} << 20;
  static constexpr std::size_t kMostShortBytes = kKeptSoundBytes / 4;

 private:
  struct Member {
    std::shared_ptr<const Snapshot> snapshot;
    StoredSound sound;
    std::string name;
  };
  struct Place {
    std::uint32_t member = 0;
    std::uint32_t stored = 0;  ///< Samples.
    std::uint64_t ordinal = 0;
    RateRatio ratio;            ///< To the set's rate.
    std::uint64_t samples = 0;  ///< At that.

    std::size_t bytes() const { return samples * sizeof(float); }
  };

  using SharedSound = std::shared_ptr<const std::vector<float>>;
  /// What is kept of a set's members, by index: all or nothing where there would be too much.
  template <class Value>
  struct Kept {
    std::map<std::uint32_t, Value> values;
    std::size_t bytes = 0;

    void add(std::uint32_t index, Value value, std::size_t its_bytes, std::size_t most) {
      if (bytes + its_bytes > most) {
        values.clear();  // rows that are under way keep theirs
        bytes = 0;
      }
      // Another thread may have been as fast.
      if (values.emplace(index, std::move(value)).second) bytes += its_bytes;
    }
  };

  SoundSet() = default;
  Result<void> read_stored(const Place& place, std::uint64_t first, std::span<float> out,
                           Scratch& scratch) const;
  Result<SharedSound> whole(std::uint32_t index, Scratch& scratch) const;
  Result<void> add(const std::filesystem::path& dataset, Catalog& catalog);
  Result<void> check_length(const Member& member, const Place& place, std::uint32_t rate) const;
  void count_memory(const Member& member, const Place& place);
  /// Whether a sound is there only once all of it was decoded or resampled.
  bool is_made(const Member& member, const Place& place) const {
    return member.sound.is_encoded() || place.ratio != RateRatio{};
  }
  Result<void> hear(std::uint32_t first) const;

  Use use_;
  std::uint64_t scratch_bytes_ = 0;
  std::uint64_t short_bytes_ = 0;  // of all sounds that are made
  std::uint64_t long_bytes_ = 0;
  std::uint64_t room_bytes_ = 0;
  std::uint64_t content_ = 0;
  std::vector<Member> members_;
  std::vector<Place> places_;
  mutable Mutex mutex_;
  mutable Kept<std::shared_ptr<const Room>> rooms_ GUARDED_BY(mutex_);
  mutable Kept<SharedSound> sounds_ GUARDED_BY(mutex_);
  mutable Kept<SharedSound> long_sounds_ GUARDED_BY(mutex_);
};

}  // namespace batchwright
