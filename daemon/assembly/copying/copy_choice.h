#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "daemon/assembly/copying/copy_ways.h"
#include "formats/formats.h"

namespace batchwright {

/// The way to copy: one way for all runs of at least kLeastStreamed bytes, std::memcpy() for what
/// is shorter. As it is made, std::memcpy() for all.
class CopyChoice {
 public:
  CopyChoice() = default;
  explicit CopyChoice(const CopyWay& way) : way_(&way) {}

  /// What a name stands for that check_copy() lets through. "auto": the fastest for this processor,
  /// from a table; nothing is measured.
  static CopyChoice of_name(std::string_view name);

  const CopyWay& for_run(std::size_t bytes) const {
    return bytes < kLeastStreamed ? plain_copy() : *way_;
  }

  /// Its name.
  std::string_view name() const { return way_->name; }

 private:
  /// Of a shorter run too little lies in whole cache lines.
  static constexpr std::size_t kLeastStreamed = 512;

  const CopyWay* way_ = &plain_copy();
};

inline constexpr std::string_view kAutoCopy = "auto";

/// Whether this processor has the way of that name; "auto" it has always.
/// Errors: bad_configuration, with the names that it has.
Result<void> check_copy(std::string_view name);

}  // namespace batchwright
