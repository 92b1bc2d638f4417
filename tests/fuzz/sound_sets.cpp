// Datasets of noise and impulse responses, made of bytes from outside and opened as a recipe opens
// them: every sound read, made a room of, and used on a short sound.
//
// An input: how sound is stored, 4 bytes of the set's rate, then for each sequence 4 bytes of rate,
// 3 of its length (0: that of the sound), 2 of the number of bytes that follow.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "storage/features/recipe/sources/sound_set.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_bound.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::fuzz;

namespace {

/// The sounds as they are kept, twice while one is resampled, and rooms; and what decoders take.
constexpr std::int64_t kMostBytes = std::int64_t{512} << 20;

/// Samples of all sequences, at either rate. Memory grows with them, which is as it should be.
constexpr std::uint64_t kMostSamples = std::uint64_t{1} << 20;

constexpr std::size_t kMostSequences = 4;

enum class Stored : std::uint8_t { int16, float32, encoded };

struct Sequences {
  Stored stored = Stored::int16;
  struct One {
    std::span<const std::byte> bytes;
    std::uint32_t length = 0;
    std::uint32_t rate = 0;
  };
  std::vector<One> all;
};

Schema schema_of(Stored stored) {
  const FieldSpec rate{"rate", FieldKind::independent, DType::uint8, {0}, {}};
  if (stored == Stored::encoded) {
    return {{{"samples", FieldKind::primary, DType::uint8, {0}, {}},
             {"encoded", FieldKind::independent, DType::uint8, {}, {}},
             rate},
            {{"store", "encoded"}, {"channel", "first"}}};
  }
  const DType dtype = stored == Stored::int16 ? DType::int16 : DType::float32;
  return {{{"audio", FieldKind::primary, dtype, {}, {}}, rate},
          {{"store", "pcm"}, {"channel", "only"}}};
}

/// Length and rate of encoded sound are those of the file, unless the input claims others.
void take_encoded(Sequences::One& one) {
  std::uint64_t samples = 0;
  const auto extent = decode_bytes(
      one.bytes, ChannelChoice::first,
      [&](std::span<const float> block) { samples += block.size(); }, kMostSequence);
  if (one.length == 0) one.length = static_cast<std::uint32_t>(samples);
  if (one.rate == 0 && extent) one.rate = extent->sample_rate;
}

Sequences read_sequences(Choices& input, Stored stored) {
  Sequences sequences{stored, {}};
  const std::uint32_t width = stored == Stored::int16 ? 2 : 4;
  while (!input.empty() && sequences.all.size() < kMostSequences) {
    Sequences::One one;
    one.rate = input.number<std::uint32_t>();
    const auto claimed = input.take(3);
    for (const std::byte each : claimed) {
      one.length = one.length << 8 | std::to_integer<std::uint32_t>(each);
    }
    one.bytes = input.take(input.number<std::uint16_t>());
    if (stored == Stored::encoded) {
      take_encoded(one);
    } else {
      one.length = static_cast<std::uint32_t>(one.bytes.size()) / width;
      one.bytes = one.bytes.first(std::size_t{one.length} * width);
    }
    sequences.all.push_back(one);
  }
  return sequences;
}

/// Whether what is asked for is a fault of neither the datasets nor the room, but large.
bool is_large(const Sequences& sequences, std::uint32_t rate) {
  std::uint64_t samples = 0;
  for (const auto& one : sequences.all) {
    const auto ratio = rate_ratio(one.rate, rate, Speed{});
    if (!ratio) continue;
    samples += one.length + resampled_length(ResamplerKind::soxr, one.length, *ratio);
  }
  return samples > kMostSamples;
}

bool write(const std::filesystem::path& path, const Sequences& sequences) {
  WriterLimits limits;
  limits.map_bytes = std::uint64_t{1} << 20;  // a terabyte's page tables take longer than the rest
  auto writer = DatasetWriter::open(path, schema_of(sequences.stored), limits);
  require(writer.has_value(), "a dataset can be made");
  std::size_t number = 0;
  for (const auto& one : sequences.all) {
    std::vector<FieldValue> values;
    if (sequences.stored == Stored::encoded) {
      values = {{{}, one.length}, {one.bytes, static_cast<std::uint32_t>(one.bytes.size())}};
    } else {
      values = {{one.bytes, one.length}};
    }
    values.push_back({{}, one.rate});
    if (!writer->append({std::to_string(number++), values})) return false;
  }
  return writer->commit().has_value();
}

void expect(const Error& error) {
  require(error.code == ErrorCode::bad_configuration || error.code == ErrorCode::corrupt_record,
          "an error is one of the two");
}

bool all_finite(std::span<const float> samples) {
  return std::all_of(samples.begin(), samples.end(), [](float s) { return std::isfinite(s); });
}

std::vector<float> short_sound() {
  std::vector<float> sound;
  for (int n = 0; n < 1000; ++n) sound.push_back(static_cast<float>(std::sin(0.1 * n)));
  return sound;
}

/// Reads all of it, and a part, which is the same as there.
void use_noise(const SoundSet& set, std::uint32_t index, SoundSet::Scratch& scratch) {
  std::vector<float> noise;
  if (const auto read = set.read(index, 0, set.samples(index), noise, scratch); !read) {
    return expect(read.error());
  }
  require(noise.size() == set.samples(index), "noise has the samples that were said");
  require(all_finite(noise), "samples of noise are numbers");
  const std::uint64_t first = noise.size() / 3;
  std::vector<float> part;
  require(set.read(index, first, noise.size() / 2, part, scratch).has_value(), "a part is read");
  require(std::equal(part.begin(), part.end(), noise.begin() + static_cast<std::ptrdiff_t>(first)),
          "a part is as in the whole");
  for (const bool normal : {true, false}) {
    auto sound = short_sound();
    add_noise(noise, first, normal ? 10 : -200, sound);
    require(all_finite(sound), "sound with noise is numbers");
  }
}

void use_room(const SoundSet& set, std::uint32_t index, SoundSet::Scratch& scratch) {
  const auto room = set.room(index, scratch);
  if (!room) return expect(room.error());
  require((*room)->taps() == set.samples(index), "a room has a tap a sample");
  require(*set.room(index, scratch) == *room, "a room is transformed once");
  Reverberation reverberation;
  for (const bool normalise : {true, false}) {
    auto sound = short_sound();
    reverberation.apply(**room, normalise, sound);
    require(all_finite(sound), "sound in a room is numbers");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices input(data, size);
  const auto stored = static_cast<Stored>(input.byte() % 3);
  const auto rate = input.number<std::uint32_t>();
  const Sequences sequences = read_sequences(input, stored);
  if (is_large(sequences, rate)) return 0;
  const test::TemporaryFolder folder;
  if (!write(folder / "set", sequences)) return 0;
  const MemoryBound bound(kMostBytes);
  Catalog catalog;
  const auto set = SoundSet::open({folder / "set"}, {rate, 3600, rate % 2 != 0}, catalog);
  if (!set) {
    expect(set.error());
    return 0;
  }
  require((*set)->size() == sequences.all.size(), "a set has every sequence");
  SoundSet::Scratch scratch;
  for (std::uint32_t i = 0; i < (*set)->size(); ++i) {
    use_noise(**set, i, scratch);
    use_room(**set, i, scratch);
  }
  return 0;
}
