#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <thread>

#include "formats/formats.h"
#include "storage/features/recipe/opened_recipe.h"

// How long a recipe's rows are, before anything is read.

namespace batchwright {

Result<std::uint32_t> common_rate(std::span<const std::uint32_t> rates) {
  const std::set<std::uint32_t> seen(rates.begin(), rates.end());
  if (seen.size() == 1) return *seen.begin();
  return Error{
      ErrorCode::bad_configuration,
      fmt::format("sample_rate: none, and sequences of {} and of {} Hz are stored; allowed: the "
                  "rate in Hz that all are resampled to",
                  seen.empty() ? 0 : *seen.begin(), seen.empty() ? 0 : *seen.rbegin())};
}

RowLengths Recipe::lengths_by(std::uint64_t stored, const RateRatio& ratio,
                              std::uint32_t keep_offset) const {
  RowLengths lengths;
  lengths.ratio = ratio;
  lengths.keep = {data_.settings.keep.of, keep_offset};
  lengths.samples = stored;
  if (sound_) lengths.samples = resampled_length(data_.settings.resampler, stored, ratio);
  lengths.frames = front_end_ ? front_end_->frames(lengths.samples) : lengths.samples;
  lengths.unperturbed = lengths.frames;
  lengths.row = lengths.frames;
  for (const RowStep* step : frame_steps_) {
    if (step->length == nullptr) continue;
    lengths.row = step->length(lengths.row, data_.settings, lengths.keep);
  }
  return lengths;
}

Result<RateRatio> Recipe::ratio_of(std::uint32_t rate, Speed speed) const {
  if (!sound_) return RateRatio{};
  const auto ratio = rate_ratio(rate, data_.rate, speed);
  if (!ratio) return Error{ErrorCode::bad_configuration, ratio.error().message};
  return *ratio;
}

Result<RowLengths> Recipe::measure(std::uint64_t stored, std::uint32_t rate,
                                   const DrawKey& key) const {
  const auto& speeds = data_.settings.speeds;
  // What decides lengths is the same for each row of a sequence: a plan has one length of it.
  DrawKey first = key;
  first.use = 0;
  const Speed speed =
      speeds.empty() ? Speed{} : speeds[draw_speed({first, DrawStage::speed}, speeds.size())];
  const std::uint32_t offset =
      data_.settings.keep_random
          ? draw_keep_offset({first, DrawStage::keep_one_of}, data_.settings.keep.of)
          : data_.settings.keep.offset;
  const auto ratio = ratio_of(rate, speed);
  if (!ratio) return ratio.error();
  RowLengths lengths = lengths_by(stored, *ratio, offset);
  lengths.speed = speed;
  if (speed == Speed{}) return lengths;
  const auto plain = ratio_of(rate, Speed{});
  if (!plain) return plain.error();
  lengths.unperturbed = lengths_by(stored, *plain, offset).frames;
  return lengths;
}

Result<std::vector<RateRatio>> Recipe::ratios_of(std::uint32_t rate) const {
  std::vector<RateRatio> ratios;
  for (const Speed speed :
       data_.settings.speeds.empty() ? std::vector{Speed{}} : data_.settings.speeds) {
    const auto ratio = ratio_of(rate, speed);
    if (!ratio) return ratio.error();
    ratios.push_back(*ratio);
  }
  return ratios;
}

Result<std::uint32_t> Recipe::row_by(std::uint64_t stored, const RateRatio& ratio,
                                     std::uint32_t keep_offset) const {
  const std::uint64_t row = lengths_by(stored, ratio, keep_offset).row;
  if (row <= std::numeric_limits<std::uint32_t>::max()) return static_cast<std::uint32_t>(row);
  return Error{ErrorCode::does_not_fit,
               fmt::format("a row of {} frames; allowed: less than 2^32", row)};
}

StepTable Recipe::row_table(std::span<const std::uint32_t> stored, std::uint32_t rate,
                            std::span<const RowChoice> choices) const {
  // What a cell costs, in rows that are measured one by one.
  constexpr std::size_t kCellCost = 8;
  if (stored.empty()) return {};
  const std::uint32_t longest = *std::max_element(stored.begin(), stored.end());
  const auto ratios = ratios_of(rate);
  if (!ratios || StepTable::cells(longest, choices.size()) > stored.size() / kCellCost) return {};
  return {longest, choices.size(), [&](std::uint64_t length, std::size_t choice) {
            const auto& [speed, keep_offset] = choices[choice];
            return lengths_by(length, (*ratios)[speed], keep_offset).row;
          }};
}

/// Rows [first, first + out.size()) of all_lengths(). `table` is row_table() of the first rate.
template <class Choose>
Result<void> Recipe::some_lengths(const Snapshot& of, std::span<const RowChoice> choices,
                                  const Choose& choose, const StepTable& table, std::size_t first,
                                  std::span<std::uint32_t> out) const {
  const auto stored = of.lengths();
  const auto rates =
      sound_ ? of.field_lengths(sound_->rate_field()) : std::span<const std::uint32_t>{};
  // Of the rate at hand: neighbours have the same, as a rule.
  std::vector<RateRatio> ratios;
  std::uint32_t known = 0;
  bool of_first_rate = true;
  for (std::size_t i = first; i < first + out.size(); ++i) {
    if (const std::uint32_t rate = rates.empty() ? known : rates[i];
        rate != known || ratios.empty()) {
      if (sound_ && data_.settings.sample_rate == 0 && rate != data_.rate)
        return common_rate(rates).error();
      auto of_rate = ratios_of(rate);
      if (!of_rate) {
        return Error{of_rate.error().code,
                     fmt::format("sequence {}: {}", i, of_rate.error().message)};
      }
      ratios = *std::move(of_rate);
      known = rate;
      of_first_rate = rates.empty() || rate == rates[0];
    }
    const std::size_t chosen = choose(i);
    const auto found = of_first_rate ? table.find(stored[i], chosen) : std::nullopt;
    if (found) {
      out[i - first] = *found;
      continue;
    }
    const auto row = row_by(stored[i], ratios[choices[chosen].speed], choices[chosen].keep_offset);
    if (!row) {
      return Error{row.error().code, fmt::format("sequence {}: {}", i, row.error().message)};
    }
    out[i - first] = *row;
  }
  return {};
}

/// `choose` says for an ordinal which of the choices it has.
template <class Choose>
Result<SharedLengths> Recipe::all_lengths(const Snapshot& of, std::span<const RowChoice> choices,
                                          const Choose& choose) const {
  // Of millions of sequences a part each, for a new epoch waits for this.
  constexpr std::size_t kLeastPart = std::size_t{1} << 19;
  constexpr std::size_t kMostThreads = 4;
  const std::size_t count = of.lengths().size();
  const std::size_t threads = std::clamp<std::size_t>(
      count / kLeastPart, 1,
      std::min<std::size_t>(kMostThreads, std::max(std::thread::hardware_concurrency(), 1U)));
  const auto rates =
      sound_ ? of.field_lengths(sound_->rate_field()) : std::span<const std::uint32_t>{};
  const StepTable table = row_table(of.lengths(), rates.empty() ? 0 : rates[0], choices);
  auto lengths = std::make_shared<std::vector<std::uint32_t>>(count);
  std::vector<Result<void>> done(threads);
  {
    const auto part = [&](std::size_t t) {
      const std::size_t begin = t * count / threads;
      const std::size_t end = (t + 1) * count / threads;
      // What a thread throws would end the process.
      done[t] = as_result(ErrorCode::internal, "", [&] {
        return some_lengths(of, choices, choose, table, begin,
                            std::span(*lengths).subspan(begin, end - begin));
      });
    };
    std::vector<std::optional<std::jthread>> others;  // end before what they use
    for (std::size_t t = 1; t < threads; ++t) {
      others.push_back(start_thread(nullptr, [&part, t](const auto&) { part(t); }));
      if (!others.back()) part(t);
    }
    part(0);
  }
  // The error of the first part that has one: the same for any number of threads.
  for (const Result<void>& each : done) {
    if (!each) return each.error();
  }
  return SharedLengths(std::move(lengths));
}

/// Each sound is looked at once, be it there at the opening or appended later. Records are compared
/// with the index when they are read, so that nothing longer is ever made room for.
Result<void> Recipe::check_seconds(const Snapshot& of) const {
  if (!sound_) return {};
  const auto lengths = of.lengths();
  const auto rates = of.field_lengths(sound_->rate_field());
  const MutexLock lock(kept_->mutex);
  for (std::uint64_t i = std::min<std::uint64_t>(kept_->checked_sounds, lengths.size());
       i < lengths.size(); ++i) {
    // A rate of 0 is refused by name elsewhere.
    if (rates[i] == 0 || lengths[i] <= std::uint64_t{data_.settings.max_seconds} * rates[i])
      continue;
    return Error{
        ErrorCode::bad_configuration,
        fmt::format("sequence {} has {:.1f} s of sound; allowed: up to max_seconds = {}", i,
                    static_cast<double>(lengths[i]) / rates[i], data_.settings.max_seconds)};
  }
  kept_->checked_sounds = lengths.size();
  return {};
}

std::uint64_t Recipe::thread_bytes(const Snapshot& of) const {
  if (!sound_) return 0;
  const auto lengths = of.lengths();
  const auto rates = of.field_lengths(sound_->rate_field());
  std::map<std::uint32_t, std::uint64_t> longest;  // by rate
  std::uint64_t* most_of_rate = nullptr;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    // Neighbours have the same rate, as a rule.
    if (i == 0 || rates[i] != rates[i - 1]) most_of_rate = &longest[rates[i]];
    *most_of_rate = std::max<std::uint64_t>(*most_of_rate, lengths[i]);
  }
  std::uint64_t stored = 0;
  std::uint64_t resampled = 0;
  for (const auto& [rate, most] : longest) {
    stored = std::max(stored, most);
    const auto ratios = ratios_of(rate);
    for (const RateRatio& ratio : ratios ? *ratios : std::vector<RateRatio>{}) {
      resampled = std::max(resampled, lengths_by(most, ratio, 0).samples);
    }
  }
  std::uint64_t bytes = (stored + resampled) * sizeof(float);
  if (sound_->is_encoded()) {
    const auto files = of.field_lengths(sound_->payload_field());
    bytes += kDecoderBytes + (files.empty() ? 0 : *std::max_element(files.begin(), files.end()));
  }
  std::uint64_t scratch = 0;
  bool has_noise = false;
  for (const StepData::Sources& sources : data_.sources) {
    has_noise = has_noise || sources.noise;
    for (const auto* set : {sources.noise.get(), sources.rooms.get()}) {
      if (set != nullptr) scratch = std::max(scratch, set->scratch_bytes());
    }
  }
  return bytes + scratch + (has_noise ? resampled * sizeof(float) : 0);
}

