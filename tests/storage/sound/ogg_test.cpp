#include <algorithm>

#include "tests/storage/sound/sound_bytes.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr int kVorbis = SF_FORMAT_OGG | SF_FORMAT_VORBIS;
constexpr int kOpus = SF_FORMAT_OGG | SF_FORMAT_OPUS;
constexpr std::uint64_t kNoGranule = ~std::uint64_t{0};

/// A page of Ogg: its head of 27 bytes, lengths and content.
struct Page {
  std::string bytes;

  std::uint64_t number_at(std::size_t at, std::size_t width) const {
    std::uint64_t value = 0;
    for (std::size_t i = width; i-- > 0;) {
      value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
    }
    return value;
  }
  Page& set(std::size_t at, std::size_t width, std::uint64_t value) {
    bytes.replace(at, width, number(value, width));
    return *this;
  }
  std::uint64_t granule() const { return number_at(6, 8); }
  /// The checksum that goes with the rest, bit by bit.
  Page& seal() {
    set(22, 4, 0);
    std::uint32_t crc = 0;
    for (const char c : bytes) {
      crc ^= static_cast<std::uint32_t>(static_cast<unsigned char>(c)) << 24;
      for (int bit = 0; bit < 8; ++bit) crc = crc << 1 ^ (crc >> 31 != 0 ? 0x04c11db7U : 0);
    }
    return set(22, 4, crc);
  }
};

using Pages = std::vector<Page>;

Pages pages_of(const std::string& file) {
  Pages pages;
  for (std::size_t at = 0; at < file.size();) {
    const auto segments = static_cast<unsigned char>(file[at + 26]);
    std::size_t size = 27 + segments;
    for (std::size_t i = 0; i < segments; ++i) {
      size += static_cast<unsigned char>(file[at + 27 + i]);
    }
    pages.push_back({file.substr(at, size)});
    at += size;
  }
  return pages;
}

std::string joined(const Pages& pages) {
  std::string file;
  for (const Page& page : pages) file += page.bytes;
  return file;
}

/// With right numbers and checksums.
std::string renumbered(Pages pages) {
  for (std::size_t i = 0; i < pages.size(); ++i) pages[i].set(18, 4, i).seal();
  return joined(pages);
}

/// FLAC in Ogg (its mapping 1.0): a page each for the header, the other metadata, and each frame.
std::string ogg_flac(const std::string& flac, std::size_t frames_at) {
  Pages pages;
  const auto add = [&pages](const std::string& packet, std::uint64_t granule) {
    Page page{"OggS" + std::string(22, '\0')};
    std::string lengths(packet.size() / 255, '\xff');
    lengths.push_back(static_cast<char>(packet.size() % 255));
    page.bytes.push_back(static_cast<char>(lengths.size()));
    page.bytes += lengths + packet;
    page.set(5, 1, pages.empty() ? 2 : 0)
        .set(6, 8, granule)
        .set(14, 4, 77)
        .set(18, 4, pages.size());
    pages.push_back(page.seal());
  };
  add(std::string("\x7f"
                  "FLAC\1\0\0\1",
                  9) +
          flac.substr(0, 42),
      0);
  add(flac.substr(42, frames_at - 42), 0);
  // In pieces that are no frames: where packets end says nothing that counts.
  for (std::size_t at = frames_at; at < flac.size(); at += 4000) {
    add(flac.substr(at, 4000), at + 4000 < flac.size() ? kNoGranule - 1 : 20000);
  }
  pages.back().set(5, 1, 4).seal();
  return joined(pages);
}

/// Where the blocks of metadata end.
std::size_t flac_frames_at(const std::string& flac) {
  std::size_t at = 4;
  for (bool is_last = false; !is_last;) {
    const auto byte = [&](std::size_t i) -> std::size_t {
      return static_cast<unsigned char>(flac[at + i]);
    };
    is_last = byte(0) >= 128;
    at += 4 + (byte(1) << 16 | byte(2) << 8 | byte(3));
  }
  return at;
}

