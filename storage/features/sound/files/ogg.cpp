#include "storage/features/sound/files/ogg.h"

#include <fmt/core.h>

#include <array>
#include <string>

#include "storage/features/sound/files/container.h"

// An Ogg file is pages: "OggS", version 0, flags (1: goes on with a packet, 2: begins a stream,
// 4: ends one), granule u64 (how far the sound is at the end of the last packet that ends on it),
// serial u32 of the stream, number u32 of the page, CRC-32 u32 (polynomial 0x04c11db7, begun with
// 0, highest bit first, over the page with 0 in its place), number of segments u8, their lengths,
// and their bytes. Decoders pass over what is missing or damaged; so all pages are looked at here.

namespace batchwright {
namespace {

constexpr std::array<std::uint32_t, 256> ogg_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t crc = i << 24;
    for (int bit = 0; bit < 8; ++bit) crc = crc << 1 ^ ((crc & 0x80000000) != 0 ? 0x04c11db7 : 0);
    table[i] = crc;
  }
  return table;
}

std::uint32_t ogg_crc(std::span<const std::byte> bytes) {
  static constexpr auto kTable = ogg_crc_table();
  std::uint32_t crc = 0;
  for (const std::byte byte : bytes) {
    crc = crc << 8 ^ kTable[(crc >> 24 ^ std::to_integer<std::uint32_t>(byte)) & 0xFF];
  }
  return crc;
}

template <class T>
T ogg_number(std::span<const std::byte> bytes, std::size_t at) {
  T number = 0;
  for (std::size_t i = sizeof(T); i-- > 0;) {
    number = static_cast<T>(number << 8 | std::to_integer<T>(bytes[at + i]));
  }
  return number;
}

enum class OggCodec : std::uint8_t { unknown, vorbis, opus, flac };

OggCodec ogg_codec(std::span<const std::byte> packet) {
  const std::string_view text(reinterpret_cast<const char*>(packet.data()), packet.size());
  if (text.starts_with("\x01vorbis")) return OggCodec::vorbis;
  if (text.starts_with("OpusHead")) return OggCodec::opus;
  if (text.starts_with("\x7F"
                       "FLAC"))
    return OggCodec::flac;
  return OggCodec::unknown;
}

/// Where the pages of a stream put its samples.
class OggTimeline {
 public:
  /// `samples` are those of packets that end on the page, and `any_ends` whether one does.
  Result<void> place(const OggPage& page, std::uint64_t samples, bool any_ends);
  /// Samples between the begin of the first page's and the end of the last one's, without the
  /// first `pre_skip`.
  Result<std::uint64_t> samples(std::uint64_t pre_skip) const;

 private:
  std::optional<std::uint64_t> begin_;  // granule before the first sample
  std::optional<std::uint64_t> lead_;   // samples at the begin that are left out
  std::uint64_t granule_ = 0;           // of the last page that has one
  std::uint64_t samples_ = 0;           // of all packets
};

/// Puts the samples of a page where its granule says.
Result<void> OggTimeline::place(const OggPage& page, std::uint64_t samples, bool any_ends) {
  samples_ += samples;
  if (!any_ends || page.granule == OggPage::kNoGranule) return {};
  if (page.granule > std::uint64_t{1} << 62) {
    return bad_container(fmt::format("damaged: page at byte {} has no place in time", page.at));
  }
  if (page.granule < granule_) {
    return bad_container(
        fmt::format("damaged: page at byte {} ends at sample {}, the one before at {}", page.at,
                    page.granule, granule_));
  }
  granule_ = page.granule;
  // A stream may have been cut out of a longer one, and then begins later. What its first page has
  // too much is left out at its begin, or at the end where the page is the last one, too.
  if (!begin_ && samples_ > 0) {
    begin_ = page.granule > samples_ ? page.granule - samples_ : 0;
    if (!page.ends) lead_ = samples_ - std::min(samples_, page.granule);
  }
  return {};
}

Result<std::uint64_t> OggTimeline::samples(std::uint64_t pre_skip) const {
  if (!begin_) return bad_container("no samples: the file has a header only");
  const std::uint64_t end = granule_ - *begin_;
  const std::uint64_t there = samples_ - lead_.value_or(0);
  if (end > there) {
    return bad_container(
        fmt::format("truncated: its pages promise {} samples, its packets have {}", end, there));
  }
  // Encoders fill the last packet, and some one more; a last page that hides others is not theirs.
  constexpr std::uint64_t kMostLeftOut = 2 * 8192;
  if (lead_ && there - end > kMostLeftOut) {
    return bad_container(
        fmt::format("its pages promise {} samples, its packets have {}", end, there));
  }
  if (end <= pre_skip) return bad_container("no samples: the file has a header only");
  return end - pre_skip;
}

