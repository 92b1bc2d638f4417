#pragma once

#include <cstddef>
#include <span>

#include "daemon/assembly/copying/copy_choice.h"
#include "daemon/assembly/padding.h"

namespace batchwright {

/// Copies one run, of any length and alignment, by the way given.
void copy_run(const CopyWay& way, std::byte* to, std::span<const std::byte> from);

/// Fills one run with padding, by the way given. `to` starts with a whole element.
void fill_run(const CopyWay& way, std::span<std::byte> to, const Padding& padding);

}  // namespace batchwright