const std::string& long_file(int format) {
  static const std::string vorbis = encoded(kVorbis, floats(tone(200'000)));
  static const std::string opus = encoded(kOpus, floats(tone(200'000)));
  return format == kVorbis ? vorbis : opus;
}

}  // namespace

TEST_CASE("sound: Ogg of many pages is refused wherever it is cut") {
  for (const int format : {kVorbis, kOpus}) {
    CAPTURE(format);
    const std::string& whole = long_file(format);
    CHECK(samples_of(whole) == 200'000);
    REQUIRE(pages_of(whole).size() > 4);
    check_cuts(whole, whole.size() / 30);
    // Between pages, too.
    const Pages pages = pages_of(whole);
    for (std::size_t count = 1; count < pages.size(); ++count) {
      CHECK(contains(refusal_of(joined({pages.begin(), pages.begin() + static_cast<long>(count)})),
                     "truncated: its last page is missing"));
    }
  }
}

TEST_CASE("sound: Ogg with a page lost, twice, in another place or damaged is refused") {
  for (const int format : {kVorbis, kOpus}) {
    CAPTURE(format);
    const Pages pages = pages_of(long_file(format));
    for (std::size_t i = 3; i < pages.size(); ++i) {
      CAPTURE(i);
      Pages other = pages;
      other.erase(other.begin() + static_cast<long>(i));
      CHECK(refusal_of(joined(other)) != "");
      other = pages;
      other.insert(other.begin() + static_cast<long>(i), pages[i]);
      CHECK(refusal_of(joined(other)) != "");
      other = pages;
      std::swap(other[i - 1], other[i]);
      CHECK(refusal_of(joined(other)) != "");
      other = pages;
      other[i].bytes[other[i].bytes.size() / 2] ^= 1;
      CHECK(contains(refusal_of(joined(other)), "a page with another checksum at byte"));
    }
  }
}

TEST_CASE("sound: Ogg that lost a page and was renumbered lacks samples that it promises") {
  for (const int format : {kVorbis, kOpus}) {
    CAPTURE(format);
    Pages pages = pages_of(long_file(format));
    pages.erase(pages.end() - 2);
    CHECK(refusal_of(renumbered(pages)) != "");
  }
}

TEST_CASE("sound: chained Ogg is refused, with the number of streams") {
  for (const int format : {kVorbis, kOpus}) {
    CAPTURE(format);
    const std::string& one = long_file(format);
    Pages second = pages_of(one);
    for (Page& page : second) page.set(14, 4, 7).seal();
    CHECK(contains(refusal_of(one + joined(second)), "2 streams one after another (chained)"));
    CHECK(contains(refusal_of(one + joined(second) + one), "3 streams one after another"));
    const std::string other = encoded(format, floats(tone(30'000)), 8000);
    CHECK(contains(refusal_of(one + other), "2 streams one after another"));
  }
}

TEST_CASE("sound: streams of Ogg side by side are refused") {
  Pages pages = pages_of(long_file(kVorbis));
  Page other = pages.front();
  other.set(14, 4, 7).seal();
  pages.insert(pages.begin() + 1, other);
  CHECK(contains(refusal_of(joined(pages)), "several streams at once"));
}

TEST_CASE("sound: nothing stands after Ogg's last page") {
  CHECK(contains(refusal_of(long_file(kOpus) + "abc"), "3 bytes after its last page"));
  Pages pages = pages_of(long_file(kOpus));
  pages.back().set(5, 1, 0).seal();
  CHECK(contains(refusal_of(joined(pages)), "truncated: its last page is missing"));
}

TEST_CASE("sound: the last page of Ogg promises what the packets have, less the filling") {
  for (const int format : {kVorbis, kOpus}) {
    CAPTURE(format);
    const Pages pages = pages_of(long_file(format));
    const auto ending_at = [&pages](std::uint64_t granule) {
      Pages made = pages;
      made.back().set(6, 8, granule).seal();
      return joined(made);
    };
    const std::uint64_t end = pages.back().granule();
    CHECK(contains(refusal_of(ending_at(end + 100'000)), "truncated: its pages promise"));
    CHECK(contains(refusal_of(ending_at(end / 2)), "ends at sample"));
    CHECK(contains(refusal_of(ending_at(kNoGranule - 5)), "no place in time"));
    // What fills the last packet is left out by the same means.
    CHECK(samples_of(ending_at(end - 30)) < 200'000);
  }
}

TEST_CASE("sound: Ogg that was cut out of a longer stream has the samples from there on") {
  Pages pages = pages_of(long_file(kVorbis));
  for (Page& page : pages) {
    if (page.granule() > 0 && page.granule() != kNoGranule) {
      page.set(6, 8, page.granule() + 1'000'000).seal();
    }
  }
  CHECK(samples_of(joined(pages)) == 200'000);
}

TEST_CASE("sound: FLAC in Ogg has the samples of the FLAC that went in") {
  const std::string flac = encoded(SF_FORMAT_FLAC | SF_FORMAT_PCM_16, floats(tone(20'000)));
  const std::string file = ogg_flac(flac, flac_frames_at(flac));
  CHECK(samples_of(file) == 20'000);
  check_cuts(file, 499);
  Pages pages = pages_of(file);
  pages.erase(pages.begin() + 3);
  CHECK(refusal_of(renumbered(pages)) != "");
}

TEST_CASE("sound: Ogg of something else than sound that is read is refused") {
  Pages pages = pages_of(long_file(kOpus));
  pages.front().bytes.replace(28, 8, "Speex   ");
  pages.front().seal();
  CHECK(contains(refusal_of(joined(pages)), "allowed: Vorbis, Opus, FLAC"));
}
