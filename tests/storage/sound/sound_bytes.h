#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "storage/features/sound/sound.h"
#include "tests/storage/ingest/encode.h"
#include "tests/storage/ingest/sounds.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text.h"

namespace batchwright::test {

/// A number of so many bytes.
inline std::string number(std::uint64_t value, std::size_t bytes, bool is_big_endian = false) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) {
    const std::size_t place = is_big_endian ? bytes - 1 - i : i;
    text.push_back(static_cast<char>(value >> (8 * place) & 0xff));
  }
  return text;
}

/// The file that libsndfile makes of the samples.
inline std::string encoded(int format, const std::vector<float>& samples, int rate = 16000) {
  const TemporaryFolder folder;
  encode(folder / "sound", format, samples, rate);
  return read_file(folder / "sound");
}

/// What becomes of a file: how many samples it has, or why it is refused. A feed, which decodes
/// bytes in memory, sees the same as an ingest, which has a path.
struct Outcome {
  std::uint64_t samples = 0;
  std::string refusal;
};
inline Outcome outcome_of(const std::string& bytes) {
  const TemporaryFolder folder;
  write_file(folder / "x.dat", bytes);
  const auto from_disk = read_audio(folder / "x.dat", ChannelChoice::first);
  const auto from_memory = decode_bytes(
      std::as_bytes(std::span(bytes)), ChannelChoice::first, [](auto) {}, kMostSequence);
  CHECK(from_disk.has_value() == from_memory.has_value());
  if (!from_disk) return {0, from_disk.error().message};
  if (from_memory) CHECK(from_memory->samples == from_disk->samples.size());
  return {from_disk->samples.size(), {}};
}

/// What is refused: the reason without the file's name.
inline std::string refusal_of(const std::string& bytes) {
  const Outcome outcome = outcome_of(bytes);
  REQUIRE_MESSAGE(outcome.samples == 0, outcome.samples, " samples were taken");
  return outcome.refusal.substr(outcome.refusal.find("x.dat: ") + 7);
}

/// How many samples a file that must be taken has.
inline std::uint64_t samples_of(const std::string& bytes) {
  const Outcome outcome = outcome_of(bytes);
  REQUIRE_MESSAGE(outcome.samples > 0, outcome.refusal);
  return outcome.samples;
}

/// The file is refused wherever it is cut.
inline void check_cuts(const std::string& whole, std::size_t step) {
  constexpr std::size_t kLast = 8;
  for (std::size_t size = 0; size < whole.size(); size += step) {
    CAPTURE(size);
    CHECK(outcome_of(whole.substr(0, size)).samples == 0);
  }
  for (std::size_t less = 1; less <= kLast; ++less) {
    CAPTURE(less);
    CHECK(outcome_of(whole.substr(0, whole.size() - less)).samples == 0);
  }
}

}  // namespace batchwright::test
