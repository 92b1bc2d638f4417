#include "storage/features/sound/audio.h"

// Of a minimal build, which decodes nothing: sound that is stored as samples needs no decoder.

namespace batchwright {

Result<AudioExtent> decode_bytes(std::span<const std::byte> /*file*/, ChannelChoice /*channels*/,
                                 const TakeSamples& /*take*/, std::uint64_t /*most*/) {
  return Error{ErrorCode::unsupported,
               "a minimal build decodes no sound; store it as samples (batchwright ingest audio "
               "--store pcm)"};
}

}  // namespace batchwright
