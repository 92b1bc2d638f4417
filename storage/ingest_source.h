#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/formats.h"
#include "storage/audio.h"
#include "storage/file_list.h"
#include "storage/front_end.h"
#include "storage/ordered_loader.h"

namespace batchwright {

/// Turns files of one kind into primary fields.
class IngestSource {
 public:
  virtual ~IngestSource() = default;

  virtual FieldSpec field() const = 0;
  /// How the field is made. A dataset that exists must have been made with the same.
  virtual std::vector<std::pair<std::string, std::string>> settings() const = 0;
  /// Threads: any number at once.
  /// Errors: invalid_argument, schema_mismatch; they name the file and concern it alone.
  virtual Result<Features> load(const std::filesystem::path& path) const = 0;
};

/// Extensions that the sources read.
std::span<const std::string_view> audio_extensions();
std::span<const std::string_view> npy_extensions();

struct AudioSourceOptions {
  FrontEndOptions front_end;
  ChannelChoice channels = ChannelChoice::only;
};

/// Sound to features. The first file that is audio sets the sample rate; one of another is an
/// error of that file.
/// Errors: invalid_argument: no file is audio, or options that do not go with the rate.
Result<std::unique_ptr<IngestSource>> audio_source(const AudioSourceOptions& options,
                                                   std::span<const SourceFile> files);

/// Arrays [T, D...] as they are. The first usable file sets dtype and D...; one of another
/// is an error of that file.
/// Errors: invalid_argument: no file is a usable array.
Result<std::unique_ptr<IngestSource>> npy_source(std::span<const SourceFile> files);

}  // namespace batchwright
