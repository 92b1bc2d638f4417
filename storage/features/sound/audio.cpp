#include "storage/features/sound/audio.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "storage/features/sound/decoder.h"

namespace batchwright {
namespace {

constexpr std::string_view kNoSamples = "no samples: the file has a header only";

Error bad_file(std::string_view name, std::string_view why) {
  return {ErrorCode::invalid_argument, fmt::format("{}: {}", name, why)};
}

/// The channels whose mean is taken.
struct TakenChannels {
  std::size_t first = 0;
  std::size_t count = 1;
};

/// Errors: invalid_argument, without the file's name.
Result<TakenChannels> taken_channels(std::size_t channels, ChannelChoice choice,
                                     std::uint32_t number) {
  if (number > channels) return bad_container(fmt::format("the file has {} channels", channels));
  if (number > 0) return TakenChannels{number - 1, 1};
  switch (choice) {
    case ChannelChoice::only:
      if (channels == 1) break;
      return bad_container(
          fmt::format("{} channels; allowed: --channel first, mix or each", channels));
    case ChannelChoice::first: break;
    case ChannelChoice::mix: return TakenChannels{0, channels};
    case ChannelChoice::each:
      return bad_container("each channel is a sound of its own, and none is named");
  }
  return TakenChannels{};
}

/// Replaces `samples` with one channel out of `block`, whose channels alternate.
void take_channel(std::span<const float> block, std::size_t channels, const TakenChannels& taken,
                  std::vector<float>& samples) {
  samples.clear();
  for (std::size_t frame = 0; frame < block.size(); frame += channels) {
    float sum = 0;
    for (std::size_t c = 0; c < taken.count; ++c) sum += block[frame + taken.first + c];
    samples.push_back(sum / static_cast<float>(taken.count));
  }
}

/// The samples that are wanted of those that a decoder gives.
struct Wanted {
  static constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t passed_over = 0;
  std::uint64_t count = kAll;

  /// The wanted ones of the next.
  std::span<const float> of(std::span<const float> samples) {
    const std::size_t over = std::min<std::uint64_t>(passed_over, samples.size());
    const std::size_t taken = std::min<std::uint64_t>(count, samples.size() - over);
    passed_over -= over;
    if (count != kAll) count -= taken;
    return samples.subspan(over, taken);
  }
};

/// What was seen while a file was decoded.
struct Decoded {
  std::uint64_t samples = 0;
  std::optional<std::string> odd;  ///< A sample that is no number.
  double first_energy = 0;         ///< Of the first channel, where the mean of all is taken,
  double mean_energy = 0;          ///< and of the mean.

