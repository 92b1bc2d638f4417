// Files of several channels, from the ingest to a trainer's batches.

#include <doctest/doctest.h>

#include <cmath>

#include "tests/integration/daemon_process.h"
#include "tests/integration/seen.h"
#include "tests/storage/ingest/encode.h"
#include "tests/storage/ingest/sounds.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr std::size_t kSamples = 12'000;
constexpr int kRate = 16'000;

struct StereoFile {
  const char* name;
  int format;
  bool exact;  ///< The samples come back as they are.
};
constexpr std::array<StereoFile, 3> kFiles = {{
    {"a.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, true},
    {"b.mp3", SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III, false},
    {"c.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, true},
}};

/// The tone of a channel, which no other channel of any file has.
std::vector<std::int16_t> channel_tone(std::uint64_t ordinal) {
  return tone(kSamples, static_cast<unsigned>(ordinal + 1));
}

/// Writes both channels of file `number`, whose sequences are to be 2 * number and the next.
void write_stereo(const std::filesystem::path& folder, std::size_t number) {
  std::vector<float> samples;
  const auto left = channel_tone(2 * number);
  const auto right = channel_tone(2 * number + 1);
  for (std::size_t i = 0; i < kSamples; ++i) {
    for (const std::int16_t sample : {left[i], right[i]}) {
      samples.push_back(static_cast<float>(sample) / 32768);
    }
  }
  encode(folder / kFiles[number].name, kFiles[number].format, samples, kRate, 2);
}

/// How loud the difference is, of the wanted sound.
double difference(std::span<const std::int16_t> got, const std::vector<std::int16_t>& wanted) {
  double wrong = 0;
  double all = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double error = static_cast<double>(got[i]) - wanted[i];
    wrong += error * error;
    all += static_cast<double>(wanted[i]) * wanted[i];
  }
  return std::sqrt(wrong / all);
}

/// Checks the rows of a batch; returns how many there were.
std::size_t check_rows(const bw_batch* batch) {
  const bw_batch_header& header = *bw_batch_get_header(batch);
  const bw_tensor& audio = *bw_batch_tensor_named(batch, "audio");
  const auto* samples = static_cast<const std::int16_t*>(audio.data);
  for (std::size_t row = 0; row < header.sequences; ++row) {
    const std::uint64_t ordinal = header.ordinals[row];
    CAPTURE(ordinal);
    REQUIRE(ordinal < 2 * kFiles.size());
    REQUIRE(header.lengths[row] == kSamples);
    const std::span got(samples + row * header.batch_length, kSamples);
    const auto wanted = channel_tone(ordinal);
    if (kFiles[ordinal / 2].exact) {
      CHECK(std::equal(got.begin(), got.end(), wanted.begin(), wanted.end()));
    } else {
      CHECK(difference(got, wanted) < 0.1);
      CHECK(difference(got, channel_tone(ordinal ^ 1U)) > 1);
    }
  }
  return header.sequences;
}

}  // namespace

TEST_CASE("integration: a feed serves each channel of stereo WAV, FLAC and MP3 as its own row") {
  DaemonProcess daemon("[feed.plan]\nsize = 4\n", 0);
  const auto folder = daemon.folder() / "in";
  std::filesystem::create_directories(folder);
  for (std::size_t i = 0; i < kFiles.size(); ++i) write_stereo(folder, i);
  const auto made = run({program("batchwright"), "ingest", "audio", folder, "--into",
                         daemon.dataset(), "--store", "pcm", "--channel", "each"});
  REQUIRE_MESSAGE(made.code == 0, made.err);
  REQUIRE(daemon.start());
  std::size_t rows = 0;
  take(daemon.endpoint(), {.epochs = 1}, [&](const bw_batch* batch) { rows += check_rows(batch); });
  CHECK(rows == 2 * kFiles.size());
}
