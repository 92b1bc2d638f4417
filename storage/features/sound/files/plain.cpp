#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "storage/features/sound/files/container.h"
#include "storage/features/sound/files/wave_format.h"

// AIFF, AU and SPHERE: a header, and samples that are nothing but numbers.

namespace batchwright {
namespace {

/// Samples of so many bytes, all channels together, as a header counts them.
struct PlainClaim {
  std::uint64_t begin = 0;             ///< Of the samples.
  std::uint64_t block_bytes = 0;       ///< A sample of each channel.
  std::optional<std::uint64_t> bytes;  ///< Of all; nothing where the writer could not know.
};

/// How many samples there are; the file ends with them unless `goes_on`.
Result<std::uint64_t> count_plain(const SoundBytes& file, const PlainClaim& claim, bool goes_on) {
  if (claim.block_bytes == 0) return bad_container("damaged: its header has samples of no size");
  const std::uint64_t there = file.size() - std::min(file.size(), claim.begin);
  const std::uint64_t bytes = claim.bytes.value_or(there);
  if (bytes > there) return cut_samples(bytes, there);
  if (!goes_on && !is_padding(file, claim.begin + bytes, kMostFilling)) {
    return bad_container(
        fmt::format("its header promises {} bytes of samples, the file has {}", bytes, there));
  }
  return bytes / claim.block_bytes;
}

/// The container once its samples are counted: it ends with them.
SoundContainer plain_container(const SoundBytes& file, const PlainClaim& claim,
                               std::uint64_t samples) {
  SoundContainer found{file.part(0, claim.begin + samples * claim.block_bytes)};
  found.samples = samples;
  return found;
}

constexpr bool kBigEndian = true;

/// Bytes of a sample of AIFF-C's kind of compression; 0 for one that is not read.
std::uint64_t aiff_sample_bytes(const std::string& kind, std::uint16_t bits) {
  constexpr std::array<std::string_view, 6> kWhole = {"NONE", "twos", "sowt",
                                                      "raw ", "in24", "in32"};
  constexpr std::array<std::string_view, 4> kLaws = {"ulaw", "ULAW", "alaw", "ALAW"};
  const auto is_in = [&kind](const auto& all) {
    return std::find(all.begin(), all.end(), kind) != all.end();
  };
  if (is_in(kWhole)) return (bits + 7U) / 8;
  if (is_in(kLaws)) return 1;
  if (kind == "fl32" || kind == "FL32") return 4;
  if (kind == "fl64" || kind == "FL64") return 8;
  return 0;
}

struct AiffFile {
  std::uint64_t frames = 0;
  std::uint64_t frames_at = 0;
  PlainClaim samples;
  std::uint64_t sizes_at = 0;  // those of chunk SSND, whose bytes come first
  std::uint64_t said = 0;      // bytes of samples
  bool is_open = false;        // the writer could not know how many
};

/// Sizes that a writer to a pipe puts there.
bool is_open_size(std::uint64_t bytes) { return bytes == 0 || bytes >= 0x7f000000; }

Result<void> read_common(const SoundBytes& file, std::uint64_t at, std::uint64_t bytes,
                         AiffFile& aiff) {
  const auto channels = file.number<std::uint16_t>(at, kBigEndian);
  const auto frames = file.number<std::uint32_t>(at + 2, kBigEndian);
  const auto bits = file.number<std::uint16_t>(at + 6, kBigEndian);
  if (!channels || !frames || !bits) return bad_container("truncated: it ends within its header");
  const bool is_aifc = file.text(8, 4) == "AIFC";
  const std::string kind = is_aifc && bytes >= 22 ? file.text(at + 18, 4) : "NONE";
  const std::uint64_t sample_bytes = aiff_sample_bytes(kind, *bits);
  if (sample_bytes == 0 && *bits > 0) {
    return bad_container(fmt::format(
        "not readable audio: AIFF of compression \"{}\"; allowed: PCM, float, mu-law, A-law",
        shown_name(kind)));
  }
  aiff.frames = *frames;
  aiff.frames_at = at + 2;
  aiff.samples.block_bytes = *channels * sample_bytes;
  return {};
}

/// Reads COMM and SSND, in either order, and sees that chunks follow to the end of the file.
Result<AiffFile> read_aiff(const SoundBytes& file) {
  AiffFile aiff;
  constexpr std::uint64_t kFirst = 12;
  std::uint64_t at = kFirst;
  while (at < file.size() && !is_padding(file, at, kMostFilling)) {
    const auto bytes = file.number<std::uint32_t>(at + 4, kBigEndian);
    const std::string name = file.text(at, 4);
    const bool is_name =
        std::all_of(name.begin(), name.end(), [](char c) { return c >= ' ' && c <= '~'; });
    if (!bytes || !is_name) {
      if (aiff.samples.begin == 0) {
        return bad_container(fmt::format("damaged or truncated: no chunk at byte {}", at));
      }
      return bad_container(fmt::format(
          "its header promises {} bytes of samples, the file has {} from there on, of which the "
          "others are no chunks",
          aiff.said, file.size() - aiff.samples.begin));
    }
    const std::uint64_t content = at + 8;
    if (name == "COMM") {
      if (auto read = read_common(file, content, *bytes, aiff); !read) return read.error();
    } else if (name == "SSND") {
      if (aiff.samples.begin > 0) return bad_container("damaged: chunk \"SSND\" is there twice");
      const auto offset = file.number<std::uint32_t>(content, kBigEndian);
      if (!offset) return bad_container("truncated: it ends within its header");
      aiff.samples.begin = content + 8 + *offset;
      aiff.sizes_at = at + 4;
      aiff.said = *bytes - std::min<std::uint64_t>(*bytes, 8 + std::uint64_t{*offset});
      aiff.is_open = is_open_size(*bytes) && is_open_size(aiff.frames);
      if (content + *bytes > file.size() || is_open_size(*bytes)) break;
    } else if (content + *bytes > file.size()) {
      return bad_container(fmt::format("truncated: it ends within chunk \"{}\"", name));
    }
    at = content + *bytes + *bytes % 2;
  }
  return aiff;
}

}  // namespace

Result<SoundContainer> look_at_aiff(const SoundBytes& file) {
  auto read = read_aiff(file);
  if (!read) return read.error();
  AiffFile& aiff = *read;
  if (aiff.frames_at == 0 || aiff.samples.begin == 0) {
    return bad_container("no samples: the file has a header only");
  }
  if (!aiff.is_open) aiff.samples.bytes = aiff.said;
  const auto samples = count_plain(file, aiff.samples, true);
  if (!samples) return samples.error();
  if (!aiff.is_open && aiff.frames != *samples) {
    return bad_container(fmt::format("its header promises {} samples, chunk \"SSND\" has {}",
                                     aiff.frames, *samples));
  }
  SoundContainer found = plain_container(file, aiff.samples, *samples);
  // Where the header follows the samples, the file ends with it.
  if (aiff.frames_at > aiff.samples.begin) found.bytes = file;
  const std::uint64_t begin = aiff.samples.begin;
  const std::uint64_t bytes = *samples * aiff.samples.block_bytes;
  found.bytes =
      found.bytes.with(aiff.frames_at, number_text(*samples, 4, kBigEndian))
          .with(aiff.sizes_at, number_text(begin - aiff.sizes_at - 4 + bytes, 4, kBigEndian))
          .with(4, number_text(found.bytes.size() - 8, 4, kBigEndian));
  return found;
}

Result<SoundContainer> look_at_au(const SoundBytes& file) {
  const bool is_big_endian = file.text(0, 1) == ".";
  std::array<std::uint32_t, 5> fields{};
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto field = file.number<std::uint32_t>(4 + 4 * i, is_big_endian);
    if (!field) return bad_container("truncated: it ends within its header");
    fields[i] = *field;
  }
  const auto [begin, bytes, encoding, rate, channels] = fields;
  std::uint64_t sample_bytes = 0;
  switch (encoding) {
    case 1:   // mu-law
    case 27:  // A-law
    case 2: sample_bytes = 1; break;
    case 3: sample_bytes = 2; break;
    case 4: sample_bytes = 3; break;
    case 5:
    case 6:  // float
      sample_bytes = 4;
      break;
    case 7: sample_bytes = 8; break;
    default:
      return bad_container(fmt::format(
          "not readable audio: AU of encoding {}; allowed: PCM, float, mu-law, A-law", encoding));
  }
  PlainClaim claim{begin, channels * sample_bytes, {}};
  constexpr std::uint32_t kUnknown = 0xffffffff;
  if (bytes != kUnknown && bytes != 0) claim.bytes = bytes;
  const auto samples = count_plain(file, claim, false);
  if (!samples) return samples.error();
  SoundContainer found = plain_container(file, claim, *samples);
  found.bytes = found.bytes.with(8, number_text(*samples * claim.block_bytes, 4, is_big_endian));
  return found;
}

