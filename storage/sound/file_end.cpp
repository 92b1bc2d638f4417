#include "storage/sound/file_end.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <fstream>
#include <string_view>
#include <vector>

#include "storage/sound/flac_end.h"

namespace batchwright {
namespace {

/// Writers to a pipe put 0 or nearly the largest number where they cannot know; such a file is
/// whole.
constexpr std::uint64_t kStreamed = 0x7fff0000;

template <class T>
T number_in(std::ifstream& file) {
  T number{};
  file.read(reinterpret_cast<char*>(&number), sizeof number);
  return file ? number : T{};
}

/// Whether the samples of a WAV file are fewer than its `data` chunk says, which libsndfile
/// repairs in silence. RIFF: "RIFF", bytes u32, "WAVE", then chunks: name, bytes u32, content, and
/// a byte when their number is odd. RF64 has the bytes of `data` in its chunk `ds64`.
std::optional<std::string> cut_wav(const std::filesystem::path& path, std::uint64_t file_bytes) {
  using Name = std::array<char, 4>;
  const auto is = [](const Name& name, std::string_view text) {
    return std::string_view(name.data(), name.size()) == text;
  };
  std::ifstream file(path, std::ios::binary);
  const Name form = number_in<Name>(file);
  // The size of the whole, which a writer to a pipe cannot know.
  number_in<std::uint32_t>(file);
  if ((!is(form, "RIFF") && !is(form, "RF64")) || !is(number_in<Name>(file), "WAVE")) {
    return std::nullopt;
  }
  std::uint64_t long_bytes = 0;  // of `data`, as ds64 says
  for (std::uint64_t at = 12; at + 8 <= file_bytes;) {
    file.seekg(static_cast<std::streamoff>(at));
    const Name name = number_in<Name>(file);
    const std::uint64_t bytes = number_in<std::uint32_t>(file);
    if (!file) return std::nullopt;
    at += 8;
    if (is(name, "data")) {
      // RF64 puts this number where the true one does not fit 32 bits.
      const bool is_long = bytes == 0xffffffff && long_bytes > 0;
      const std::uint64_t promised = is_long ? long_bytes : bytes;
      const std::uint64_t there = file_bytes - at;
      if (promised <= there || (!is_long && promised >= kStreamed)) return std::nullopt;
      return fmt::format("its header promises {} bytes of samples, the file has {}", promised,
                         there);
    }
    if (is(name, "ds64")) {
      number_in<std::uint64_t>(file);  // bytes of the whole file
      long_bytes = number_in<std::uint64_t>(file);
    }
    at += bytes + bytes % 2;
  }
  return std::nullopt;
}

/// What libsndfile notices about an Ogg file that was cut.
std::optional<std::string> cut_ogg(std::string_view log) {
  // libsndfile's own words, in its log alone: it reads such a file without an error.
  if (log.find("without an End-Of-Stream flag") == log.npos) return std::nullopt;
  return "its last page is missing";
}

/// Whether a FLAC file that does not say how long it is ends within a frame.
std::optional<std::string> cut_flac(const std::filesystem::path& path, std::uint64_t file_bytes) {
  // The end alone: no frame takes more (flac_end.h).
  std::vector<std::byte> tail(std::min<std::uint64_t>(file_bytes, kFlacTailBytes));
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(file_bytes - tail.size()));
  file.read(reinterpret_cast<char*>(tail.data()), static_cast<std::streamsize>(tail.size()));
  if (file && ends_with_flac_frame(tail)) return std::nullopt;
  return "it does not end with a whole frame";
}

}  // namespace

std::optional<std::string> missing_end(const std::filesystem::path& path,
                                       std::string_view header_log, bool endless_flac) {
  if (auto cut = cut_ogg(header_log)) return cut;
  std::error_code failed;
  const std::uint64_t file_bytes = std::filesystem::file_size(path, failed);
  if (auto cut = cut_wav(path, file_bytes)) return cut;
  return endless_flac ? cut_flac(path, file_bytes) : std::nullopt;
}

}  // namespace batchwright