std::uint64_t Recipe::kept_bytes() const {
  std::set<const SoundSet*> sets;  // styles share them
  for (const StepData::Sources& sources : data_.sources) {
    sets.insert({sources.noise.get(), sources.rooms.get()});
  }
  std::uint64_t bytes = 0;
  for (const SoundSet* set : sets) bytes += set == nullptr ? 0 : set->kept_bytes();
  return bytes;
}

Result<SharedLengths> Recipe::lengths(const Snapshot& of, Epoch epoch) const {
  if (auto fits = check_seconds(of); !fits) return fits.error();
  const bool same = data_.settings.speeds.size() <= 1 && !data_.settings.keep_random;
  if (same) {
    const MutexLock lock(kept_->mutex);
    const auto kept = kept_->lengths.lock();
    if (kept && kept_->content == of.content()) return kept;
  }
  const std::size_t speeds = std::max<std::size_t>(data_.settings.speeds.size(), 1);
  const std::uint32_t offsets = data_.settings.keep_random ? data_.settings.keep.of : 1;
  std::vector<RowChoice> choices;
  for (std::size_t k = 0; k < speeds; ++k) {
    for (std::uint32_t n = 0; n < offsets; ++n) {
      choices.push_back({k, data_.settings.keep_random ? n : data_.settings.keep.offset});
    }
  }
  const auto keys = draw_keys(of, epoch);
  if (!keys) return keys.error();
  const StageDraws speed_draws(*keys, DrawStage::speed);
  const StageDraws offset_draws(*keys, DrawStage::keep_one_of);
  auto lengths = all_lengths(of, choices, [&](std::uint64_t ordinal) {
    const std::size_t speed = speeds > 1 ? draw_speed(speed_draws.of(ordinal), speeds) : 0;
    return speed * offsets +
           (offsets > 1 ? draw_keep_offset(offset_draws.of(ordinal), offsets) : 0);
  });
  if (!lengths || !same) return lengths;
  const MutexLock lock(kept_->mutex);
  kept_->content = of.content();
  kept_->lengths = *lengths;
  return lengths;
}

