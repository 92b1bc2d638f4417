#include "storage/features/sound/files/container.h"

#include <fmt/core.h>

#include <array>

namespace batchwright {
namespace {

constexpr std::string_view kAllowedSound =
    "RIFF, RIFX, RF64 and W64 WAVE, FLAC, Ogg (Vorbis, Opus, FLAC), MP3, SPHERE, AIFF, AU";

/// What other files begin with, and what they are.
struct OtherKind {
  std::size_t at;
  std::string_view mark;
  std::string_view name;
};
constexpr std::array kOthers = {
    OtherKind{0, "caff", "CAF"},
    OtherKind{0, "Creative Voice File", "VOC"},
    OtherKind{0, "BW64", "BW64 WAVE"},
    OtherKind{8, "8SVX", "8SVX"},
    OtherKind{8, "16SV", "16SV"},
    OtherKind{8, "AVI ", "AVI"},
    OtherKind{4, "ftyp", "MP4"},
    OtherKind{0, "\x1a\x45\xdf\xa3", "Matroska or WebM"},
    OtherKind{0, "\x30\x26\xb2\x75", "ASF (WMA)"},
    OtherKind{0, "#!AMR", "AMR"},
    OtherKind{0, "ajkg", "shorten"},
    OtherKind{0, "wvpk", "WavPack"},
    OtherKind{0, "MAC ", "Monkey's Audio"},
    OtherKind{0, "2BIT", "AVR"},
    OtherKind{0, "PVF1", "PVF"},
    OtherKind{0, " paf", "PAF"},
    OtherKind{0, "fap ", "PAF"},
    OtherKind{0, "\x64\xa3", "IRCAM"},
    OtherKind{1, "\xa3\x01", "IRCAM"},
    OtherKind{1, "\xa3\x02", "IRCAM"},
    OtherKind{0, "MATLAB 5.0 MAT-file", "MAT"},
    OtherKind{0, "Extended Instrument: ", "XI"},
    OtherKind{0, "ALawSoundFile**", "WVE"},
    OtherKind{0, "\xf0\x7e", "SDS"},
};

Error not_taken(const SoundBytes& file) {
  constexpr std::size_t kShown = 8;
  const std::string begin = file.text(0, 32);
  for (const OtherKind& kind : kOthers) {
    if (begin.size() > kind.at && std::string_view(begin).substr(kind.at).starts_with(kind.mark)) {
      return bad_container(
          fmt::format("not readable audio: it is {}; allowed: {}", kind.name, kAllowedSound));
    }
  }
  // Of MPEG audio the first two bytes tell the layer; 0 there is AAC (ADTS).
  const auto byte = [&begin](std::size_t i) -> std::uint32_t {
    return i < begin.size() ? static_cast<unsigned char>(begin[i]) : 0;
  };
  if (byte(0) == 0xff && (byte(1) & 0xe0) == 0xe0) {
    const std::uint32_t layer = 4 - (byte(1) >> 1 & 3);
    const std::string name = layer == 4 ? "AAC" : fmt::format("MPEG audio of layer {}", layer);
    return bad_container(
        fmt::format("not readable audio: it begins as {} does; allowed: {}", name, kAllowedSound));
  }
  std::string shown;
  for (const char c : begin.substr(0, kShown)) {
    shown += fmt::format(" {:02x}", static_cast<unsigned char>(c));
  }
  return bad_container(
      fmt::format("not readable audio: it begins with{}; allowed: {}", shown, kAllowedSound));
}

/// Without tags of ID3v2 at its begin.
SoundBytes without_id3(const SoundBytes& file) {
  SoundBytes rest = file;
  for (std::uint64_t tag = id3_bytes(rest, 0); tag > 0; tag = id3_bytes(rest, 0)) {
    rest = rest.part(tag, rest.size());
  }
  return rest;
}

using Look = Result<SoundContainer> (*)(const SoundBytes&);

/// The function that knows the file by what it begins with; null for MP3 and what is unknown.
Look look_for(const SoundBytes& file) {
  constexpr std::string_view kW64("riff\x2E\x91\xCF\x11\xA5\xD6\x28\xDB\x04\xC1\x00\x00", 16);
  const std::string begin = file.text(0, 16);
  const std::string_view text(begin);
  const std::string_view form = text.substr(std::min<std::size_t>(8, text.size()), 4);
  const std::string_view name = text.substr(0, 4);
  if ((name == "RIFF" || name == "RIFX" || name == "RF64") && form == "WAVE") return look_at_riff;
  if (text == kW64) return look_at_w64;
  if (name == "FORM" && (form == "AIFF" || form == "AIFC")) return look_at_aiff;
  if (name == ".snd" || name == "dns.") return look_at_au;
  if (text.starts_with("NIST_1A\n")) return look_at_sphere;
  if (name == "fLaC") return look_at_flac;
  if (name == "OggS") return look_at_ogg;
  return nullptr;
}

}  // namespace

Result<SoundContainer> look_at_sound(const SoundBytes& file) {
  if (file.size() == 0) return bad_container("the file is empty");
  const SoundBytes sound = without_id3(file);
  auto found = [&]() -> Result<SoundContainer> {
    if (const Look look = look_for(sound)) return look(sound);
    if (const auto first = find_mp3(sound)) return look_at_mp3(sound, *first);
    return not_taken(sound);
  }();
  if (const auto failed = file.disk_error()) return bad_container(*failed);
  return found;
}

Result<SoundContainer> look_at_header(const SoundBytes& file) {
  const SoundBytes sound = without_id3(file);
  const Look look = look_for(sound);
  constexpr std::uint64_t kCodecAt = 28;  // of the first page of Ogg, if it has one packet
  if (look == look_at_ogg && sound.text(kCodecAt + 1, 4) != "FLAC") return SoundContainer{sound};
  if (look != nullptr) return look(sound);
  if (const auto first = find_mp3(sound)) {
    SoundContainer found{sound.part(*first, sound.size())};
    found.is_mp3 = true;
    return found;
  }
  return look_at_sound(file);
}

}  // namespace batchwright