Result<SoundContainer> look_at_sphere(const SoundBytes& file) {
  constexpr std::uint64_t kMostHeader = std::uint64_t{1} << 16;
  std::string_view lines;
  const std::string head = file.text(8, 8);  // "   1024\n"
  const std::size_t digits = head.find_first_not_of(' ');
  const auto header_bytes = parse_whole<std::uint64_t>(
      digits == head.npos ? "" : std::string_view(head).substr(digits, head.find('\n') - digits));
  if (!header_bytes || *header_bytes > kMostHeader || *header_bytes < 16) {
    return bad_container("damaged: the size of its header is no number");
  }
  const std::string header = file.text(0, *header_bytes);
  if (header.size() < *header_bytes) return bad_container("truncated: it ends within its header");
  lines = header;
  std::uint64_t sample_bytes = 2;
  std::uint64_t channels = 1;
  std::optional<std::uint64_t> count;
  for (const std::string_view line : split(lines, '\n')) {
    if (line.starts_with("end_head")) break;
    const auto words = split(line, ' ');
    if (words.size() < 3) continue;
    const auto number = parse_whole<std::uint64_t>(words[2]);
    if (words[0] == "sample_n_bytes" && number) sample_bytes = *number;
    if (words[0] == "channel_count" && number) channels = *number;
    if (words[0] == "sample_count" && number) count = *number;
    const bool is_coding = words[0] == "sample_coding";
    constexpr std::array<std::string_view, 5> kCodings = {"pcm", "ulaw", "mu-law", "alaw",
                                                          "pculaw"};
    if (is_coding && std::find(kCodings.begin(), kCodings.end(), words[2]) == kCodings.end()) {
      return bad_container(
          fmt::format("not readable audio: SPHERE of coding \"{}\"; allowed: pcm, ulaw, alaw",
                      shown_name(std::string(words[2]))));
    }
  }
  constexpr std::uint64_t kMost = 1 << 16;
  if (sample_bytes > 8 || channels > kMost) {
    return bad_container("damaged: its header has samples of no size");
  }
  PlainClaim claim{*header_bytes, sample_bytes * channels, {}};
  if (count && *count > 0 && *count < (std::uint64_t{1} << 40)) {
    claim.bytes = *count * claim.block_bytes;
  }
  const auto samples = count_plain(file, claim, false);
  if (!samples) return samples.error();
  return plain_container(file, claim, *samples);
}

}  // namespace batchwright
