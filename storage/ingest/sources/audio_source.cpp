#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "storage/ingest/ingest_source.h"
#include "storage/ingest/segments.h"

namespace batchwright {
namespace {

/// A file is what its bytes are; the ending says which are looked at.
constexpr std::array<std::string_view, 16> kAudioExtensions = {
    ".wav",  ".wave", ".w64",  ".rf64", ".flac", ".mp3",  ".ogg", ".oga",
    ".opus", ".sph",  ".nist", ".aif",  ".aiff", ".aifc", ".au",  ".snd"};

class AudioSource : public IngestSource {
 public:
  AudioSource(FrontEnd front_end, ChannelChoice channels, std::string rate_origin)
      : front_end_(std::move(front_end)),
        channels_(channels),
        rate_origin_(std::move(rate_origin)) {}

  std::vector<FieldSpec> fields() const override {
    return {{"features", FieldKind::primary, DType::float32, {front_end_.dimensions()}, {}}};
  }

  std::vector<std::pair<std::string, std::string>> settings() const override {
    auto all = front_end_.settings();
    all.emplace_back("channel", channel_name(channels_));
    return all;
  }

  std::uint64_t load_bytes(const SourceFile& file) const override {
    const auto opened = files_.get(file.path);
    const std::uint64_t samples = opened ? (*opened)->expected_samples(file.part) : 0;
    // compute() returns floats, which load() copies into bytes; where a convention looks at a whole
    // sound, its doubles are there before.
    const std::uint64_t features = front_end_.frames(samples) * front_end_.dimensions();
    return samples * sizeof(float) + features * (2 * sizeof(float) + sizeof(double));
  }

  Result<Loaded> load(const SourceFile& file) const override {
    const std::filesystem::path& path = file.path;
    const auto opened = files_.get(path);
    if (!opened) return opened.error();
    const auto audio = read_audio(**opened, channels_, file.part, {kMostInMemory});
    if (!audio) return audio.error();
    if (audio->sample_rate != front_end_.sample_rate()) return other_rate(path, *audio);
    const auto values = front_end_.compute(audio->samples);
    const std::size_t frames = front_end_.frames(audio->samples.size());
    if (frames == 0) return no_frames(path, *audio);
    if (frames > std::numeric_limits<std::uint32_t>::max()) {
      return Error{
          ErrorCode::schema_mismatch,
          fmt::format("{}: {} frames; a sequence has less than 2^32", path.string(), frames)};
    }
    const auto bytes = std::as_bytes(std::span(values));
    Loaded loaded;
    loaded.fields.push_back({{bytes.begin(), bytes.end()}, static_cast<std::uint32_t>(frames)});
    loaded.seconds = static_cast<double>(audio->samples.size()) / audio->sample_rate;
    loaded.cancelled = audio->cancelled;
    loaded.lacks_begin = audio->lacks_begin;
    return loaded;
  }

 private:
  Error no_frames(const std::filesystem::path& path, const Audio& audio) const {
    std::size_t least = audio.samples.size();
    while (front_end_.frames(least) == 0) ++least;
    const auto milliseconds = [&audio](std::size_t samples) {
      return 1000.0 * static_cast<double>(samples) / audio.sample_rate;
    };
    return {ErrorCode::schema_mismatch,
            fmt::format("{}: no frames: it has {} samples ({:.1f} ms), one frame takes {} ({:.1f} "
                        "ms)",
                        path.string(), audio.samples.size(), milliseconds(audio.samples.size()),
                        least, milliseconds(least))};
  }

  Error other_rate(const std::filesystem::path& path, const Audio& audio) const {
    return {ErrorCode::schema_mismatch,
            fmt::format("{}: sample rate {} Hz, but the dataset's is {} Hz, which {} has set",
                        path.string(), audio.sample_rate, front_end_.sample_rate(), rate_origin_)};
  }

  FrontEnd front_end_;
  ChannelChoice channels_;
  std::string rate_origin_;
  mutable SoundFiles files_;
};

/// The sample rate of most files, and the text that says so.
struct Majority {
  std::uint32_t rate = 0;
  std::string origin;
};

Result<Majority> majority_rate(std::span<const SourceFile> files) {
  std::map<std::uint32_t, std::size_t> counts;
  std::string reason = "no files";
  std::size_t audio = 0;
  const auto look_at = [&](const SourceFile& file) {
    const auto header = read_audio_header(file.path);
    if (header) {
      ++counts[header->sample_rate];
      ++audio;
    } else if (&file == &files.front()) {
      reason = header.error().message;
    }
  };
  for (const SourceFile* file : spread_over(files)) look_at(*file);
  // Should those be none of the few that are audio, all are looked at until one is.
  for (std::size_t i = 0; i < files.size() && counts.empty(); ++i) look_at(files[i]);
  if (counts.empty()) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("none of the files is audio; the first: {}", reason)};
  }
  // Of two that are equally many the lower rate: the map is sorted, and the first of them counts.
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return Majority{most->first, fmt::format("{} of {} files looked at", most->second, audio)};
}

}  // namespace

std::span<const std::string_view> audio_extensions() { return kAudioExtensions; }

Result<std::unique_ptr<IngestSource>> audio_source(const AudioSourceOptions& options,
                                                   std::span<const SourceFile> files) {
  Majority rate{options.sample_rate, options.rate_origin};
  if (rate.rate == 0) {
    auto majority = majority_rate(files);
    if (!majority) return majority.error();
    rate = std::move(*majority);
  }
  auto front_end = FrontEnd::create(options.front_end, rate.rate);
  if (!front_end) return front_end.error();
  return std::unique_ptr<IngestSource>(std::make_unique<AudioSource>(
      std::move(*front_end), options.channels, std::move(rate.origin)));
}

}  // namespace batchwright