Result<std::uint32_t> Recipe::length(const Snapshot& of, Ordinal ordinal,
                                     const DrawKey& key) const {
  const std::uint32_t rate = sound_ ? of.field_lengths(sound_->rate_field())[ordinal.value] : 0;
  const auto lengths = measure(of.lengths()[ordinal.value], rate, key);
  if (!lengths) return lengths.error();
  return static_cast<std::uint32_t>(lengths->row);  // planned before, and so less than 2^32
}

Result<DrawKeys> Recipe::draw_keys(const Snapshot& of, Epoch epoch) const {
  if (data_.settings.draws == 1 || !draws_anything(data_.settings)) return DrawKeys(seed_, epoch);
  const MutexLock lock(kept_->mutex);
  std::vector<DrawKeys::Shard> shards;
  std::uint64_t first = 0;
  const auto counts = of.shard_sequences();
  kept_->identities.resize(counts.size());
  for (std::size_t shard = 0; shard < counts.size(); first += counts[shard++]) {
    if (counts[shard] == 0) continue;
    std::optional<std::uint64_t>& known = kept_->identities[shard];
    if (!known) {
      const auto identity = shard_identity(of, Ordinal{first});
      if (!identity) {
        return Error{identity.error().code,
                     fmt::format("what is drawn depends on sequence {}, the first of its dataset: "
                                 "{}",
                                 first, identity.error().message)};
      }
      known = *identity;
    }
    shards.push_back({first, known});
  }
  if (shards.empty()) return DrawKeys(seed_, epoch);
  return DrawKeys(seed_, epoch, std::move(shards));
}

Result<std::vector<SharedLengths>> Recipe::possible_lengths(const Snapshot& of) const {
  // Of a random offset the first gives the longest rows and the last the shortest: at most a frame
  // lies between them.
  std::vector<std::uint32_t> offsets{data_.settings.keep_random ? 0 : data_.settings.keep.offset};
  if (data_.settings.keep_random) offsets.push_back(data_.settings.keep.of - 1);
  std::vector<SharedLengths> all;
  for (std::size_t k = 0; k < std::max<std::size_t>(data_.settings.speeds.size(), 1); ++k) {
    for (const std::uint32_t offset : offsets) {
      const RowChoice choice{k, offset};
      auto lengths = all_lengths(of, {&choice, 1}, [](std::uint64_t) { return std::size_t{0}; });
      if (!lengths) return lengths.error();
      all.push_back(*std::move(lengths));
    }
  }
  return all;
}

std::uint64_t Recipe::real_frames(std::uint64_t start, std::uint64_t count) const {
  const std::uint64_t ignored = data_.settings.delay.frames;
  return count - std::min(count, ignored - std::min(ignored, start));
}

}  // namespace batchwright
