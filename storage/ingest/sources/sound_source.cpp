#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "storage/dataset/dataset.h"
#include "storage/ingest/ingest_source.h"
#include "storage/ingest/segments.h"

namespace batchwright {
namespace {

/// A field of frames without content, whose length alone says something.
LoadedField count(std::uint64_t length) { return {{}, static_cast<std::uint32_t>(length)}; }

/// Hz: the length of a field without content, since lengths are what the length index has, and
/// plans need the rate before anything is read.
FieldSpec rate_field() { return {"rate", FieldKind::independent, DType::uint8, {0}, {}}; }

std::vector<std::pair<std::string, std::string>> sound_settings(const char* store,
                                                                ChannelChoice channels) {
  return {{"store", store}, {"channel", std::string(channel_name(channels))}};
}

/// To the nearest even, and within what 16 bits hold.
std::int16_t narrow(float sample) {
  return static_cast<std::int16_t>(std::lrint(std::clamp(sample * 32768.0F, -32768.0F, 32767.0F)));
}

/// Samples as they are.
class PcmSource : public IngestSource {
 public:
  PcmSource(const SoundSourceOptions& options, DType dtype)
      : channels_(options.channels),
        dtype_(dtype),
        chosen_(options.samples != DType::none),
        most_{kMaxRecordBytes / dtype_bytes(dtype), options.max_seconds} {}

  std::vector<FieldSpec> fields() const override {
    return {{"audio", FieldKind::primary, dtype_, {}, {}}, rate_field()};
  }

  std::vector<std::pair<std::string, std::string>> settings() const override {
    return sound_settings("pcm", channels_);
  }

  std::uint64_t load_bytes(const SourceFile& file) const override {
    const auto opened = files_.get(file.path);
    return opened ? (*opened)->expected_samples(file.part) * dtype_bytes(dtype_) : 0;
  }

  Result<Loaded> load(const SourceFile& file) const override {
    const auto opened = files_.get(file.path);
    if (!opened) return opened.error();
    LoadedField audio;
    std::uint64_t clipped = 0;
    const auto extent = (*opened)->decode(
        channels_, [&](std::span<const float> samples) { clipped += append(samples, audio.bytes); },
        file.part, most_);
    if (!extent) return extent.error();
    if (extent->wide && dtype_ == DType::int16 && !chosen_) {
      return Error{ErrorCode::schema_mismatch,
                   fmt::format("{}: its samples have more than 16 bits, the dataset's are int16; "
                               "round them with --samples int16, or make the dataset with "
                               "--samples float32",
                               file.path.string())};
    }
    audio.length = static_cast<std::uint32_t>(extent->samples);
    Loaded loaded;
    loaded.seconds = static_cast<double>(extent->samples) / extent->sample_rate;
    loaded.clipped = clipped;
    loaded.cancelled = extent->cancelled;
    loaded.lacks_begin = extent->lacks_begin;
    loaded.fields.push_back(std::move(audio));
    loaded.fields.push_back(count(extent->sample_rate));
    return loaded;
  }

 private:
  /// Returns how many did not fit.
  std::uint64_t append(std::span<const float> samples, std::vector<std::byte>& bytes) const {
    if (dtype_ == DType::float32) {
      const auto raw = std::as_bytes(samples);
      bytes.insert(bytes.end(), raw.begin(), raw.end());
      return 0;
    }
    std::uint64_t clipped = 0;
    for (const float sample : samples) {
      // A writer's full scale, 1, is a step beyond the largest number.
      clipped += std::abs(sample) > 1 ? 1 : 0;
      const std::int16_t narrowed = narrow(sample);
      const auto raw = std::as_bytes(std::span(&narrowed, 1));
      bytes.insert(bytes.end(), raw.begin(), raw.end());
    }
    return clipped;
  }

  ChannelChoice channels_;
  DType dtype_;
  bool chosen_;  // by the caller, and not by what the files have
  MostSound most_;
  mutable SoundFiles files_;
};

/// Files as they came. T counts samples, as of the decoded sound, so that plans know all lengths.
class EncodedSource : public IngestSource {
 public:
  explicit EncodedSource(const SoundSourceOptions& options)
      : channels_(options.channels), most_{kMostSequence, options.max_seconds} {}

  std::vector<FieldSpec> fields() const override {
    return {{"samples", FieldKind::primary, DType::uint8, {0}, {}},
            {"encoded", FieldKind::independent, DType::uint8, {}, {}},
            rate_field()};
  }

  std::vector<std::pair<std::string, std::string>> settings() const override {
    return sound_settings("encoded", channels_);
  }

  std::uint64_t load_bytes(const SourceFile& file) const override {
    std::error_code failed;
    const std::uintmax_t bytes = std::filesystem::file_size(file.path, failed);
    return failed ? 0 : bytes;
  }

  Result<Loaded> load(const SourceFile& file) const override {
    const std::uint64_t bytes = load_bytes(file);
    if (bytes > kMaxRecordBytes) {
      return Error{ErrorCode::schema_mismatch,
                   fmt::format("{}: {} bytes; a sequence has up to {}", file.path.string(), bytes,
                               kMaxRecordBytes)};
    }
    LoadedField encoded;
    encoded.bytes.resize(bytes);
    std::ifstream stream(file.path, std::ios::binary);
    stream.read(reinterpret_cast<char*>(encoded.bytes.data()),
                static_cast<std::streamsize>(encoded.bytes.size()));
    if (!stream) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("{}: it cannot be read, or became shorter", file.path.string())};
    }
    // What is stored is what is decoded here, so that it decodes wherever it is used.
    const auto opened = SoundFile::in_memory(encoded.bytes, file.path.string());
    if (!opened) return opened.error();
    const auto extent = opened->decode(
        channels_, [](std::span<const float>) {}, {}, most_);
    if (!extent) return extent.error();
    encoded.length = static_cast<std::uint32_t>(encoded.bytes.size());
    Loaded loaded;
    loaded.cancelled = extent->cancelled;
    loaded.lacks_begin = extent->lacks_begin;
    loaded.seconds = static_cast<double>(extent->samples) / extent->sample_rate;
    loaded.fields.push_back(count(extent->samples));
    loaded.fields.push_back(std::move(encoded));
    loaded.fields.push_back(count(extent->sample_rate));
    return loaded;
  }

 private:
  ChannelChoice channels_;
  MostSound most_;
};

/// Whether any of the headers looked at tells of samples with more than 16 bits.
bool any_wide(std::span<const SourceFile> files) {
  const auto looked_at = spread_over(files);
  return std::any_of(looked_at.begin(), looked_at.end(), [](const SourceFile* file) {
    const auto header = read_audio_header(file->path);
    return header && header->wide;
  });
}

}  // namespace

std::unique_ptr<IngestSource> sound_source(const SoundSourceOptions& options,
                                           std::span<const SourceFile> files) {
  if (options.encoded) return std::make_unique<EncodedSource>(options);
  DType dtype = options.samples;
  if (dtype == DType::none) dtype = options.present;
  if (dtype == DType::none) dtype = any_wide(files) ? DType::float32 : DType::int16;
  return std::make_unique<PcmSource>(options, dtype);
}

}  // namespace batchwright