/// What is counted while the pages of one stream pass.
class OggStream {
 public:
  explicit OggStream(const SoundBytes& file) : file_(file), flac_(file.part(0, 0)) {}

  Result<void> take(const OggPage& page);
  Result<SoundContainer> finish();

  bool ended() const { return ended_; }

 private:
  Result<void> check_order(const OggPage& page) const;
  Result<void> take_packets(const OggPage& page);
  Result<void> take_packet();

  static constexpr std::size_t kMostKept = std::size_t{1} << 24;  // of a header; sound needs 2

  const SoundBytes& file_;
  OggCodec codec_ = OggCodec::unknown;
  bool begun_ = false;
  bool ended_ = false;
  std::uint32_t serial_ = 0;
  std::uint32_t next_number_ = 0;
  std::vector<std::byte> packet_;  // what is kept of the one that is under way
  bool under_way_ = false;
  std::uint64_t packets_ = 0;
  VorbisPackets vorbis_;
  SoundBytes flac_;
  std::uint64_t pre_skip_ = 0;
  OggTimeline timeline_;
  std::uint64_t page_samples_ = 0;  // of packets that end on the page
};

Result<void> OggStream::check_order(const OggPage& page) const {
  if (!begun_ && !page.begins) {
    return bad_container("damaged: its first page does not begin a stream");
  }
  if (begun_ && page.serial != serial_) {
    return bad_container(fmt::format(
        "several streams at once: page at byte {} is of another; allowed: one of sound", page.at));
  }
  if (begun_ && page.begins) {
    return bad_container(fmt::format("damaged: its stream begins anew at byte {}", page.at));
  }
  if (page.number != next_number_ && begun_) {
    return bad_container(fmt::format("damaged: page {} is followed by page {} at byte {}",
                                     next_number_ - 1, page.number, page.at));
  }
  if (begun_ && page.continues != under_way_) {
    return bad_container(fmt::format("damaged: a packet is cut at the page at byte {}", page.at));
  }
  return {};
}

Result<void> OggStream::take_packet() {
  ++packets_;
  if (packets_ == 1) {
    codec_ = ogg_codec(packet_);
    if (codec_ == OggCodec::unknown) {
      return bad_container(
          "not readable audio: Ogg without sound that is read; allowed: Vorbis, Opus, FLAC");
    }
    constexpr std::size_t kPreSkip = 10;
    if (codec_ == OggCodec::opus && packet_.size() >= kPreSkip + 2) {
      pre_skip_ = ogg_number<std::uint16_t>(packet_, kPreSkip);
    }
  }
  if (codec_ == OggCodec::vorbis) {
    vorbis_.take(packet_);
    page_samples_ += vorbis_.samples();
  }
  constexpr std::uint64_t kOpusHeaders = 2;
  if (codec_ == OggCodec::opus && packets_ > kOpusHeaders) page_samples_ += opus_samples(packet_);
  return {};
}

Result<void> OggStream::take_packets(const OggPage& page) {
  page_samples_ = 0;
  std::size_t at = 0;
  for (const std::byte length : page.lacing) {
    const auto bytes = std::to_integer<std::size_t>(length);
    // Headers are kept whole; of sound its first bytes are enough.
    const bool is_header = packets_ < VorbisPackets::kHeaders;
    const std::size_t wanted = is_header ? kMostKept : 2;
    const std::size_t kept = std::min(bytes, wanted - std::min(wanted, packet_.size()));
    const auto part = page.bytes.subspan(at, kept);
    packet_.insert(packet_.end(), part.begin(), part.end());
    at += bytes;
    under_way_ = bytes == 255;
    if (under_way_) continue;
    if (auto taken = take_packet(); !taken) return taken;
    packet_.clear();
  }
  return {};
}

