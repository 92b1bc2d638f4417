#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "storage/features/sound/files/container.h"
#include "storage/features/sound/files/wave_format.h"

// RIFF: "RIFF", bytes u32, "WAVE", then chunks: name, bytes u32, content, and a byte when their
// number is odd. RIFX has its numbers in big endian. RF64 has the bytes of `data` in its chunk
// `ds64`. W64 has 16 bytes as names, and 64 bits for sizes, which count the chunk's own 24.
//
// Sizes lie: writers to a pipe cannot know them, recorders that are killed never put them right,
// and those beyond 4 GiB wrap. So a size is taken where all that follows the samples are chunks up
// to the end of the file, and refused otherwise.

namespace batchwright {
namespace {

constexpr std::uint64_t kChunkHead = 8;

/// A chunk, as its head says.
struct RiffChunk {
  std::string name;
  std::uint64_t content = 0;  // where it begins
  std::uint64_t bytes = 0;
};

std::optional<RiffChunk> chunk_at(const SoundBytes& file, std::uint64_t at, bool is_big_endian) {
  const auto bytes = file.number<std::uint32_t>(at + 4, is_big_endian);
  if (!bytes) return std::nullopt;
  RiffChunk chunk{file.text(at, 4), at + kChunkHead, *bytes};
  const bool is_name = std::all_of(chunk.name.begin(), chunk.name.end(),
                                   [](char c) { return c >= ' ' && c <= '~'; });
  return is_name ? std::optional(chunk) : std::nullopt;
}

/// Behind the chunk and the byte that makes its size even, which some writers leave out.
std::uint64_t next_chunk(const SoundBytes& file, std::uint64_t end, bool is_big_endian) {
  if (end % 2 == 0 || end >= file.size()) return end;
  return !chunk_at(file, end + 1, is_big_endian) && chunk_at(file, end, is_big_endian) ? end
                                                                                       : end + 1;
}

/// Whether chunks without samples, and nothing else, lie from `at` to the end of the file: all of
/// them whole.
bool are_chunks(const SoundBytes& file, std::uint64_t at, bool is_big_endian) {
  while (at < file.size() && !is_padding(file, at, kChunkHead - 1)) {
    const auto chunk = chunk_at(file, at, is_big_endian);
    // Samples in two parts are nothing that a reader joins.
    if (!chunk || chunk->name == "data") return false;
    if (chunk->bytes > file.size() - chunk->content) return false;
    at = next_chunk(file, chunk->content + chunk->bytes, is_big_endian);
  }
  return true;
}

/// Whether bytes that only make a size even are such.
bool is_zero(const SoundBytes& file, std::uint64_t begin, std::uint64_t end) {
  constexpr std::uint64_t kMost = 8;
  return begin >= end || is_padding(file.part(0, end), begin, kMost);
}

/// Sizes that writers put where they cannot know.
bool is_unknown_size(std::uint64_t bytes) {
  constexpr std::uint64_t kHalf = 0x80000000;
  constexpr std::uint64_t kNear = 0x10000;
  return (bytes >= kHalf - kNear && bytes <= kHalf + kNear) ||
         (bytes >= 2 * kHalf - kNear && bytes < 2 * kHalf);
}

/// What was read of a RIFF file up to its samples.
struct RiffFile {
  const SoundBytes& file;
  bool is_big_endian = false;
  bool is_rf64 = false;
  std::uint64_t form_bytes = 0;
  std::optional<std::uint64_t> long_bytes = {};  // of `data`, as ds64 says
  std::uint64_t ds64 = 0;                        // where its content begins
  std::optional<WaveFormat> format = {};
  std::optional<std::uint64_t> fact = {};
  RiffChunk data = {};
};

Result<void> read_ds64(const RiffChunk& chunk, RiffFile& riff) {
  const auto form = riff.file.number<std::uint64_t>(chunk.content);
  const auto data = riff.file.number<std::uint64_t>(chunk.content + 8);
  if (!form || !data) return bad_container("truncated: it ends within chunk \"ds64\"");
  riff.ds64 = chunk.content;
  riff.long_bytes = *data;
  riff.form_bytes = *form;
  return {};
}

/// Reads the chunks before the samples, and the head of theirs.
Result<void> read_chunks(RiffFile& riff) {
  constexpr std::uint64_t kFirst = 12;
  for (std::uint64_t at = kFirst;;) {
    const auto chunk = chunk_at(riff.file, at, riff.is_big_endian);
    if (!chunk) {
      return bad_container(riff.file.size() < at + kChunkHead
                               ? "no samples: the file ends before chunk \"data\""
                               : fmt::format("damaged: no chunk at byte {}", at));
    }
    if (chunk->name == "data") {
      riff.data = *chunk;
      return {};
    }
    if (chunk->bytes > riff.file.size() - chunk->content) {
      return bad_container(fmt::format("truncated: chunk \"{}\" promises {} bytes, the file has {}",
                                       chunk->name, chunk->bytes,
                                       riff.file.size() - chunk->content));
    }
    if (chunk->name == "ds64" && riff.is_rf64) {
      if (auto read = read_ds64(*chunk, riff); !read) return read;
    } else if (chunk->name == "fmt ") {
      auto format = read_wave_format(riff.file.part(chunk->content, chunk->content + chunk->bytes),
                                     riff.is_big_endian);
      if (!format) return format.error();
      riff.format = *format;
    } else if (chunk->name == "fact") {
      riff.fact = riff.file.number<std::uint32_t>(chunk->content, riff.is_big_endian);
    }
    at = next_chunk(riff.file, chunk->content + chunk->bytes, riff.is_big_endian);
  }
}

/// Bytes of samples: as the header says where that holds, or up to the end where it does not know.
/// Errors: a size that is not that of the samples.
Result<std::uint64_t> data_bytes(const RiffFile& riff) {
  const std::uint64_t there = riff.file.size() - riff.data.content;
  constexpr std::uint32_t kInDs64 = 0xffffffff;
  const bool is_long = riff.is_rf64 && riff.long_bytes && riff.data.bytes == kInDs64;
  const std::uint64_t said = is_long ? *riff.long_bytes : riff.data.bytes;
  const bool is_open = is_long ? said == 0 || said > (std::uint64_t{1} << 62)
                               : said == 0 || (is_unknown_size(said) && said > there);
  if (is_open) {
    // A file without samples is one whose chunks go on behind them.
    return said == 0 && are_chunks(riff.file, riff.data.content, riff.is_big_endian) ? 0 : there;
  }
  if (said > there) return cut_samples(said, there);
  const std::uint64_t end = next_chunk(riff.file, riff.data.content + said, riff.is_big_endian);
  const bool is_even = is_zero(riff.file, riff.data.content + said, end);
  if (is_even && are_chunks(riff.file, end, riff.is_big_endian)) return said;
  // Recorders fill their last block with zeros, and say so: the size of the whole is that without.
  if (riff.form_bytes + kChunkHead == end && is_padding(riff.file, end, kMostFilling)) return said;
  return bad_container(
      fmt::format("its header promises {} bytes of samples, the file has {} from there on, of "
                  "which the others are no chunks",
                  said, there));
}

/// Sizes as they are, where they fit. The samples end the file.
SoundBytes with_sizes(const RiffFile& riff, std::uint64_t bytes) {
  constexpr std::uint64_t kMost32 = 0xfffffff0;
  SoundBytes made = riff.file.part(0, riff.data.content + bytes);
  const std::uint64_t form = made.size() - kChunkHead;
  if (riff.ds64 > 0) {
    made = made.with(riff.ds64, number_text(form, 8, false) + number_text(bytes, 8, false));
    return made.with(riff.data.content - 4, number_text(0xffffffff, 4, false));
  }
  if (form > kMost32) return made;
  made = made.with(riff.data.content - 4, number_text(bytes, 4, riff.is_big_endian));
  return made.with(4, number_text(form, 4, riff.is_big_endian));
}

// W64

constexpr std::uint64_t kGuidBytes = 16;
constexpr std::uint64_t kW64Head = kGuidBytes + 8;

constexpr std::string_view kWaveTail("\xF3\xAC\xD3\x11\x8C\xD1\x00\xC0\x4F\x8E\xDB\x8A", 12);

struct W64Chunk {
  std::string name;  // its first four bytes
  std::uint64_t content = 0;
  std::uint64_t bytes = 0;  // of the content
  std::uint64_t end = 0;    // padding included
};

std::optional<W64Chunk> w64_chunk_at(const SoundBytes& file, std::uint64_t at) {
  const auto bytes = file.number<std::uint64_t>(at + kGuidBytes);
  if (!bytes || file.text(at + 4, kWaveTail.size()) != kWaveTail) return std::nullopt;
  W64Chunk chunk{file.text(at, 4), at + kW64Head, 0, 0};
  constexpr std::uint64_t kUnknown = std::uint64_t{1} << 62;
  chunk.bytes = *bytes < kW64Head || *bytes > kUnknown ? kUnknown : *bytes - kW64Head;
  chunk.end = (chunk.content + chunk.bytes + 7) / 8 * 8;
  return chunk;
}

bool are_w64_chunks(const SoundBytes& file, std::uint64_t at) {
  while (at < file.size() && !is_padding(file, at, kChunkHead - 1)) {
    const auto chunk = w64_chunk_at(file, at);
    if (!chunk || chunk->content + chunk->bytes > file.size()) return false;
    at = chunk->end;
  }
  return true;
}

/// Errors: as data_bytes().
Result<std::uint64_t> w64_data_bytes(const SoundBytes& file, const W64Chunk& data,
                                     std::uint64_t said) {
  const std::uint64_t there = file.size() - data.content;
  const bool is_open = said <= kW64Head || said > (std::uint64_t{1} << 62);
  if (is_open) {
    const bool is_empty = said == kW64Head && are_w64_chunks(file, data.content);
    return is_empty ? 0 : there;
  }
  if (data.bytes > there) return cut_samples(data.bytes, there);
  const bool is_even = is_zero(file, data.content + data.bytes, data.end);
  if (is_even && are_w64_chunks(file, data.end)) return data.bytes;
  return bad_container(
      fmt::format("its header promises {} bytes of samples, the file has {} from there on, of "
                  "which the others are no chunks",
                  data.bytes, there));
}

}  // namespace

Result<SoundContainer> look_at_riff(const SoundBytes& file) {
  RiffFile riff{file, file.text(0, 4) == "RIFX", file.text(0, 4) == "RF64"};
  riff.form_bytes = file.number<std::uint32_t>(4, riff.is_big_endian).value_or(0);
  if (auto read = read_chunks(riff); !read) return read.error();
  if (!riff.format) return bad_container("damaged: no chunk \"fmt \" before its samples");
  const auto bytes = data_bytes(riff);
  if (!bytes) return bytes.error();
  const auto extent = wave_extent(*riff.format, *bytes, riff.fact);
  if (!extent) return extent.error();
  SoundContainer found{with_sizes(riff, extent->bytes)};
  found.samples = extent->samples;
  found.filling = extent->filling;
  return found;
}

Result<SoundContainer> look_at_w64(const SoundBytes& file) {
  constexpr std::uint64_t kFirst = kW64Head + kGuidBytes;
  std::optional<WaveFormat> format;
  std::optional<std::uint64_t> fact;
  for (std::uint64_t at = kFirst;;) {
    const auto chunk = w64_chunk_at(file, at);
    if (!chunk) return bad_container(fmt::format("damaged or truncated: no chunk at byte {}", at));
    if (chunk->name == "data") {
      if (!format) return bad_container("damaged: no chunk \"fmt \" before its samples");
      const auto bytes = w64_data_bytes(file, *chunk, *file.number<std::uint64_t>(at + kGuidBytes));
      if (!bytes) return bytes.error();
      const auto extent = wave_extent(*format, *bytes, fact);
      if (!extent) return extent.error();
      const SoundBytes sound = file.part(0, chunk->content + extent->bytes);
      SoundContainer found{
          sound.with(kGuidBytes, number_text(sound.size(), 8, false))
              .with(at + kGuidBytes, number_text(extent->bytes + kW64Head, 8, false))};
      found.samples = extent->samples;
      found.filling = extent->filling;
      return found;
    }
    if (chunk->content + chunk->bytes > file.size()) {
      return bad_container(
          fmt::format("truncated: it ends within chunk \"{}\"", shown_name(chunk->name)));
    }
    if (chunk->name == "fmt ") {
      auto read = read_wave_format(file.part(chunk->content, chunk->content + chunk->bytes), false);
      if (!read) return read.error();
      format = *read;
    } else if (chunk->name == "fact") {
      fact = file.number<std::uint32_t>(chunk->content);
    }
    at = chunk->end;
  }
}

}  // namespace batchwright
