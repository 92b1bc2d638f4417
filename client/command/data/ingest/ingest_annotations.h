#pragma once

#include <span>
#include <string>
#include <utility>

#include "client/command/commands.h"

namespace batchwright {

/// "NAME=VALUE" in two; the name is empty where there is none.
std::pair<std::string, std::string> split_name(const std::string& text);

/// Annotations for the files, with the labels that the dataset or the call has for them.
/// Errors: those of Annotations::create(), and of files of labels.
Result<Annotations> annotate(const IngestOptions& options, AnnotationOptions wanted,
                             std::span<const SourceFile> files);

}  // namespace batchwright
