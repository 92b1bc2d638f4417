#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/formats.h"
#include "storage/features/frontend/front_end.h"
#include "storage/features/sound/sound.h"
#include "storage/ingest/file_list.h"
#include "storage/ingest/ordered_loader.h"

namespace batchwright {

/// Turns files of one kind into fields, the first of which is the primary one.
class IngestSource {
 public:
  virtual ~IngestSource() = default;

  virtual std::vector<FieldSpec> fields() const = 0;
  /// The settings that made the fields. An existing dataset must have been made with the same.
  virtual std::vector<std::pair<std::string, std::string>> settings() const = 0;
  /// The values of a sequence, in the order of the fields. Threads: any number at once.
  /// Errors: invalid_argument, schema_mismatch; they name the file and concern it alone.
  virtual Result<Loaded> load(const SourceFile& file) const = 0;
  /// Bytes of memory that load() takes on its way, what it returns included, as far as is known
  /// before. Threads: any number at once.
  virtual std::uint64_t load_bytes(const SourceFile&) const { return 0; }
};

/// Extensions that the sources read.
std::span<const std::string_view> audio_extensions();
std::span<const std::string_view> npy_extensions();
std::span<const std::string_view> npz_extensions();

struct AudioSourceOptions {
  FrontEndOptions front_end;
  ChannelChoice channels = ChannelChoice::only;
  std::uint32_t sample_rate = 0;              ///< Hz; 0: that of most files.
  std::string rate_origin = "--sample-rate";  ///< The origin of the rate, for messages.
};

/// Sound to features. A file of another sample rate is an error of that file. Where no rate is
/// given, it is the one of most files, among up to 256 spread evenly over the list, and the lower
/// one of two that are equally frequent.
/// Errors: invalid_argument: no file is audio, or options that do not go with the rate.
Result<std::unique_ptr<IngestSource>> audio_source(const AudioSourceOptions& options,
                                                   std::span<const SourceFile> files);

/// How long a sound may be that is stored as sound, unless something else is said: a feed has all
/// of one in memory.
inline constexpr double kMaxStoredSeconds = 3600;

/// Sound that is stored as sound.
struct SoundSourceOptions {
  ChannelChoice channels = ChannelChoice::only;
  bool encoded = false;  ///< The bytes of whole files as they are; otherwise their samples.
  /// Of samples: int16 (rounded where a file has more bits) or float32. none: float32 if a file
  /// among up to 256 spread evenly over the list has more than 16 bits a sample, else int16, and a
  /// file with more is an error of that file.
  DType samples = DType::none;
  DType present = DType::none;  ///< That of the dataset that is there, if nothing was chosen.
  double max_seconds = kMaxStoredSeconds;  ///< A longer sequence is an error of its file.
};

/// Sound as it is, of any sample rates. T counts samples, found by decoding, never by what a header
/// says. Fields: `audio` [T] (int16 or float32, -1 .. 1), or `samples` [T] without content and
/// `encoded` [bytes]; and `rate`, without content, whose length is the sample rate in Hz.
std::unique_ptr<IngestSource> sound_source(const SoundSourceOptions& options,
                                           std::span<const SourceFile> files);

/// The conversion of a field's elements.
struct ArrayCast {
  std::string field;  ///< Empty: a float type is for fields of floats, another for integers.
  DType to = DType::float32;
};

/// The options by which arrays become fields.
struct ArrayOptions {
  std::vector<ArrayCast> casts;
  /// Kinds of fields beside the primary one; those of others follow from their shapes.
  std::vector<std::pair<std::string, FieldKind>> kinds;
  bool allow_nonfinite = false;  ///< NaN and infinity are taken.
};

/// Arrays [T, D...] of .npy files. The first usable file sets dtype and D...; one of another is an
/// error of that file.
/// Errors: invalid_argument: no file is a usable array, or an option names no field.
Result<std::unique_ptr<IngestSource>> npy_source(const ArrayOptions& options,
                                                 std::span<const SourceFile> files);

struct NpzSourceOptions {
  ArrayOptions arrays;
  std::vector<std::string> fields;  ///< Names of arrays; empty: all of the first usable file.
  std::string primary;              ///< Empty: the only array, or `features`.
};

/// .npz files, each a sequence whose arrays are the fields. Errors: as npy_source().
Result<std::unique_ptr<IngestSource>> npz_source(const NpzSourceOptions& options,
                                                 std::span<const SourceFile> files);

struct KaldiSourceOptions {
  ArrayOptions arrays;
  /// Field and scp file or archive (KaldiTable::read()), of the primary field first.
  std::vector<std::pair<std::string, std::string>> tables;
};

struct KaldiInput {
  std::unique_ptr<IngestSource> source;
  std::vector<SourceFile> files;  ///< A key of the primary field's table each, in its order.
  /// For each field, the number of keys in its table that the primary field's table lacks.
  std::map<std::string, std::uint64_t> unmatched;
};

/// Kaldi's tables, each a field. Doubles become floats.
/// Errors: invalid_argument: a table that cannot be read, or as npy_source().
Result<KaldiInput> kaldi_source(const KaldiSourceOptions& options);

}  // namespace batchwright
