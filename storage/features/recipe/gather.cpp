#include "storage/features/recipe/gather.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include "formats/formats.h"
#include "storage/features/recipe/row_maker.h"
#include "storage/features/recipe/sources/speakers.h"

namespace batchwright {
namespace {

/// Sequences that are summed by one thread; the sums of blocks are added in their order, so that
/// threads make no difference.
constexpr std::uint64_t kBlock = 64;

/// What several threads share.
class Gathering {
 public:
  Gathering(const Recipe& recipe, const Snapshot& of, std::optional<SpeakerField> speaker,
            const GatherProgress& progress)
      : recipe_(recipe), of_(of), speaker_(speaker), progress_(progress) {
    statistics_.made_by = recipe.made_by();
    statistics_.all = CmvnSums(recipe.dimensions());
  }

  /// Takes blocks until there are none, or one has failed.
  void work() {
    RowMaker maker;
    for (;;) {
      std::uint64_t block = 0;
      {
        const MutexLock lock(mutex_);
        if (failure_ || next_ * kBlock >= of_.sequences()) return;
        block = next_++;
      }
      // What a helper throws, for lack of memory, would end the process.
      auto sums = as_result(ErrorCode::busy, "", [&] { return sum_block(block, maker); });
      const MutexLock lock(mutex_);
      if (!sums) {
        // The first in the dataset, whichever thread comes first.
        if (!failure_ || block < failed_block_) {
          failure_ = sums.error();
          failed_block_ = block;
        }
        return;
      }
      waiting_.emplace(block, *std::move(sums));
      add_waiting();
    }
  }

  Result<CmvnStatistics> result() {
    const MutexLock lock(mutex_);
    if (failure_) return *failure_;
    if (statistics_.all.frames == 0) {
      return Error{ErrorCode::infeasible, "no sequence has a frame"};
    }
    return std::move(statistics_);
  }

 private:
  Result<CmvnStatistics> sum_block(std::uint64_t block, RowMaker& maker) const {
    CmvnStatistics sums;
    sums.all = CmvnSums(recipe_.dimensions());
    const std::uint64_t end = std::min((block + 1) * kBlock, of_.sequences());
    for (std::uint64_t ordinal = block * kBlock; ordinal < end; ++ordinal) {
      if (auto added = add_sequence(Ordinal{ordinal}, maker, sums); !added) {
        return Error{added.error().code,
                     fmt::format("sequence {}: {}", ordinal, added.error().message)};
      }
    }
    return sums;
  }

  Result<void> add_sequence(Ordinal ordinal, RowMaker& maker, CmvnStatistics& sums) const {
    const auto record = of_.record(ordinal);
    if (!record) return record.error();
    std::vector<FieldValue> values(of_.schema().fields.size());
    if (auto read = fields_from_map(*record, values); !read) return read;
    std::vector<MadeField> row;
    if (auto made = maker.make(recipe_, DrawKey{}, values, row); !made) return made;
    const std::vector<std::byte>& bytes = row[recipe_.schema().primary()].bytes;
    std::vector<float> frames(bytes.size() / sizeof(float));
    if (!bytes.empty()) std::memcpy(frames.data(), bytes.data(), bytes.size());
    sums.all.add(frames);
    if (!speaker_) return {};
    const auto name = speaker_name(*speaker_, values);
    if (!name) return name.error();
    sums.speakers.emplace(*name, CmvnSums(recipe_.dimensions())).first->second.add(frames);
    return {};
  }

  void add_waiting() REQUIRES(mutex_) {
    while (!waiting_.empty() && waiting_.begin()->first == added_) {
      const CmvnStatistics& sums = waiting_.begin()->second;
      statistics_.all.add(sums.all);
      for (const auto& [name, of_speaker] : sums.speakers) {
        const auto place = statistics_.speakers.emplace(name, CmvnSums(recipe_.dimensions())).first;
        place->second.add(of_speaker);
      }
      waiting_.erase(waiting_.begin());
      ++added_;
    }
    if (progress_) progress_(std::min(added_ * kBlock, of_.sequences()), of_.sequences());
  }

  const Recipe& recipe_;
  const Snapshot& of_;
  const std::optional<SpeakerField> speaker_;
  const GatherProgress& progress_;
  Mutex mutex_;
  std::uint64_t next_ GUARDED_BY(mutex_) = 0;
  std::uint64_t added_ GUARDED_BY(mutex_) = 0;  // blocks that are in the sums
  /// Blocks after one that is not done.
  std::map<std::uint64_t, CmvnStatistics> waiting_ GUARDED_BY(mutex_);
  CmvnStatistics statistics_ GUARDED_BY(mutex_);
  std::optional<Error> failure_ GUARDED_BY(mutex_);
  std::uint64_t failed_block_ GUARDED_BY(mutex_) = 0;
};

}  // namespace

RecipeSettings without_draws(const RecipeSettings& settings) {
  RecipeSettings plain;
  plain.sample_rate = settings.sample_rate;
  plain.resampler = settings.resampler;
  plain.like = settings.like;
  plain.features = settings.features;
  plain.options = settings.options;
  plain.field = settings.field;
  plain.dc_offset_removed = settings.dc_offset_removed;
  plain.max_seconds = settings.max_seconds;
  return plain;
}

Result<CmvnStatistics> gather_statistics(const Recipe& recipe, const Snapshot& of,
                                         const std::string& speaker, unsigned threads,
                                         const GatherProgress& progress) {
  std::optional<SpeakerField> field;
  if (!speaker.empty()) {
    const auto found = find_speaker(of.schema(), speaker);
    if (!found) return found.error();
    field = *found;
  }
  if (recipe.makes_sound()) {
    return Error{ErrorCode::bad_configuration,
                 "statistics are of features, and rows of this recipe are sound; allowed: like = a "
                 "convention"};
  }
  Gathering gathering(recipe, of, field, progress);
  {
    std::vector<std::optional<std::jthread>> helpers;
    for (unsigned i = 1; i < threads; ++i) {
      helpers.push_back(start_thread(nullptr, [&gathering](const auto&) { gathering.work(); }));
    }
    gathering.work();
  }
  return gathering.result();
}

}  // namespace batchwright
