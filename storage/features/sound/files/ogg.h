#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "storage/features/sound/files/sound_bytes.h"

namespace batchwright {

/// A page of an Ogg file. Spans: until the reader's next call.
struct OggPage {
  static constexpr std::uint64_t kNoGranule = ~std::uint64_t{0};  ///< No packet ends on the page.

  std::uint64_t at = 0;    ///< In the file.
  std::uint64_t body = 0;  ///< Where its content begins.
  bool continues = false;  ///< Its first bytes are of a packet that began before.
  bool begins = false;     ///< The first of its stream.
  bool ends = false;       ///< The last.
  std::uint64_t granule = 0;
  std::uint32_t serial = 0;
  std::uint32_t number = 0;
  std::span<const std::byte> lacing;  ///< Lengths of segments; one below 255 ends a packet.
  std::span<const std::byte> bytes;
};

/// Reads the pages of an Ogg file, checksums compared. Threads: one at a time.
class OggReader {
 public:
  explicit OggReader(const SoundBytes& file) : cursor_(file), size_(file.size()) {}

  bool at_end() const { return cursor_.at() >= size_; }
  /// Errors: invalid_argument: no page, a page that is cut, or one with another checksum.
  Result<OggPage> next();

 private:
  SoundCursor cursor_;
  std::uint64_t size_;
  std::vector<std::byte> page_;
};

/// Samples of the packets of a stream of Vorbis, without decoding them: what each has follows from
/// the bits that it begins with. Threads: one at a time.
class VorbisPackets {
 public:
  /// Takes the next packet of the stream, headers included.
  void take(std::span<const std::byte> packet);
  /// Whether the headers were read, so that samples are known.
  bool knows() const { return headers_ == kHeaders && !is_long_.empty(); }
  /// Those of the last packet together with the one before; 0 of a header and of the first.
  std::uint64_t samples() const { return samples_; }

  static constexpr int kHeaders = 3;
  int headers() const { return headers_; }

 private:
  void read_modes(std::span<const std::byte> setup);

  int headers_ = 0;
  std::uint32_t blocks_[2] = {0, 0};
  std::vector<bool> is_long_;  // by mode; empty where they could not be read
  std::uint32_t before_ = 0;
  std::uint64_t samples_ = 0;
};

/// Samples, at 48 kHz, of a packet of Opus (RFC 6716, section 3.1); 0 of one that is none.
std::uint64_t opus_samples(std::span<const std::byte> packet);

}  // namespace batchwright
