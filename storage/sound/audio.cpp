#include "storage/sound/audio.h"

#include <fmt/core.h>
#include <sndfile.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/sound/file_end.h"

namespace batchwright {
namespace {

struct CloseSound {
  void operator()(SNDFILE* sound) const noexcept { sf_close(sound); }
};
using Sound = std::unique_ptr<SNDFILE, CloseSound>;

/// Frames read at once of up to eight channels, and samples of more. Memory grows with what is
/// there, not with what a header promises, and a block stays in the cache.
constexpr std::size_t kBlockFrames = std::size_t{1} << 13;
constexpr std::size_t kBlockSamples = kBlockFrames * 8;

constexpr std::string_view kNoSamples = "no samples: the file has a header only";

Error bad_file(const std::filesystem::path& path, std::string_view why) {
  return {ErrorCode::invalid_argument, fmt::format("{}: {}", path.string(), why)};
}

/// libsndfile's account of the header it has read.
std::string header_log(SNDFILE* sound) {
  std::array<char, 4096> text{};
  sf_command(sound, SFC_GET_LOG_INFO, text.data(), static_cast<int>(text.size()));
  return text.data();
}

/// How many samples the header promises; nothing when it does not say.
std::optional<std::uint64_t> promised_samples(const SF_INFO& info) {
  if (info.frames == SF_COUNT_MAX) return std::nullopt;  // FLAC that was written to a pipe
  return static_cast<std::uint64_t>(info.frames);
}

/// Replaces `samples` with one channel out of `block`, whose channels alternate.
void take_channel(std::span<const float> block, std::size_t channels, ChannelChoice choice,
                  std::vector<float>& samples) {
  samples.clear();
  const std::size_t used = choice == ChannelChoice::mix ? channels : 1;
  for (std::size_t frame = 0; frame < block.size(); frame += channels) {
    float sum = 0;
    for (std::size_t c = 0; c < used; ++c) sum += block[frame + c];
    samples.push_back(sum / static_cast<float>(used));
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
};

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

/// Reads a file's samples block by block, as libsndfile scales them. Those of 16 bits are scaled
/// here, several at once.
class BlockReader {
 public:
  BlockReader(SNDFILE* sound, const SF_INFO& info)
      : sound_(sound),
        channels_(static_cast<std::size_t>(info.channels)),
        block_(std::min(kBlockFrames, kBlockSamples / channels_) * channels_),
        words_((info.format & SF_FORMAT_SUBMASK) == SF_FORMAT_PCM_16 ? block_.size() : 0) {}

  /// Of all channels; empty at the end. Until the next call.
  std::span<const float> next() {
    const auto most = static_cast<sf_count_t>(block_.size() / channels_);
    const sf_count_t frames = words_.empty() ? sf_readf_float(sound_, block_.data(), most)
                                             : sf_readf_short(sound_, words_.data(), most);
    const std::size_t count = static_cast<std::size_t>(std::max<sf_count_t>(frames, 0)) * channels_;
    constexpr float kScale = 1.0F / 32768;
    for (std::size_t i = 0; i < std::min(count, words_.size()); ++i) {
      block_[i] = static_cast<float>(words_[i]) * kScale;
    }
    return std::span(block_).first(count);
  }

 private:
  SNDFILE* sound_;
  std::size_t channels_;
  std::vector<float> block_;
  std::vector<std::int16_t> words_;
};

Decoded decode(SNDFILE* sound, const SF_INFO& info, ChannelChoice choice, const TakeSamples& take,
               Wanted wanted = {}) {
  const auto channels = static_cast<std::size_t>(info.channels);
  BlockReader reader(sound, info);
  std::vector<float> chosen;
  Decoded seen;
  std::span<const float> samples;
  while (wanted.count > 0 && !(samples = reader.next()).empty()) {
    if (channels > 1) {
      take_channel(samples, channels, choice, chosen);
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

/// Whether its samples have more than 16 bits. What is decoded from fewer bits than that, such as
/// Vorbis or MP3, has no more to tell.
bool is_wide(const SF_INFO& info) {
  constexpr std::array kWide = {SF_FORMAT_PCM_24,  SF_FORMAT_PCM_32,  SF_FORMAT_FLOAT,
                                SF_FORMAT_DOUBLE,  SF_FORMAT_ALAC_20, SF_FORMAT_ALAC_24,
                                SF_FORMAT_ALAC_32, SF_FORMAT_DWVW_24};
  return std::find(kWide.begin(), kWide.end(), info.format & SF_FORMAT_SUBMASK) != kWide.end();
}

Result<Sound> open_sound(const std::filesystem::path& path, SF_INFO& info) {
  std::error_code failed;
  const std::uintmax_t bytes = std::filesystem::file_size(path, failed);
  if (failed) return bad_file(path, failed.message());
  if (bytes == 0) return bad_file(path, "the file is empty");
  Sound sound(sf_open(path.c_str(), SFM_READ, &info));
  if (!sound) return bad_file(path, fmt::format("not readable audio: {}", sf_strerror(nullptr)));
  return sound;
}

/// The file's reason to be refused once all that was there is read.
std::optional<std::string> complaint(SNDFILE* sound, const SF_INFO& info, const Decoded& seen) {
  // libsndfile ends a damaged file like a complete one, and keeps the error for sf_error().
  if (sf_error(sound) != SF_ERR_NO_ERROR) {
    return fmt::format("damaged or truncated after {} samples: {}", seen.samples,
                       sf_strerror(sound));
  }
  if (const auto promised = promised_samples(info); promised && seen.samples < *promised) {
    return fmt::format("truncated: its header promises {} samples, the file has {}", *promised,
                       seen.samples);
  }
  if (seen.samples == 0) return std::string(kNoSamples);
  return seen.odd;
}

/// The sample next to a time.
std::uint64_t sample_at(double seconds, const SF_INFO& info) {
  constexpr double kFarthest = 4e18;  // of what 64 bits with a sign hold
  return static_cast<std::uint64_t>(std::min(std::round(seconds * info.samplerate), kFarthest));
}

/// Goes to a sample, or near before it; returns how many have to be passed over, or nothing when
/// the file cannot even be read from its start.
std::optional<std::uint64_t> go_near(SNDFILE* sound, const SF_INFO& info, std::uint64_t sample) {
  // Within a second, decoders of Vorbis and MP3 give what they give from the start.
  const auto before = static_cast<std::uint64_t>(info.samplerate);
  if (sample <= before) return sample;
  const auto place = static_cast<sf_count_t>(sample - before);
  if (info.seekable != 0 && sf_seek(sound, place, SEEK_SET) == place) return before;
  if (sf_seek(sound, 0, SEEK_SET) != 0) return std::nullopt;
  return sample;
}

/// Decodes a part of a file that was just opened. Errors: as decode_audio().
Result<Decoded> decode_part(SNDFILE* sound, const SF_INFO& info, const std::filesystem::path& path,
                            ChannelChoice channels, const TakeSamples& take, const SoundPart& part,
                            std::uint64_t most) {
  const auto bad = [&](const std::string& why) {
    return bad_file(path, fmt::format("segment from {} to {} s: {}", part.begin, part.end, why));
  };
  const std::uint64_t first = sample_at(part.begin, info);
  if (const auto promised = promised_samples(info); promised && first >= *promised) {
    return bad(fmt::format("it begins behind the end, at {:.3f} s",
                           static_cast<double>(*promised) / info.samplerate));
  }
  const bool to_the_end = std::isinf(part.end);
  Wanted wanted;
  if (!to_the_end) wanted.count = sample_at(part.end, info) - first;
  if (wanted.count == 0) return bad("no sample lies in it");
  const auto passed_over = go_near(sound, info, first);
  if (!passed_over) return bad("the file can be read from its start only, and once");
  wanted.passed_over = *passed_over;
  const std::uint64_t count = wanted.count;
  wanted.count = std::min(count, most + 1);  // one more, to see that it is too long
  const Decoded seen = decode(sound, info, channels, take, wanted);
  if (sf_error(sound) != SF_ERR_NO_ERROR) {
    return bad(fmt::format("damaged or truncated: {}", sf_strerror(sound)));
  }
  if (seen.samples > most) return seen;
  const double missing = static_cast<double>(count - seen.samples) / info.samplerate;
  if (!to_the_end && missing > SoundPart::kOvershoot) {
    return bad(fmt::format("it ends {:.3f} s behind the sound; allowed: up to {}", missing,
                           SoundPart::kOvershoot));
  }
  if (seen.samples == 0) return bad("it begins behind the end");
  if (seen.odd) return bad(*seen.odd);
  return seen;
}

/// Decodes a whole file that was just opened. Errors: as decode_audio().
Result<Decoded> decode_whole(SNDFILE* sound, const SF_INFO& info, const std::filesystem::path& path,
                             ChannelChoice channels, const TakeSamples& take, std::uint64_t most) {
  const Decoded seen = decode(sound, info, channels, take, {0, most + 1});
  if (seen.samples > most) return seen;
  if (const auto reason = complaint(sound, info, seen)) return bad_file(path, *reason);
  return seen;
}

/// Decodes a file that was just opened. Errors: as decode_audio().
Result<AudioExtent> decode_opened(SNDFILE* sound, const SF_INFO& info,
                                  const std::filesystem::path& path, ChannelChoice channels,
                                  const TakeSamples& take, const SoundPart& part,
                                  std::uint64_t most) {
  if (info.channels != 1 && channels == ChannelChoice::only) {
    return bad_file(
        path, fmt::format("{} channels; choose one with --channel first or mix", info.channels));
  }
  const bool endless_flac =
      (info.format & SF_FORMAT_TYPEMASK) == SF_FORMAT_FLAC && !promised_samples(info);
  if (const auto cut = missing_end(path, header_log(sound), endless_flac)) {
    return bad_file(path, fmt::format("truncated: {}", *cut));
  }
  const auto too_long = [&path, most] {
    return bad_file(path, fmt::format("longer than the {} samples that are taken; a table of "
                                      "segments cuts it (--segments)",
                                      most));
  };
  // A header that promises too much is a lie, or right: refused before any of it is read.
  if (part.whole() && promised_samples(info).value_or(0) > most) return too_long();
  const auto seen = part.whole() ? decode_whole(sound, info, path, channels, take, most)
                                 : decode_part(sound, info, path, channels, take, part, most);
  if (!seen) return seen.error();
  if (seen->samples > most) return too_long();
  return AudioExtent{static_cast<std::uint32_t>(info.samplerate), seen->samples, is_wide(info)};
}

/// A file in memory, as libsndfile reads it.
struct MemoryFile {
  std::span<const std::byte> bytes;
  sf_count_t at = 0;

  sf_count_t size() const { return static_cast<sf_count_t>(bytes.size()); }
};

SF_VIRTUAL_IO memory_file_calls() {
  SF_VIRTUAL_IO calls{};
  calls.get_filelen = [](void* user) { return static_cast<MemoryFile*>(user)->size(); };
  calls.tell = [](void* user) { return static_cast<MemoryFile*>(user)->at; };
  calls.seek = [](sf_count_t offset, int whence, void* user) {
    MemoryFile& file = *static_cast<MemoryFile*>(user);
    const sf_count_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? file.at : file.size();
    file.at = std::clamp(from + offset, sf_count_t{0}, file.size());
    return file.at;
  };
  calls.read = [](void* to, sf_count_t count, void* user) {
    MemoryFile& file = *static_cast<MemoryFile*>(user);
    const sf_count_t taken = std::clamp(file.size() - file.at, sf_count_t{0}, count);
    if (taken > 0) std::memcpy(to, file.bytes.data() + file.at, static_cast<std::size_t>(taken));
    file.at += taken;
    return taken;
  };
  return calls;
}

}  // namespace

Result<AudioExtent> decode_bytes(std::span<const std::byte> file, ChannelChoice channels,
                                 const TakeSamples& take, std::uint64_t most) {
  MemoryFile memory{file};
  SF_VIRTUAL_IO calls = memory_file_calls();
  SF_INFO info{};
  const Sound sound(sf_open_virtual(&calls, SFM_READ, &info, &memory));
  const auto bad = [](std::string_view why) {
    return Error{ErrorCode::corrupt_record, fmt::format("encoded sound: {}", why)};
  };
  if (!sound) return bad(fmt::format("not readable audio: {}", sf_strerror(nullptr)));
  const Decoded seen = decode(sound.get(), info, channels, take, {0, most + 1});
  if (sf_error(sound.get()) != SF_ERR_NO_ERROR) {
    return bad(fmt::format("damaged after {} samples: {}", seen.samples, sf_strerror(sound.get())));
  }
  if (seen.samples == 0) return bad(kNoSamples);
  if (seen.odd) return bad(*seen.odd);
  return AudioExtent{static_cast<std::uint32_t>(info.samplerate), seen.samples, is_wide(info)};
}

Result<AudioHeader> read_audio_header(const std::filesystem::path& path) {
  SF_INFO info{};
  const auto sound = open_sound(path, info);
  if (!sound) return sound.error();
  return AudioHeader{static_cast<std::uint32_t>(info.samplerate), promised_samples(info),
                     is_wide(info)};
}

std::uint64_t expected_samples(const std::filesystem::path& path, const SoundPart& part) {
  const auto header = read_audio_header(path);
  if (!header) return 0;
  // Of FLAC, the one whose length may be unknown, a sample takes about a byte of the file.
  std::error_code failed;
  const std::uintmax_t bytes = std::filesystem::file_size(path, failed);
  const std::uint64_t whole = header->samples.value_or(failed ? 0 : bytes);
  const auto samples = static_cast<double>(whole);
  const double begin = std::min(part.begin * header->sample_rate, samples);
  const double end = std::min(part.end * header->sample_rate, samples);
  return static_cast<std::uint64_t>(end - begin);
}

Result<AudioExtent> decode_audio(const std::filesystem::path& path, ChannelChoice channels,
                                 const TakeSamples& take, const SoundPart& part,
                                 std::uint64_t most) {
  SF_INFO info{};
  const auto sound = open_sound(path, info);
  if (!sound) return sound.error();
  return decode_opened(sound->get(), info, path, channels, take, part, most);
}

Result<Audio> read_audio(const std::filesystem::path& path, ChannelChoice channels,
                         const SoundPart& part) {
  // A vector that grows has all samples twice for a moment. The kernel gives memory when it is
  // written to, so that a header which promises too much costs addresses alone.
  constexpr std::uint64_t kMostReserved = std::uint64_t{1} << 28;
  SF_INFO info{};
  const auto sound = open_sound(path, info);
  if (!sound) return sound.error();
  Audio audio{static_cast<std::uint32_t>(info.samplerate), {}};
  const std::uint64_t promised = promised_samples(info).value_or(0);
  audio.samples.reserve(
      std::min({promised, kMostReserved, sample_at(part.end - part.begin, info)}));
  const auto append = [&audio](std::span<const float> samples) {
    audio.samples.insert(audio.samples.end(), samples.begin(), samples.end());
  };
  const auto extent =
      decode_opened(sound->get(), info, path, channels, append, part, kMostInMemory);
  if (!extent) return extent.error();
  return audio;
}

}  // namespace batchwright
