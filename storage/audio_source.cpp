#include <fmt/core.h>

#include <array>
#include <cstring>
#include <limits>

#include "storage/ingest_source.h"

namespace batchwright {
namespace {

constexpr std::array<std::string_view, 4> kExtensions = {".wav", ".flac", ".ogg", ".oga"};

class AudioSource : public IngestSource {
 public:
  AudioSource(FrontEnd front_end, ChannelChoice channels, std::filesystem::path first)
      : front_end_(std::move(front_end)), channels_(channels), first_(std::move(first)) {}

  FieldSpec field() const override {
    return {"features", FieldKind::primary, DType::float32, {front_end_.dimensions()}, {}};
  }

  std::vector<std::pair<std::string, std::string>> settings() const override {
    constexpr std::array kNames = {"only", "first", "mix"};
    auto all = front_end_.settings();
    all.emplace_back("channel", kNames[static_cast<std::size_t>(channels_)]);
    return all;
  }

  Result<Features> load(const std::filesystem::path& path) const override {
    const auto audio = read_audio(path, channels_);
    if (!audio) return audio.error();
    if (audio->sample_rate != front_end_.sample_rate()) return other_rate(path, *audio);
    const auto values = front_end_.compute(audio->samples);
    const std::size_t frames = front_end_.frames(audio->samples.size());
    if (frames > std::numeric_limits<std::uint32_t>::max()) {
      return Error{
          ErrorCode::schema_mismatch,
          fmt::format("{}: {} frames; a sequence has less than 2^32", path.string(), frames)};
    }
    Features features;
    features.bytes.resize(values.size() * sizeof(float));
    std::memcpy(features.bytes.data(), values.data(), features.bytes.size());
    features.length = static_cast<std::uint32_t>(frames);
    features.seconds = static_cast<double>(audio->samples.size()) / audio->sample_rate;
    return features;
  }

 private:
  Error other_rate(const std::filesystem::path& path, const Audio& audio) const {
    return {
        ErrorCode::schema_mismatch,
        fmt::format("{}: sample rate {} Hz, but the dataset's is {} Hz, which {} has set",
                    path.string(), audio.sample_rate, front_end_.sample_rate(), first_.string())};
  }

  FrontEnd front_end_;
  ChannelChoice channels_;
  std::filesystem::path first_;  // it has set the sample rate
};

}  // namespace

std::span<const std::string_view> audio_extensions() { return kExtensions; }

Result<std::unique_ptr<IngestSource>> audio_source(const AudioSourceOptions& options,
                                                   std::span<const SourceFile> files) {
  std::string reason = "no files";
  for (const SourceFile& file : files) {
    const auto rate = audio_sample_rate(file.path);
    if (!rate) {
      if (&file == &files.front()) reason = rate.error().message;
      continue;
    }
    auto front_end = FrontEnd::create(options.front_end, *rate);
    if (!front_end) return front_end.error();
    return std::unique_ptr<IngestSource>(
        std::make_unique<AudioSource>(std::move(*front_end), options.channels, file.path));
  }
  return Error{ErrorCode::invalid_argument, "none of the files is audio; the first: " + reason};
}

}  // namespace batchwright
