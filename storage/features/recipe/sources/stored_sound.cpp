#include "storage/features/recipe/sources/stored_sound.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace batchwright {
namespace {

constexpr std::string_view kRate = "rate";
constexpr std::string_view kEncoded = "encoded";

/// A field whose length alone says something.
bool is_count(const FieldSpec& field) {
  return field.dtype == DType::uint8 && field.shape == std::vector<std::uint32_t>{0};
}

Error bad_sound(const std::string& what) { return {ErrorCode::corrupt_record, what}; }

/// Copies what may lie in a map, which nothing else may read.
Result<void> take_bytes(std::span<const std::byte> from, std::vector<std::byte>& bytes) {
  bytes.resize(from.size());
  return copy_from_map(bytes, from);
}

Result<void> check_finite(std::span<const float> samples) {
  const auto odd = std::find_if_not(samples.begin(), samples.end(),
                                    [](float sample) { return std::isfinite(sample); });
  if (odd == samples.end()) return {};
  return bad_sound(fmt::format("sample {} is {}, not a number", odd - samples.begin(), *odd));
}

}  // namespace

std::optional<StoredSound> StoredSound::of(const Schema& schema) {
  StoredSound sound;
  sound.primary_ = schema.primary();
  const auto rate = schema.find(kRate);
  if (!rate || !is_count(schema.fields[*rate])) return std::nullopt;
  sound.rate_ = *rate;
  const FieldSpec& primary = schema.fields[sound.primary_];
  const auto encoded = schema.find(kEncoded);
  if (is_count(primary) && encoded && schema.fields[*encoded].dtype == DType::uint8) {
    sound.encoded_ = *encoded;
    for (const auto& [name, value] : schema.settings) {
      if (name == "channel") sound.channel_ = parse_channel(value).value_or(ChannelChoice::only);
    }
    return sound;
  }
  if (!primary.shape.empty()) return std::nullopt;
  if (primary.dtype != DType::int16 && primary.dtype != DType::float32) return std::nullopt;
  sound.dtype_ = primary.dtype;
  return sound;
}

Result<void> StoredSound::check_decodable() const {
  if (kHasSoundLibraries || !is_encoded()) return {};
  return Error{ErrorCode::unsupported,
               "encoded sound, which a minimal build does not decode; allowed: samples "
               "(`batchwright ingest audio --store pcm`)"};
}

bool StoredSound::owns(std::size_t field) const {
  return field == primary_ || field == rate_ || field == encoded_;
}

Result<void> StoredSound::read(std::span<const FieldValue> values, std::uint64_t first,
                               std::span<float> samples, std::vector<std::byte>& bytes) const {
  if (encoded_) {
    if (auto taken = take_bytes(values[*encoded_].bytes, bytes); !taken) return taken;
    std::uint64_t seen = 0;
    const auto copy_wanted = [&](std::span<const float> block) {
      // What of the block lies within [first, first + samples.size()).
      const std::uint64_t begin = std::max(seen, first);
      const std::uint64_t end = std::min(seen + block.size(), first + samples.size());
      if (begin < end) {
        std::copy_n(block.data() + (begin - seen), end - begin, samples.data() + (begin - first));
      }
      seen += block.size();
    };
    const std::uint64_t length = values[primary_].length;
    const auto extent = decode_bytes(bytes, channel_, copy_wanted, length);
    if (!extent) return extent.error();
    if (extent->samples != length || extent->sample_rate != values[rate_].length) {
      return bad_sound(fmt::format(
          "encoded sound has {}{} samples at {} Hz, its record says {} at {} Hz; ingest it again",
          extent->samples > length ? "more than " : "", std::min(extent->samples, length),
          extent->sample_rate, length, values[rate_].length));
    }
    return {};
  }
  const std::size_t width = dtype_bytes(dtype_);
  const auto stored = values[primary_].bytes;
  if ((first + samples.size()) * width > stored.size()) {
    return bad_sound(fmt::format("{} bytes of samples, {} needed", stored.size(),
                                 (first + samples.size()) * width));
  }
  if (dtype_ == DType::float32) {
    auto copied = copy_from_map(std::as_writable_bytes(samples),
                                stored.subspan(first * width, samples.size_bytes()));
    if (!copied) return copied;
    return check_finite(samples);
  }
  auto taken = take_bytes(stored.subspan(first * width, samples.size() * width), bytes);
  if (!taken) return taken;
  for (std::size_t n = 0; n < samples.size(); ++n) {
    std::int16_t whole = 0;
    std::memcpy(&whole, bytes.data() + n * sizeof whole, sizeof whole);
    samples[n] = static_cast<float>(whole) / 32768;
  }
  return {};
}

}  // namespace batchwright
