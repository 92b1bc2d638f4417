#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "storage/features/sound/files/container.h"
#include "storage/features/sound/files/mp3_side.h"
#include "storage/features/sound/files/wave_format.h"

// MP3 is frames in a row, each of which says how long it is in its first four bytes. The first one
// may be no sound, and describe the others ("Xing", "Info", "VBRI"): how many there are is then a
// claim. Tags stand before, behind and, where files were joined, between them. Decoders look for
// the next frame wherever one is missing, estimate how many there are, put silence in the place of
// one that they cannot decode, and say so on standard error or not at all.

namespace batchwright {
namespace {

/// Reads heads of frames forwards.
class Mp3Heads {
 public:
  explicit Mp3Heads(const SoundBytes& file) : cursor_(file) {}

  std::optional<Mp3Head> at(std::uint64_t place) {
    cursor_.go(place);
    read_ = cursor_.read(bytes_);
    return mp3_head(std::span(bytes_).first(read_));
  }
  /// Of the frame of the last call.
  Mp3Side side(const Mp3Head& head) const { return mp3_side(head, std::span(bytes_).first(read_)); }

 private:
  SoundCursor cursor_;
  std::array<std::byte, kMostMp3Side> bytes_{};
  std::size_t read_ = 0;
};

/// Bytes of a tag that stands at a place; 0 where none does.
std::uint64_t tag_bytes(const SoundBytes& file, std::uint64_t at) {
  constexpr std::uint64_t kId3v1 = 128;
  constexpr std::uint64_t kApe = 32;
  constexpr std::uint64_t kLyricsMost = 6000;
  const std::string mark = file.text(at, 11);
  if (mark.starts_with("TAG")) return std::min(kId3v1, file.size() - at);
  if (mark.starts_with("ID3")) return id3_bytes(file, at);
  if (mark.starts_with("APETAGEX")) {
    const std::uint64_t bytes = file.number<std::uint32_t>(at + 12).value_or(0);
    const bool is_head = (file.number<std::uint32_t>(at + 20).value_or(0) >> 29 & 1) != 0;
    return is_head ? bytes + kApe : kApe;
  }
  if (mark.starts_with("LYRICSBEGIN")) {
    const std::string text = file.text(at, kLyricsMost);
    const std::size_t end = std::min(text.find("LYRICSEND"), text.find("LYRICS200"));
    return end == text.npos ? 0 : end + 9;
  }
  return 0;
}

/// How many frames a first frame that is no sound says there are.
struct Mp3Claim {
  bool is_one = false;  ///< Whether it is such a frame.
  std::optional<std::uint64_t> frames;
  std::uint64_t delay = 0;    ///< Samples that the encoder put before the sound,
  std::uint64_t filling = 0;  ///< and behind it.
};

/// Samples that the decoder's filters take.
constexpr std::uint64_t kDecoderDelay = 529;

/// What LAME has behind the fields that `flags` tell of: its name in 9 bytes, and 12 bytes further
/// on 12 bits each of delay and filling.
void read_delay(const SoundBytes& file, std::uint64_t at, std::uint32_t flags, Mp3Claim& claim) {
  std::uint64_t place = at + ((flags & 1) != 0 ? 4 : 0) + ((flags & 2) != 0 ? 4 : 0) +
                        ((flags & 4) != 0 ? 100 : 0) + ((flags & 8) != 0 ? 4 : 0);
  constexpr std::uint64_t kDelays = 21;
  place += kDelays;
  const std::uint32_t both = file.number<std::uint32_t>(place, true).value_or(0) >> 8;
  claim.delay = both >> 12;
  claim.filling = both & 0xfff;
}

Mp3Claim read_claim(const SoundBytes& file, std::uint64_t at, const Mp3Head& head) {
  for (const std::uint64_t crc : {std::uint64_t{0}, std::uint64_t{2}}) {
    if (crc > 0 && !head.has_crc) continue;
    const std::uint64_t place = at + Mp3Head::kBytes + head.side_bytes() + crc;
    const std::string mark = file.text(place, 4);
    if (mark != "Xing" && mark != "Info") continue;
    const auto flags = file.number<std::uint32_t>(place + 4, true).value_or(0);
    const auto frames = file.number<std::uint32_t>(place + 8, true);
    const bool has_frames = (flags & 1) != 0 && frames.value_or(0) > 0;
    Mp3Claim claim{true, has_frames ? std::optional<std::uint64_t>(*frames) : std::nullopt};
    read_delay(file, place + 8, flags, claim);
    return claim;
  }
  constexpr std::uint64_t kVbriSide = 32;
  constexpr std::uint64_t kVbriFrames = 14;
  constexpr std::uint64_t kMostVbriDelay = 4095;
  const std::uint64_t place = at + Mp3Head::kBytes + kVbriSide;
  if (file.text(place, 4) != "VBRI") return {};
  const auto frames = file.number<std::uint32_t>(place + kVbriFrames, true);
  return {true, frames.value_or(0) > 0 ? std::optional<std::uint64_t>(*frames) : std::nullopt,
          kMostVbriDelay, kMostVbriDelay};
}

/// The frames of a file, one after another.
struct Mp3Walk {
  SoundBytes sound;  // frames, without the tags between them
  std::uint64_t frames = 0;
  std::vector<std::uint64_t> index = {};  // where every kIndexStep'th begins, among `sound`
  std::uint64_t lacking = 0;  // frames at the begin up to the last that needs what is not there
  std::uint64_t before = 0;   // bytes of coded sound that frames may reach back to

