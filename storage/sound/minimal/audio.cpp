#include "storage/sound/audio.h"

// Of a minimal build, which decodes nothing: sound that is stored as samples needs no decoder.

namespace batchwright {
namespace {

Error no_decoder() {
  return {ErrorCode::unsupported,
          "a minimal build decodes no sound; store it as samples (batchwright ingest audio --store "
          "pcm)"};
}

}  // namespace

Result<AudioHeader> read_audio_header(const std::filesystem::path& /*path*/) {
  return no_decoder();
}

std::uint64_t expected_samples(const std::filesystem::path& /*path*/, const SoundPart& /*part*/) {
  return 0;
}

Result<AudioExtent> decode_audio(const std::filesystem::path& /*path*/, ChannelChoice /*channels*/,
                                 const TakeSamples& /*take*/, const SoundPart& /*part*/,
                                 std::uint64_t /*most*/) {
  return no_decoder();
}

Result<AudioExtent> decode_bytes(std::span<const std::byte> /*file*/, ChannelChoice /*channels*/,
                                 const TakeSamples& /*take*/, std::uint64_t /*most*/) {
  return no_decoder();
}

Result<Audio> read_audio(const std::filesystem::path& /*path*/, ChannelChoice /*channels*/,
                         const SoundPart& /*part*/) {
  return no_decoder();
}

}  // namespace batchwright