  bool cancelled() const {
    constexpr double kNextToNothing = 1e-4;  // 40 dB less
    return first_energy > 0 && mean_energy < kNextToNothing * first_energy;
  }
};

void add_energies(std::span<const float> block, std::size_t channels, std::span<const float> mean,
                  Decoded& seen) {
  for (std::size_t i = 0; i < mean.size(); ++i) {
    const auto first = static_cast<double>(block[i * channels]);
    const auto mixed = static_cast<double>(mean[i]);
    seen.first_energy += first * first;
    seen.mean_energy += mixed * mixed;
  }
}

/// Bit 31 is set by an exponent of ones alone, which NaN and infinity have. Without a way out of
/// the loop, so that it is done for several at once.
bool all_finite(std::span<const float> samples) {
  constexpr std::uint32_t kExponent = 0x7f800000;
  constexpr std::uint32_t kOne = 0x00800000;  // of an exponent
  std::uint32_t seen = 0;
  for (const float sample : samples)
    seen |= (std::bit_cast<std::uint32_t>(sample) & kExponent) + kOne;
  return seen >> 31 == 0;
}

/// Decodes what is wanted, and goes on to the end only where all is.
Decoded decode_wanted(SoundDecoder& decoder, const TakenChannels& taken, const TakeSamples& take,
                      Wanted wanted) {
  const std::size_t channels = decoder.format().channels;
  std::vector<float> chosen;
  Decoded seen;
  std::span<const float> samples;
  while (wanted.count > 0 && !(samples = decoder.next()).empty()) {
    if (channels > 1) {
      take_channel(samples, channels, taken, chosen);
      if (taken.count > 1) add_energies(samples, channels, chosen, seen);
      samples = chosen;
    }
    samples = wanted.of(samples);
    // WAV may hold floats; one NaN makes a whole batch's loss NaN.
    if (!all_finite(samples) && !seen.odd) {
      const auto odd = std::find_if_not(samples.begin(), samples.end(),
                                        [](float sample) { return std::isfinite(sample); });
      const auto at = seen.samples + static_cast<std::uint64_t>(odd - samples.begin());
      seen.odd = fmt::format("sample {} is {}, not a number", at, *odd);
    }
    seen.samples += samples.size();
    take(samples);
  }
  return seen;
}

/// Samples of a channel at the rate of the sound; nothing where decoding alone tells.
std::optional<std::uint64_t> samples_of(const SoundContainer& sound, std::uint32_t rate) {
  if (!sound.samples || sound.clock == 0) return sound.samples;
  return *sound.samples * rate / sound.clock;
}

/// The file's reason to be refused once all that was there is decoded. Errors: none of it.
std::optional<std::string> complaint(const SoundContainer& sound, const SoundDecoder& decoder,
                                     const Decoded& seen) {
  if (const auto trouble = decoder.trouble()) {
    return fmt::format("damaged or truncated after {} samples: {}", seen.samples, *trouble);
  }
  const auto wanted = samples_of(sound, decoder.format().sample_rate);
  // Of another clock the last sample may be half there.
  const std::uint64_t rounding = sound.clock > 0 ? 1 : 0;
  if (wanted && seen.samples + rounding < *wanted) {
    return fmt::format("truncated: its header promises {} samples, the file has {}", *wanted,
                       seen.samples);
  }
  if (wanted && seen.samples > *wanted + rounding) {
    return fmt::format("its header promises {} samples, the file has {}", *wanted, seen.samples);
  }
  if (seen.samples == 0) return std::string(kNoSamples);
  return seen.odd;
}

/// The sample next to a time.
std::uint64_t sample_at(double seconds, std::uint32_t rate) {
  constexpr double kFarthest = 4e18;  // of what 64 bits with a sign hold
  return static_cast<std::uint64_t>(std::min(std::round(seconds * rate), kFarthest));
}

/// Goes to a sample, or near before it; returns how many have to be passed over, or nothing when
/// the file cannot even be read from its start.
std::optional<std::uint64_t> go_near(SoundDecoder& decoder, std::uint64_t sample) {
  // Within a second, decoders of Vorbis and MP3 give what they give from the start.
  const std::uint64_t before = decoder.format().sample_rate;
  if (sample <= before) return sample;
  if (decoder.seek(sample - before)) return before;
  if (!decoder.seek(0)) return std::nullopt;
  return sample;
}

/// What is to be decoded of a file, and the sound as it was seen then.
struct SoundCall {
  const SoundContainer& sound;
  SoundDecoder& decoder;
  TakenChannels channels;
  const TakeSamples& take;
  std::uint64_t most;
};

/// Errors: as SoundFile::decode(), without the file's name.
Result<Decoded> decode_part(const SoundCall& call, const SoundPart& part) {
  const std::uint32_t rate = call.decoder.format().sample_rate;
  const auto bad = [&](const std::string& why) {
    return bad_container(fmt::format("segment from {} to {} s: {}", part.begin, part.end, why));
  };
  const std::uint64_t first = sample_at(part.begin, rate);
  const auto there = samples_of(call.sound, rate);
  if (there && first >= *there) {
    return bad(
        fmt::format("it begins after the end, at {:.3f} s", static_cast<double>(*there) / rate));
  }
  const bool to_the_end = std::isinf(part.end);
  const std::uint64_t count = to_the_end ? Wanted::kAll : sample_at(part.end, rate) - first;
  if (count == 0) return bad("no sample lies in it");
  const auto passed_over = go_near(call.decoder, first);
  if (!passed_over) return bad("the file can be read from its start only, and once");
  // What the container has to give of it, and one more, to see that it is too long.
  const std::uint64_t wanted = there ? std::min(count, *there - first) : count;
  const Decoded seen = decode_wanted(call.decoder, call.channels, call.take,
                                     {*passed_over, std::min(wanted, call.most + 1)});
  if (const auto trouble = call.decoder.trouble()) {
    return bad(fmt::format("damaged or truncated: {}", *trouble));
  }
  if (seen.samples > call.most) return seen;
  if (there && seen.samples + (call.sound.clock > 0 ? 1 : 0) < wanted) {
    return bad(
        fmt::format("damaged or truncated: {} of its {} samples are there", seen.samples, wanted));
  }
  const double missing = static_cast<double>(count - seen.samples) / rate;
  if (!to_the_end && missing > SoundPart::kOvershoot) {
    return bad(fmt::format("it ends {:.3f} s after the sound's end; allowed: up to {}", missing,
                           SoundPart::kOvershoot));
  }
  if (seen.samples == 0) return bad("it begins after the end");
  if (seen.odd) return bad(*seen.odd);
  return seen;
}

/// Errors: as SoundFile::decode(), without the file's name.
Result<Decoded> decode_whole(const SoundCall& call) {
  const SoundContainer& sound = call.sound;
  // What fills the last block is not wanted; without it, all is, and what is too much seen.
  const bool is_filled = sound.filling > 0 && sound.samples;
  const std::uint64_t wanted = is_filled ? *sound.samples : Wanted::kAll;
  const Decoded seen =
      decode_wanted(call.decoder, call.channels, call.take, {0, std::min(wanted, call.most + 1)});
  if (seen.samples > call.most) return seen;
  if (const auto reason = complaint(sound, call.decoder, seen)) return bad_container(*reason);
  return seen;
}

Result<Decoded> decode_any(const SoundCall& call, const SoundPart& part) {
  auto seen = part.whole() ? decode_whole(call) : decode_part(call, part);
  if (const auto failed = call.sound.bytes.disk_error()) return bad_container(*failed);
  return seen;
}

/// How many samples of a rate may be taken.
std::uint64_t most_samples(const MostSound& most, std::uint32_t rate) {
  const double by_time = std::floor(most.seconds * rate);
  const auto samples = static_cast<double>(most.samples);
  return by_time < samples ? static_cast<std::uint64_t>(by_time) : most.samples;
}

/// `samples`: how many there are; nothing where it is not known.
std::string too_long(const MostSound& most, std::uint32_t rate,
                     std::optional<std::uint64_t> samples) {
  const bool by_time = most_samples(most, rate) < most.samples;
  std::string bound = by_time ? fmt::format("{} s that are taken (--max-seconds)", most.seconds)
                              : fmt::format("{} samples that are taken", most.samples);
  const double seconds = static_cast<double>(samples.value_or(0)) / rate;
  return fmt::format("longer than the {}{}; a table of segments cuts it (--segments)", bound,
                     samples ? fmt::format(": {:.1f} s", seconds) : "");
}

}  // namespace

Result<SoundFile> SoundFile::open(const std::filesystem::path& path) {
  const auto bytes = SoundBytes::open(path);
  if (!bytes) return bad_file(path.string(), bytes.error().message);
  auto container = look_at_sound(*bytes);
  if (!container) return bad_file(path.string(), container.error().message);
  return SoundFile(path.string(), std::make_shared<const SoundContainer>(*std::move(container)));
}

Result<SoundFile> SoundFile::in_memory(std::span<const std::byte> bytes, std::string name) {
  auto container = look_at_sound(SoundBytes::in_memory(bytes));
  if (!container) return bad_file(name, container.error().message);
  return SoundFile(std::move(name), std::make_shared<const SoundContainer>(*std::move(container)));
}

std::uint64_t SoundFile::expected_samples(const SoundPart& part) const {
  const auto decoder = open_decoder(*container_);
  if (!decoder) return 0;
  const std::uint32_t rate = (*decoder)->format().sample_rate;
  const std::uint64_t of_frame = rate >= 32'000 ? 1152 : 576;
  const std::uint64_t most =
      container_->is_mp3 ? container_->frames * of_frame : container_->bytes.size();
  const auto all = static_cast<double>(samples_of(*container_, rate).value_or(most));
  const double begin = std::min(part.begin * rate, all);
  const double end = std::min(part.end * rate, all);
  return static_cast<std::uint64_t>(end - begin);
}

Result<AudioExtent> SoundFile::decode(ChannelChoice channels, const TakeSamples& take,
                                      const SoundPart& part, const MostSound& most) const {
  const auto bad = [&](const std::string& why) {
    return bad_file(name_,
                    part.channel > 0 ? fmt::format("channel {}: {}", part.channel, why) : why);
  };
  const auto decoder = open_decoder(*container_);
  if (!decoder) return bad_file(name_, decoder.error().message);
  const SoundDecoder::Format& format = (*decoder)->format();
  const auto taken = taken_channels(format.channels, channels, part.channel);
  if (!taken) return bad(taken.error().message);
  const std::uint64_t bound = most_samples(most, format.sample_rate);
  const auto known = part.whole() ? samples_of(*container_, format.sample_rate) : std::nullopt;
  if (known && *known > bound) return bad(too_long(most, format.sample_rate, known));
  const auto seen = decode_any({*container_, **decoder, *taken, take, bound}, part);
  if (!seen) return bad(seen.error().message);
  if (seen->samples > bound) return bad(too_long(most, format.sample_rate, {}));
  const bool lacks_begin = sample_at(part.begin, format.sample_rate) < container_->lacking_samples;
  return AudioExtent{format.sample_rate, seen->samples, format.wide, seen->cancelled(),
                     lacks_begin};
}

Result<AudioHeader> read_audio_header(const std::filesystem::path& path) {
  const auto bytes = SoundBytes::open(path);
  if (!bytes) return bad_file(path.string(), bytes.error().message);
  const auto container = look_at_header(*bytes);
  if (!container) return bad_file(path.string(), container.error().message);
  const auto decoder = open_decoder(*container);
  if (!decoder) return bad_file(path.string(), decoder.error().message);
  const SoundDecoder::Format& format = (*decoder)->format();
  return AudioHeader{format.sample_rate, static_cast<std::uint32_t>(format.channels), format.wide};
}

Result<AudioExtent> decode_audio(const std::filesystem::path& path, ChannelChoice channels,
                                 const TakeSamples& take, const SoundPart& part,
                                 const MostSound& most) {
  const auto file = SoundFile::open(path);
  if (!file) return file.error();
  return file->decode(channels, take, part, most);
}

Result<AudioExtent> decode_bytes(std::span<const std::byte> file, ChannelChoice channels,
                                 const TakeSamples& take, std::uint64_t most) {
  const auto bad = [](const Error& error) {
    return Error{ErrorCode::corrupt_record,
                 fmt::format("encoded sound: {}; ingest it again", error.message)};
  };
  const auto container = look_at_sound(SoundBytes::in_memory(file));
  if (!container) return bad(container.error());
  const auto decoder = open_decoder(*container);
  if (!decoder) return bad(decoder.error());
  const SoundDecoder::Format& format = (*decoder)->format();
  const auto choice = channels == ChannelChoice::only ? ChannelChoice::first : channels;
  const auto taken = taken_channels(format.channels, choice, 0);
  if (!taken) return bad(taken.error());
  const auto seen = decode_any({*container, **decoder, *taken, take, most}, {});
  if (!seen) return bad(seen.error());
  return AudioExtent{format.sample_rate, seen->samples, format.wide, seen->cancelled(),
                     container->lacking_samples > 0};
}

Result<Audio> read_audio(const std::filesystem::path& path, ChannelChoice channels,
                         const SoundPart& part) {
  const auto file = SoundFile::open(path);
  if (!file) return file.error();
  return read_audio(*file, channels, part, {kMostInMemory});
}

Result<Audio> read_audio(const SoundFile& file, ChannelChoice channels, const SoundPart& part,
                         const MostSound& most) {
  // A vector that grows has all samples twice for a moment. The kernel gives memory when it is
  // written to.
  constexpr std::uint64_t kMostReserved = std::uint64_t{1} << 28;
  Audio audio;
  audio.samples.reserve(std::min({file.expected_samples(part), kMostReserved, most.samples}));
  const auto append = [&audio](std::span<const float> samples) {
    audio.samples.insert(audio.samples.end(), samples.begin(), samples.end());
  };
  const auto extent = file.decode(channels, append, part, most);
  if (!extent) return extent.error();
  audio.sample_rate = extent->sample_rate;
  audio.cancelled = extent->cancelled;
  audio.lacks_begin = extent->lacks_begin;
  return audio;
}

}  // namespace batchwright
