#pragma once

#include <filesystem>
#include <vector>

#include "storage/dataset/dataset.h"

namespace batchwright {

/// Decodes each sound of a dataset that is stored encoded, and compares its length and rate with
/// those of its record: what is damaged, and what an earlier version took otherwise, is among the
/// result, by ordinal. Nothing of a dataset without such sound is read. `threads` may be 1.
/// Errors: those of Catalog::open(); unsupported in a build without decoders. Threads: any.
Result<std::vector<BrokenRecord>> verify_sound(const std::filesystem::path& dataset,
                                               unsigned threads, const VerifyProgress& progress);

}  // namespace batchwright
