#include <fmt/core.h>
#include <sndfile.h>

#include <algorithm>
#include <array>
#include <vector>

#include "storage/features/sound/decoder.h"

namespace batchwright {
namespace {

struct CloseSound {
  void operator()(SNDFILE* sound) const noexcept { sf_close(sound); }
};
using Sound = std::unique_ptr<SNDFILE, CloseSound>;

/// Frames read at once of up to eight channels, and samples of more. Memory grows with what is
/// there, not with what a header promises, and a block stays in the cache.
constexpr std::size_t kBlockFrames = std::size_t{1} << 13;
constexpr std::size_t kBlockSamples = kBlockFrames * 8;

/// A file as libsndfile reads it: never by its name.
struct SndfileInput {
  explicit SndfileInput(const SoundBytes& all) : bytes(all), cursor(bytes) {}
  SndfileInput(const SndfileInput&) = delete;
  SndfileInput& operator=(const SndfileInput&) = delete;

  SoundBytes bytes;
  SoundCursor cursor;
};

SF_VIRTUAL_IO sndfile_calls() {
  SF_VIRTUAL_IO calls{};
  calls.get_filelen = [](void* user) {
    return static_cast<sf_count_t>(static_cast<SndfileInput*>(user)->bytes.size());
  };
  calls.tell = [](void* user) {
    return static_cast<sf_count_t>(static_cast<SndfileInput*>(user)->cursor.at());
  };
  calls.seek = [](sf_count_t offset, int whence, void* user) {
    SndfileInput& file = *static_cast<SndfileInput*>(user);
    const auto size = static_cast<sf_count_t>(file.bytes.size());
    const auto at = static_cast<sf_count_t>(file.cursor.at());
    const sf_count_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? at : size;
    const sf_count_t to = std::clamp(from + offset, sf_count_t{0}, size);
    file.cursor.go(static_cast<std::uint64_t>(to));
    return to;
  };
  calls.read = [](void* to, sf_count_t count, void* user) {
    const std::span out(static_cast<std::byte*>(to),
                        static_cast<std::size_t>(std::max<sf_count_t>(count, 0)));
    return static_cast<sf_count_t>(static_cast<SndfileInput*>(user)->cursor.read(out));
  };
  return calls;
}

/// Whether its samples have more than 16 bits. What is decoded from fewer bits than that, such as
/// Vorbis, has no more to tell.
bool is_wide(const SF_INFO& info) {
  constexpr std::array kWide = {SF_FORMAT_PCM_24, SF_FORMAT_PCM_32, SF_FORMAT_FLOAT,
                                SF_FORMAT_DOUBLE};
  return std::find(kWide.begin(), kWide.end(), info.format & SF_FORMAT_SUBMASK) != kWide.end();
}

/// Samples as libsndfile scales them. Those of 16 bits are scaled here, several at once.
class SndfileDecoder : public SoundDecoder {
 public:
  explicit SndfileDecoder(const SoundBytes& bytes) : input_(bytes) {}

  Result<void> open() {
    SF_VIRTUAL_IO calls = sndfile_calls();
    sound_.reset(sf_open_virtual(&calls, SFM_READ, &info_, &input_));
    if (!sound_) {
      return bad_container(fmt::format("not readable audio: {}", sf_strerror(nullptr)));
    }
    format_ = {static_cast<std::uint32_t>(info_.samplerate),
               static_cast<std::size_t>(info_.channels), is_wide(info_)};
    block_.resize(std::min(kBlockFrames, kBlockSamples / format_.channels) * format_.channels);
    if ((info_.format & SF_FORMAT_SUBMASK) == SF_FORMAT_PCM_16) words_.resize(block_.size());
    logged_ = log().size();
    return {};
  }

  const Format& format() const override { return format_; }

  std::span<const float> next() override {
    if (trouble_) return {};
    const auto most = static_cast<sf_count_t>(block_.size() / format_.channels);
    const sf_count_t frames = words_.empty() ? sf_readf_float(sound_.get(), block_.data(), most)
                                             : sf_readf_short(sound_.get(), words_.data(), most);
    // It goes on behind what is damaged, and each call forgets the error of the one before.
    if (sf_error(sound_.get()) != SF_ERR_NO_ERROR) trouble_ = sf_strerror(sound_.get());
    const std::size_t count =
        static_cast<std::size_t>(std::max<sf_count_t>(frames, 0)) * format_.channels;
    constexpr float kScale = 1.0F / 32768;
    for (std::size_t i = 0; i < std::min(count, words_.size()); ++i) {
      block_[i] = static_cast<float>(words_[i]) * kScale;
    }
    return std::span(block_).first(count);
  }

  bool seek(std::uint64_t sample) override {
    const auto place = static_cast<sf_count_t>(sample);
    const bool is_there = info_.seekable != 0 && sf_seek(sound_.get(), place, SEEK_SET) == place;
    logged_ = log().size();
    return is_there;
  }

  std::optional<std::string> trouble() const override {
    if (trouble_) return trouble_;
    // Of some damage (a block of ADPCM) it says so in its log alone, and decodes on.
    const std::string said = log().substr(logged_);
    for (std::size_t at = 0; at < said.size();) {
      const std::string line = said.substr(at, said.find('\n', at) - at);
      // How a call to libFLAC ended, at the end of the file, too; and what it makes of Ogg's pages,
      // whose order and end were looked at before. Damage of both is an error besides.
      const bool is_usual = line.starts_with("FLAC__stream_decoder_") || line.starts_with("Ogg : ");
      if (!line.empty() && !is_usual) return line;
      at += line.size() + 1;
    }
    return std::nullopt;
  }

 private:
  /// What libsndfile has noted of the file: of its header when it was opened, then of damage.
  std::string log() const {
    constexpr std::size_t kMost = std::size_t{1} << 15;
    std::string text(kMost, '\0');
    sf_command(sound_.get(), SFC_GET_LOG_INFO, text.data(), static_cast<int>(text.size()));
    return text.substr(0, text.find('\0'));
  }

  SndfileInput input_;
  SF_INFO info_{};
  Sound sound_;  // reads from `input_` until it is closed
  Format format_;
  std::vector<float> block_;
  std::vector<std::int16_t> words_;
  std::optional<std::string> trouble_;
  std::size_t logged_ = 0;  // bytes of its log that are no trouble
};

}  // namespace

Result<std::unique_ptr<SoundDecoder>> open_sndfile(const SoundContainer& sound) {
  auto decoder = std::make_unique<SndfileDecoder>(sound.bytes);
  if (auto opened = decoder->open(); !opened) return opened.error();
  return std::unique_ptr<SoundDecoder>(std::move(decoder));
}

}  // namespace batchwright