  /// Takes a frame that is sound. Errors: it cannot be decoded.
  Result<void> take(const Mp3Head& head, const Mp3Side& side, std::uint64_t at);
};

Result<void> Mp3Walk::take(const Mp3Head& head, const Mp3Side& side, std::uint64_t at) {
  ++frames;
  if (side.fault) {
    return bad_container(fmt::format("damaged: the {}th frame, at byte {}, cannot be decoded: {}",
                                     frames, at, *side.fault));
  }
  if (side.back > before) lacking = frames;
  constexpr std::uint64_t kFarthest = 511;
  before = std::min(kFarthest, before + head.bytes - head.side_at() - head.side_bytes());
  return {};
}

/// `described`: whether the first frame describes the others, and is none of them.
/// Errors: what lies there is no frame, or one that is cut, or of another rate or channels.
Result<Mp3Walk> walk_mp3(const SoundBytes& file, std::uint64_t first, const Mp3Head& like,
                         bool described) {
  Mp3Walk walk{file.part(0, 0)};
  Mp3Heads heads(file);
  std::uint64_t run = first;  // begin of the frames since the last tag
  std::uint64_t at = first;
  while (at < file.size()) {
    const auto head = heads.at(at);
    if (head && head->bytes > 0 && head->is_like(like)) {
      if (at + head->bytes > file.size()) {
        return bad_container(fmt::format("truncated: its last frame, the {}th, has {} of {} bytes",
                                         walk.frames + 1, file.size() - at, head->bytes));
      }
      const bool is_sound = !(described && at == first);
      if (is_sound && walk.frames % SoundContainer::kIndexStep == 0) {
        walk.index.push_back(walk.sound.size() + (at - run));
      }
      if (is_sound) {
        if (auto taken = walk.take(*head, heads.side(*head), at); !taken) return taken.error();
      }
      at += head->bytes;
      continue;
    }
    const std::uint64_t tag = tag_bytes(file, at);
    if (tag > 0) {
      walk.sound.append(file.part(run, at));
      at = run = std::min(file.size(), at + tag);
      continue;
    }
    if (is_padding(file, at, kMostFilling)) break;
    if (head && head->layer == like.layer && head->bytes > 0) {
      return bad_container(
          fmt::format("{} channels at {} Hz up to byte {}, {} at {} Hz from there on",
                      like.channels, like.rate, at, head->channels, head->rate));
    }
    const std::uint64_t left = file.size() - at;
    if (left < 4) {
      return bad_container(
          fmt::format("truncated: its last frame, the {}th, has {} bytes", walk.frames + 1, left));
    }
    return bad_container(
        fmt::format("damaged: no frame at byte {}, after {} frames", at, walk.frames));
  }
  walk.sound.append(file.part(run, std::min(at, file.size())));
  return walk;
}

}  // namespace

std::uint64_t id3_bytes(const SoundBytes& file, std::uint64_t at) {
  constexpr std::uint64_t kHead = 10;
  const std::string head = file.text(at, kHead);
  if (head.size() < kHead || !head.starts_with("ID3")) return 0;
  std::uint64_t bytes = 0;
  for (std::size_t i = 6; i < kHead; ++i) {
    const auto seven = static_cast<unsigned char>(head[i]);
    if (seven > 127) return 0;
    bytes = bytes << 7 | seven;
  }
  const bool has_foot = (static_cast<unsigned char>(head[5]) & 0x10) != 0;
  return kHead + bytes + (has_foot ? kHead : 0);
}

std::optional<std::uint64_t> find_mp3(const SoundBytes& file) {
  // As many frames in a row as chance does not make, or all of a short file.
  constexpr int kInRow = 4;
  constexpr std::uint64_t kFarthest = std::uint64_t{1} << 16;
  Mp3Heads heads(file);
  const std::string begin = file.text(0, kFarthest);
  for (std::size_t at = begin.find('\xff'); at != begin.npos; at = begin.find('\xff', at + 1)) {
    const auto first = heads.at(at);
    if (!first) continue;
    std::uint64_t next = at;
    int seen = 0;
    for (auto head = first; head && head->is_like(*first) && seen < kInRow; ++seen) {
      if (head->bytes == 0) return first->layer == 3 && at == 0 ? std::optional(at) : std::nullopt;
      next += head->bytes;
      if (next >= file.size() && (seen > 0 || at == 0)) return at;
      head = heads.at(next);
    }
    if (seen == kInRow || (seen > 0 && tag_bytes(file, next) > 0)) return at;
  }
  return std::nullopt;
}

Result<SoundContainer> look_at_mp3(const SoundBytes& file, std::uint64_t first) {
  Mp3Heads heads(file);
  const auto like = heads.at(first);
  if (!like) return bad_container("damaged: no frame of MPEG audio");
  if (like->layer != 3) {
    return bad_container(fmt::format(
        "not readable audio: MPEG audio of layer {}; allowed: layer 3 (MP3)", like->layer));
  }
  if (like->bytes == 0) return bad_container("not readable audio: MP3 of a free bit rate");
  const Mp3Claim claim = read_claim(file, first, *like);
  auto walk = walk_mp3(file, first, *like, claim.is_one);
  if (!walk) return walk.error();
  const std::uint64_t frames = walk->frames;
  if (frames == 0) return bad_container("no samples: the file has a header only");
  // It may count itself, and encoders differ by one in what they count behind it.
  const bool is_right =
      !claim.frames || (*claim.frames + 1 >= frames && *claim.frames <= frames + 1);
  if (!is_right) {
    return bad_container(
        fmt::format("{}its first frame promises {} frames, the file has {}{}",
                    *claim.frames > frames ? "truncated: " : "", *claim.frames, frames,
                    *claim.frames < frames ? "; files of MP3 one after another are to be taken "
                                             "apart, or written anew"
                                           : ""));
  }
  SoundContainer found{walk->sound};
  found.is_mp3 = true;
  found.frames = frames;
  const std::uint64_t of_frame = like->version == 3 ? 1152 : 576;
  found.left_out = (claim.delay + kDecoderDelay) / of_frame +
                   (claim.filling - std::min(claim.filling, kDecoderDelay)) / of_frame;
  found.lacking_samples = walk->lacking * of_frame;
  found.frame_index = std::move(walk->index);
  return found;
}

}  // namespace batchwright
