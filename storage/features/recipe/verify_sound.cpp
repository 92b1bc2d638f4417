#include "storage/features/recipe/verify_sound.h"

#include <algorithm>
#include <optional>
#include <string>
#include <thread>

#include "formats/formats.h"
#include "storage/features/recipe/sources/stored_sound.h"

namespace batchwright {
namespace {

/// What several threads share.
class SoundCheck {
 public:
  SoundCheck(const Snapshot& of, const StoredSound& sound, const VerifyProgress& progress)
      : of_(of), sound_(sound), progress_(progress) {}

  /// Takes sequences until there are none. One thread tells of the progress.
  void work(bool tells) {
    std::vector<std::byte> bytes;
    for (;;) {
      std::uint64_t ordinal = 0;
      {
        const MutexLock lock(mutex_);
        if (next_ == of_.sequences()) return;
        ordinal = next_++;
      }
      if (tells && progress_) progress_(ordinal, of_.sequences());
      if (auto bad = look_at(Ordinal{ordinal}, bytes)) {
        const MutexLock lock(mutex_);
        broken_.push_back(*std::move(bad));
      }
    }
  }

  std::vector<BrokenRecord> result() {
    const MutexLock lock(mutex_);
    std::sort(broken_.begin(), broken_.end(),
              [](const BrokenRecord& a, const BrokenRecord& b) { return a.ordinal < b.ordinal; });
    return std::move(broken_);
  }

 private:
  std::optional<BrokenRecord> look_at(Ordinal ordinal, std::vector<std::byte>& bytes) const {
    const auto record = of_.record(ordinal);
    // A record that cannot be read is verify_dataset()'s to name.
    if (!record) return std::nullopt;
    std::vector<FieldValue> values(of_.schema().fields.size());
    if (!fields_from_map(*record, values)) return std::nullopt;
    const auto read = sound_.read(values, 0, {}, bytes);
    if (read) return std::nullopt;
    std::string key(record->key().size(), ' ');
    const auto copied = copy_from_map(std::as_writable_bytes(std::span(key)),
                                      std::as_bytes(std::span(record->key())));
    return BrokenRecord{{}, ordinal, copied ? printable(std::move(key)) : "", read.error().message};
  }

  const Snapshot& of_;
  const StoredSound& sound_;
  const VerifyProgress& progress_;
  Mutex mutex_;
  std::uint64_t next_ GUARDED_BY(mutex_) = 0;
  std::vector<BrokenRecord> broken_ GUARDED_BY(mutex_);
};

}  // namespace

Result<std::vector<BrokenRecord>> verify_sound(const std::filesystem::path& dataset,
                                               unsigned threads, const VerifyProgress& progress) {
  Catalog catalog;
  const auto opened = catalog.open({dataset}, VerifyRecords::once, Locking::permitted);
  if (!opened) return opened.error();
  const auto snapshot = (*opened)->snapshot();
  if (!snapshot) return snapshot.error();
  const auto sound = StoredSound::of((*snapshot)->schema());
  if (!sound || !sound->is_encoded()) return std::vector<BrokenRecord>();
  if (auto there = sound->check_decodable(); !there) return there.error();
  SoundCheck check(**snapshot, *sound, progress);
  {
    std::vector<std::optional<std::jthread>> helpers;
    for (unsigned i = 1; i < threads; ++i) {
      helpers.push_back(start_thread(nullptr, [&check](const auto&) { check.work(false); }));
    }
    check.work(true);
  }
  // The helpers may have taken all sequences before this thread took one.
  if (progress) progress((*snapshot)->sequences(), (*snapshot)->sequences());
  return check.result();
}

}  // namespace batchwright
