#include "storage/audio.h"

#include <fmt/core.h>
#include <sndfile.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace batchwright {
namespace {

struct CloseSound {
  void operator()(SNDFILE* sound) const noexcept { sf_close(sound); }
};
using Sound = std::unique_ptr<SNDFILE, CloseSound>;

/// Frames read at once. Memory grows with what is there, not with what a header promises.
constexpr std::size_t kBlockFrames = std::size_t{1} << 16;

Error bad_file(const std::filesystem::path& path, std::string_view why) {
  return {ErrorCode::invalid_argument, fmt::format("{}: {}", path.string(), why)};
}

/// libsndfile's account of the header it has read.
std::string header_log(SNDFILE* sound) {
  std::array<char, 4096> text{};
  sf_command(sound, SFC_GET_LOG_INFO, text.data(), static_cast<int>(text.size()));
  return text.data();
}

std::uint64_t number_at(std::string_view text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// What libsndfile noticed about a file that is shorter than its header says, and then repaired
/// in silence: a line such as "data : 17024 (should be 4956)". Writers to a pipe put 0 or nearly
/// the largest number there because they cannot know; such a file is whole.
std::optional<std::string> truncation(std::string_view log) {
  constexpr std::string_view kData = "\ndata : ";
  constexpr std::string_view kShould = " (should be ";
  constexpr std::uint64_t kStreamed = 0x7fff0000;
  if (log.find("without an End-Of-Stream flag") != log.npos) return "its last page is missing";
  const std::size_t data = log.find(kData);
  if (data == log.npos) return std::nullopt;
  const std::string_view line = log.substr(data + kData.size(), 80);
  const std::string_view first = line.substr(0, line.find('\n'));
  const std::size_t should = first.find(kShould);
  if (should == first.npos) return std::nullopt;
  const std::uint64_t promised = number_at(first);
  const std::uint64_t there = number_at(first.substr(should + kShould.size()));
  if (promised <= there || promised >= kStreamed) return std::nullopt;
  return fmt::format("its header promises {} bytes of samples, the file has {}", promised, there);
}

/// One channel out of `block`, whose channels alternate.
void append_channel(std::span<const float> block, std::size_t channels, ChannelChoice choice,
                    std::vector<float>& samples) {
  const std::size_t used = choice == ChannelChoice::mix ? channels : 1;
  for (std::size_t frame = 0; frame < block.size(); frame += channels) {
    float sum = 0;
    for (std::size_t c = 0; c < used; ++c) sum += block[frame + c];
    samples.push_back(sum / static_cast<float>(used));
  }
}

std::vector<float> read_samples(SNDFILE* sound, std::size_t channels, ChannelChoice choice) {
  std::vector<float> samples;
  std::vector<float> block(kBlockFrames * channels);
  sf_count_t frames = 0;
  while ((frames = sf_readf_float(sound, block.data(), sf_count_t{kBlockFrames})) > 0) {
    append_channel(std::span(block).first(static_cast<std::size_t>(frames) * channels), channels,
                   choice, samples);
  }
  return samples;
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
std::optional<std::string> complaint(SNDFILE* sound, const SF_INFO& info,
                                     const std::vector<float>& samples) {
  if (sf_error(sound) != SF_ERR_NO_ERROR) {
    return fmt::format("damaged or truncated after {} samples: {}", samples.size(),
                       sf_strerror(sound));
  }
  if (static_cast<sf_count_t>(samples.size()) < info.frames) {
    return fmt::format("truncated: its header promises {} samples, the file has {}", info.frames,
                       samples.size());
  }
  if (samples.empty()) return "no samples: the file has a header only";
  const auto odd = std::find_if_not(samples.begin(), samples.end(),
                                    [](float sample) { return std::isfinite(sample); });
  if (odd != samples.end()) {
    return fmt::format("sample {} is {}, not a number", odd - samples.begin(), *odd);
  }
  return std::nullopt;
}

}  // namespace

Result<std::uint32_t> audio_sample_rate(const std::filesystem::path& path) {
  SF_INFO info{};
  const auto sound = open_sound(path, info);
  if (!sound) return sound.error();
  return static_cast<std::uint32_t>(info.samplerate);
}

Result<Audio> read_audio(const std::filesystem::path& path, ChannelChoice channels) {
  SF_INFO info{};
  const auto sound = open_sound(path, info);
  if (!sound) return sound.error();
  if (info.channels != 1 && channels == ChannelChoice::only) {
    return bad_file(
        path, fmt::format("{} channels; choose one with --channel first or mix", info.channels));
  }
  // Asked before reading: past a good Ogg file's end libsndfile notes the same as of a cut one.
  if (const auto short_by = truncation(header_log(sound->get()))) {
    return bad_file(path, "truncated: " + *short_by);
  }
  Audio audio{static_cast<std::uint32_t>(info.samplerate), {}};
  audio.samples = read_samples(sound->get(), static_cast<std::size_t>(info.channels), channels);
  if (const auto reason = complaint(sound->get(), info, audio.samples)) {
    return bad_file(path, *reason);
  }
  return audio;
}

}  // namespace batchwright