Result<void> OggStream::take(const OggPage& page) {
  if (auto right = check_order(page); !right) return right;
  begun_ = true;
  serial_ = page.serial;
  next_number_ = page.number + 1;
  const std::uint64_t first_of_page = packets_;
  if (auto taken = take_packets(page); !taken) return taken;
  if (codec_ == OggCodec::flac) {
    // 9 bytes before "fLaC" in the first packet; all others are as in a file of FLAC.
    constexpr std::uint64_t kMapping = 9;
    flac_.append(
        file_.part(page.body + (first_of_page == 0 ? kMapping : 0), page.body + page.bytes.size()));
  } else if (auto placed = timeline_.place(page, page_samples_, packets_ > first_of_page);
             !placed) {
    return placed;
  }
  ended_ = page.ends;
  return {};
}

Result<SoundContainer> OggStream::finish() {
  if (!ended_) {
    return bad_container(
        fmt::format("truncated: its last page is missing; {} pages are there", next_number_));
  }
  if (under_way_) return bad_container("truncated: its last packet is cut");
  if (codec_ == OggCodec::flac) return look_at_flac(flac_);
  SoundContainer found{file_};
  const bool is_counted = codec_ == OggCodec::opus || vorbis_.knows();
  if (!is_counted) return found;
  const auto samples = timeline_.samples(pre_skip_);
  if (!samples) return samples.error();
  found.samples = *samples;
  constexpr std::uint32_t kOpusRate = 48'000;
  if (codec_ == OggCodec::opus) found.clock = kOpusRate;
  return found;
}

/// Looks at streams behind the first one's end, and says what they are.
Error what_follows(OggReader& reader, std::uint64_t at, const SoundBytes& file) {
  std::uint64_t streams = 1;
  const std::uint64_t behind = file.size() - at;
  while (!reader.at_end()) {
    const auto page = reader.next();
    if (!page) break;
    streams += page->begins ? 1 : 0;
  }
  if (streams == 1) {
    return bad_container(fmt::format("damaged: {} bytes after its last page", behind));
  }
  return bad_container(fmt::format(
      "{} streams one after another (chained); allowed: one, as each alone in a file", streams));
}

}  // namespace

Result<OggPage> OggReader::next() {
  constexpr std::size_t kHead = 27;
  OggPage page;
  page.at = cursor_.at();
  const auto bad = [&page](std::string_view what) {
    return bad_container(fmt::format("{} at byte {}", what, page.at));
  };
  page_.resize(kHead);
  const std::size_t head = cursor_.read(page_);
  const std::string_view mark(reinterpret_cast<const char*>(page_.data()), 4);
  if (head >= 4 && mark != "OggS") return bad("damaged: no page of Ogg");
  if (head < kHead) return bad("truncated: its last page is cut,");
  const auto segments = std::to_integer<std::size_t>(page_[26]);
  page_.resize(kHead + segments);
  if (cursor_.read(std::span(page_).subspan(kHead)) < segments) {
    return bad("truncated: its last page is cut,");
  }
  std::size_t body = 0;
  for (std::size_t i = 0; i < segments; ++i) body += std::to_integer<std::size_t>(page_[kHead + i]);
  page.body = cursor_.at();
  page_.resize(kHead + segments + body);
  const std::span<std::byte> all(page_);
  if (cursor_.read(all.subspan(kHead + segments)) < body) {
    return bad("truncated: its last page is cut,");
  }
  constexpr std::size_t kCrc = 22;
  const auto crc = ogg_number<std::uint32_t>(all, kCrc);
  std::fill_n(all.begin() + kCrc, sizeof crc, std::byte{0});
  if (ogg_crc(all) != crc) return bad("damaged: a page with another checksum");
  const auto flags = std::to_integer<std::uint32_t>(all[5]);
  page.continues = (flags & 1) != 0;
  page.begins = (flags & 2) != 0;
  page.ends = (flags & 4) != 0;
  page.granule = ogg_number<std::uint64_t>(all, 6);
  page.serial = ogg_number<std::uint32_t>(all, 14);
  page.number = ogg_number<std::uint32_t>(all, 18);
  page.lacing = all.subspan(kHead, segments);
  page.bytes = all.subspan(kHead + segments);
  return page;
}

Result<SoundContainer> look_at_ogg(const SoundBytes& file) {
  OggReader reader(file);
  OggStream stream(file);
  while (!reader.at_end()) {
    const auto page = reader.next();
    if (!page) return page.error();
    if (auto taken = stream.take(*page); !taken) return taken.error();
    if (!stream.ended()) continue;
    const std::uint64_t end = page->body + page->bytes.size();
    if (end < file.size()) return what_follows(reader, end, file);
  }
  return stream.finish();
}

}  // namespace batchwright
