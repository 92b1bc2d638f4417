#include <fmt/core.h>
#include <mpg123.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "storage/features/sound/decoder.h"

namespace batchwright {
namespace {

struct DeleteMpg123 {
  void operator()(mpg123_handle* handle) const noexcept { mpg123_delete(handle); }
};
using Mpg123 = std::unique_ptr<mpg123_handle, DeleteMpg123>;

/// Samples of a granule, the smallest part of a frame that is decoded by itself.
constexpr std::size_t kGranule = 576;

class Mp3Decoder : public SoundDecoder {
 public:
  explicit Mp3Decoder(const SoundContainer& sound)
      : bytes_(sound.bytes),
        cursor_(bytes_),
        frames_(sound.frames),
        left_out_(sound.left_out),
        index_(sound.frame_index) {}

  Result<void> open() {
    int failed = MPG123_OK;
    handle_.reset(mpg123_new(nullptr, &failed));
    if (!handle_) return bad_container(mpg123_plain_strerror(failed));
    mpg123_handle* const handle = handle_.get();
    // Quiet: what it would print on the standard error is looked for in what it gives.
    constexpr long kFlags = MPG123_QUIET | MPG123_FORCE_FLOAT | MPG123_GAPLESS | MPG123_SKIP_ID3V2;
    mpg123_param(handle, MPG123_ADD_FLAGS, kFlags, 0);
    mpg123_param(handle, MPG123_REMOVE_FLAGS, MPG123_AUTO_RESAMPLE, 0);
    if (!index_.empty()) {
      mpg123_param(handle, MPG123_INDEX_SIZE, static_cast<long>(index_.size()), 0);
    }
    mpg123_replace_reader_handle(handle, read, lseek, nullptr);
    long rate = 0;
    int channels = 0;
    int encoding = 0;
    if (mpg123_open_handle(handle, this) != MPG123_OK ||
        mpg123_getformat(handle, &rate, &channels, &encoding) != MPG123_OK ||
        encoding != MPG123_ENC_FLOAT_32 || rate <= 0 || channels <= 0) {
      return bad_container(fmt::format("not readable audio: {}", mpg123_strerror(handle)));
    }
    format_ = {static_cast<std::uint32_t>(rate), static_cast<std::size_t>(channels), false};
    std::vector<off_t> places(index_.begin(), index_.end());
    if (!places.empty()) {
      mpg123_set_index(handle, places.data(), SoundContainer::kIndexStep, places.size());
    }
    return {};
  }

  const Format& format() const override { return format_; }

  std::span<const float> next() override {
    while (!trouble_) {
      off_t number = 0;
      unsigned char* audio = nullptr;
      std::size_t bytes = 0;
      const int said = mpg123_decode_frame(handle_.get(), &number, &audio, &bytes);
      if (said == MPG123_DONE) {
        if (from_begin_ && (decoded_ > frames_ || decoded_ + left_out_ < frames_)) {
          trouble_ = fmt::format("of {} frames {} can be decoded", frames_, decoded_);
        }
        break;
      }
      if (said != MPG123_OK && said != MPG123_NEW_FORMAT) {
        trouble_ = mpg123_strerror(handle_.get());
        break;
      }
      if (said == MPG123_OK) ++decoded_;
      if (bytes == 0) continue;
      // As libmpg123 aligns its buffer.
      const std::span block(reinterpret_cast<const float*>(audio), bytes / sizeof(float));
      if (breaks_off(block)) {
        trouble_ = fmt::format("frame {} cannot be decoded", number);
        break;
      }
      last_ = block.back();
      return block;
    }
    return {};
  }

  bool seek(std::uint64_t sample) override {
    last_ = 0;
    from_begin_ = false;
    const auto place = static_cast<off_t>(sample);
    return mpg123_seek(handle_.get(), place, SEEK_SET) == place;
  }

  std::optional<std::string> trouble() const override { return trouble_; }

 private:
  static ssize_t read(void* self, void* to, std::size_t count) {
    return static_cast<ssize_t>(static_cast<Mp3Decoder*>(self)->cursor_.read(
        std::span(static_cast<std::byte*>(to), count)));
  }

  static off_t lseek(void* self, off_t offset, int whence) {
    Mp3Decoder& file = *static_cast<Mp3Decoder*>(self);
    const auto size = static_cast<off_t>(file.bytes_.size());
    const auto at = static_cast<off_t>(file.cursor_.at());
    const off_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? at : size;
    const off_t to = std::clamp<off_t>(from + offset, 0, size);
    file.cursor_.go(static_cast<std::uint64_t>(to));
    return to;
  }

  /// Whether a granule is silent to its last bit where sound goes on up to its first sample. The
  /// filters let no sound end so; libmpg123 puts zeros in the place of what it cannot decode.
  bool breaks_off(std::span<const float> block) const {
    const std::size_t granule = kGranule * format_.channels;
    if (block.size() % granule != 0) return false;  // where sound begins and ends within a frame
    for (std::size_t end = block.size(); end >= granule; end -= granule) {
      const auto part = block.subspan(end - granule, granule);
      const float before = end > granule ? block[end - granule - 1] : last_;
      if (before != 0 && std::all_of(part.begin(), part.end(), [](float s) { return s == 0; })) {
        return true;
      }
    }
    return false;
  }

  SoundBytes bytes_;
  SoundCursor cursor_;
  std::uint64_t frames_;
  std::uint64_t left_out_;
  std::vector<std::uint64_t> index_;
  Mpg123 handle_;
  Format format_;
  float last_ = 0;  // sample of the frame before
  bool from_begin_ = true;
  std::uint64_t decoded_ = 0;  // frames
  std::optional<std::string> trouble_;
};

}  // namespace

Result<std::unique_ptr<SoundDecoder>> open_mp3(const SoundContainer& sound) {
  auto decoder = std::make_unique<Mp3Decoder>(sound);
  if (auto opened = decoder->open(); !opened) return opened.error();
  return std::unique_ptr<SoundDecoder>(std::move(decoder));
}

}  // namespace batchwright
