#include "storage/sound/audio.h"

#include <fmt/core.h>
#include <sndfile.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "storage/sound/flac_end.h"

namespace batchwright {
namespace {

struct CloseSound {
  void operator()(SNDFILE* sound) const noexcept { sf_close(sound); }
};
using Sound = std::unique_ptr<SNDFILE, CloseSound>;

/// Frames read at once. Memory grows with what is there, not with what a header promises, and a
/// block stays in the cache.
constexpr std::size_t kBlockFrames = std::size_t{1} << 13;

/// In the order of ChannelChoice.
constexpr std::array<std::string_view, 3> kChannelNames = {"only", "first", "mix"};

Error bad_file(const std::filesystem::path& path, std::string_view why) {
  return {ErrorCode::invalid_argument, fmt::format("{}: {}", path.string(), why)};
}

/// libsndfile's account of the header it has read.
std::string header_log(SNDFILE* sound) {
  std::array<char, 4096> text{};
  sf_command(sound, SFC_GET_LOG_INFO, text.data(), static_cast<int>(text.size()));
  return text.data();
}

/// Writers to a pipe put 0 or nearly the largest number where they cannot know; such a file is
/// whole.
constexpr std::uint64_t kStreamed = 0x7fff0000;

template <class T>
T number_in(std::ifstream& file) {
  T number{};
  file.read(reinterpret_cast<char*>(&number), sizeof number);
  return file ? number : T{};
}

/// Whether the samples of a WAV file are fewer than its `data` chunk says, which libsndfile
/// repairs in silence. RIFF: "RIFF", bytes u32, "WAVE", then chunks: name, bytes u32, content, and
/// a byte when their number is odd. RF64 has the bytes of `data` in its chunk `ds64`.
std::optional<std::string> cut_wav(const std::filesystem::path& path, std::uint64_t file_bytes) {
  using Name = std::array<char, 4>;
  const auto is = [](const Name& name, std::string_view text) {
    return std::string_view(name.data(), name.size()) == text;
  };
  std::ifstream file(path, std::ios::binary);
  const Name form = number_in<Name>(file);
  // The size of the whole, which a writer to a pipe cannot know.
  number_in<std::uint32_t>(file);
  if ((!is(form, "RIFF") && !is(form, "RF64")) || !is(number_in<Name>(file), "WAVE")) {
    return std::nullopt;
  }
  std::uint64_t long_bytes = 0;  // of `data`, as ds64 says
  for (std::uint64_t at = 12; at + 8 <= file_bytes;) {
    file.seekg(static_cast<std::streamoff>(at));
    const Name name = number_in<Name>(file);
    const std::uint64_t bytes = number_in<std::uint32_t>(file);
    if (!file) return std::nullopt;
    at += 8;
    if (is(name, "data")) {
      // RF64 puts this number where the true one does not fit 32 bits.
      const bool is_long = bytes == 0xffffffff && long_bytes > 0;
      const std::uint64_t promised = is_long ? long_bytes : bytes;
      const std::uint64_t there = file_bytes - at;
      if (promised <= there || (!is_long && promised >= kStreamed)) return std::nullopt;
      return fmt::format("its header promises {} bytes of samples, the file has {}", promised,
                         there);
    }
    if (is(name, "ds64")) {
      number_in<std::uint64_t>(file);  // bytes of the whole file
      long_bytes = number_in<std::uint64_t>(file);
    }
    at += bytes + bytes % 2;
  }
  return std::nullopt;
}

/// What libsndfile notices about an Ogg file that was cut.
std::optional<std::string> cut_ogg(std::string_view log) {
  // libsndfile's own words, in its log alone: it reads such a file without an error.
  if (log.find("without an End-Of-Stream flag") == log.npos) return std::nullopt;
  return "its last page is missing";
}

/// How many samples the header promises; nothing when it does not say.
std::optional<std::uint64_t> promised_samples(const SF_INFO& info) {
  if (info.frames == SF_COUNT_MAX) return std::nullopt;  // FLAC that was written to a pipe
  return static_cast<std::uint64_t>(info.frames);
}

/// Whether a FLAC file that does not say how long it is ends within a frame.
std::optional<std::string> cut_flac(const std::filesystem::path& path, const SF_INFO& info,
                                    std::uint64_t file_bytes) {
  if ((info.format & SF_FORMAT_TYPEMASK) != SF_FORMAT_FLAC || promised_samples(info)) {
    return std::nullopt;
  }
  // The end alone: no frame takes more (flac_end.h).
  std::vector<std::byte> tail(std::min<std::uint64_t>(file_bytes, kFlacTailBytes));
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(file_bytes - tail.size()));
  file.read(reinterpret_cast<char*>(tail.data()), static_cast<std::streamsize>(tail.size()));
  if (file && ends_with_flac_frame(tail)) return std::nullopt;
  return "it does not end with a whole frame";
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

/// What was seen while a file was decoded.
struct Decoded {
  std::uint64_t samples = 0;
  std::optional<std::string> odd;  ///< A sample that is no number.
};

/// Without a way out of the loop, so that it is done for several at once.
bool all_finite(std::span<const float> samples) {
  bool finite = true;
  for (const float sample : samples) {
    finite &= std::abs(sample) <= std::numeric_limits<float>::max();
  }
  return finite;
}

Decoded decode(SNDFILE* sound, const SF_INFO& info, ChannelChoice choice, const TakeSamples& take) {
  const auto channels = static_cast<std::size_t>(info.channels);
  std::vector<float> block(kBlockFrames * channels);
  std::vector<float> chosen;
  Decoded seen;
  sf_count_t frames = 0;
  while ((frames = sf_readf_float(sound, block.data(), sf_count_t{kBlockFrames})) > 0) {
    std::span<const float> samples =
        std::span(block).first(static_cast<std::size_t>(frames) * channels);
    if (channels > 1) {
      take_channel(samples, channels, choice, chosen);
      samples = chosen;
    }
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
  if (seen.samples == 0) return "no samples: the file has a header only";
  return seen.odd;
}

/// Why the file is shorter than its writer meant it to be, where libsndfile does not mind.
std::optional<std::string> missing_end(SNDFILE* sound, const SF_INFO& info,
                                       const std::filesystem::path& path) {
  // Asked before reading: past a good Ogg file's end libsndfile notes the same as of a cut one.
  if (auto cut = cut_ogg(header_log(sound))) return cut;
  std::error_code failed;
  const std::uint64_t file_bytes = std::filesystem::file_size(path, failed);
  if (auto cut = cut_wav(path, file_bytes)) return cut;
  return cut_flac(path, info, file_bytes);
}

/// Decodes a file that was just opened. Errors: as decode_audio().
Result<AudioExtent> decode_opened(SNDFILE* sound, const SF_INFO& info,
                                  const std::filesystem::path& path, ChannelChoice channels,
                                  const TakeSamples& take) {
  if (info.channels != 1 && channels == ChannelChoice::only) {
    return bad_file(
        path, fmt::format("{} channels; choose one with --channel first or mix", info.channels));
  }
  if (const auto cut = missing_end(sound, info, path)) {
    return bad_file(path, fmt::format("truncated: {}", *cut));
  }
  const Decoded seen = decode(sound, info, channels, take);
  if (const auto reason = complaint(sound, info, seen)) return bad_file(path, *reason);
  return AudioExtent{static_cast<std::uint32_t>(info.samplerate), seen.samples, is_wide(info)};
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
                                 const TakeSamples& take) {
  MemoryFile memory{file};
  SF_VIRTUAL_IO calls = memory_file_calls();
  SF_INFO info{};
  const Sound sound(sf_open_virtual(&calls, SFM_READ, &info, &memory));
  const auto bad = [](std::string_view why) {
    return Error{ErrorCode::corrupt_record, fmt::format("encoded sound: {}", why)};
  };
  if (!sound) return bad(fmt::format("not readable audio: {}", sf_strerror(nullptr)));
  const Decoded seen = decode(sound.get(), info, channels, take);
  if (sf_error(sound.get()) != SF_ERR_NO_ERROR) {
    return bad(fmt::format("damaged after {} samples: {}", seen.samples, sf_strerror(sound.get())));
  }
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

std::string_view channel_name(ChannelChoice channels) {
  return kChannelNames.at(static_cast<std::size_t>(channels));
}

std::optional<ChannelChoice> parse_channel(std::string_view name) {
  const auto* const found = std::find(kChannelNames.begin(), kChannelNames.end(), name);
  if (found == kChannelNames.end()) return std::nullopt;
  return static_cast<ChannelChoice>(found - kChannelNames.begin());
}

std::uint64_t expected_samples(const std::filesystem::path& path) {
  const auto header = read_audio_header(path);
  if (!header) return 0;
  if (header->samples) return *header->samples;
  // Of FLAC, the one whose length may be unknown, a sample takes about a byte of the file.
  std::error_code failed;
  const std::uintmax_t bytes = std::filesystem::file_size(path, failed);
  return failed ? 0 : bytes;
}

Result<AudioExtent> decode_audio(const std::filesystem::path& path, ChannelChoice channels,
                                 const TakeSamples& take) {
  SF_INFO info{};
  const auto sound = open_sound(path, info);
  if (!sound) return sound.error();
  return decode_opened(sound->get(), info, path, channels, take);
}

Result<Audio> read_audio(const std::filesystem::path& path, ChannelChoice channels) {
  // A vector that grows has all samples twice for a moment. The kernel gives memory when it is
  // written to, so that a header which promises too much costs addresses alone.
  constexpr std::uint64_t kMostReserved = std::uint64_t{1} << 28;
  SF_INFO info{};
  const auto sound = open_sound(path, info);
  if (!sound) return sound.error();
  Audio audio{static_cast<std::uint32_t>(info.samplerate), {}};
  audio.samples.reserve(std::min(promised_samples(info).value_or(0), kMostReserved));
  const auto append = [&audio](std::span<const float> samples) {
    audio.samples.insert(audio.samples.end(), samples.begin(), samples.end());
  };
  const auto extent = decode_opened(sound->get(), info, path, channels, append);
  if (!extent) return extent.error();
  return audio;
}

}  // namespace batchwright
