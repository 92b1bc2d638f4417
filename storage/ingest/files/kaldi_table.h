#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/formats.h"
#include "storage/ingest/files/array.h"
#include "storage/ingest/files/kaldi_range.h"

namespace batchwright {

/// The place of a key's value.
struct KaldiPlace {
  std::filesystem::path archive;
  std::uint64_t offset = 0;  ///< Bytes.
  std::optional<KaldiRange> range;
};

/// The keys of an scp file or an archive, in its order, and where their values are.
/// Immutable. Threads: any.
class KaldiTable {
 public:
  /// `name` is a file; "scp:" or "ark:" before it says what it is, otherwise a name that ends in
  /// .ark is an archive. Paths within an scp file count from the working folder, as in Kaldi, or
  /// else from the scp file's own folder.
  /// Errors: invalid_argument, naming file and line, or file and key: not readable, not such a
  /// table, compressed, a command (which is never run), a key twice.
  static Result<KaldiTable> read(const std::string& name);

  const std::filesystem::path& path() const { return path_; }
  const std::vector<std::string>& keys() const { return keys_; }
  bool contains(const std::string& key) const { return places_.contains(key); }

  /// Reads the value of a key. Threads: any number at once.
  /// Errors: invalid_argument, naming table, key and archive: there is no such key, the archive
  /// cannot be read or is cut off, or it is no value that kaldi_value.h reads.
  Result<Array> value(const std::string& key) const;

 private:
  Result<void> read_scp();
  Result<void> read_archive();
  Result<void> add(std::string key, KaldiPlace place, const std::string& where);

  std::filesystem::path path_;
  std::vector<std::string> keys_;
  std::unordered_map<std::string, KaldiPlace> places_;
};

}  // namespace batchwright
