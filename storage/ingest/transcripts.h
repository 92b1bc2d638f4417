#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "formats/formats.h"

namespace batchwright {

/// The format of a line in a table of texts.
enum class TranscriptFormat : std::uint8_t {
  detect,       ///< Chosen by the first line: the first divider among TAB, | and blank.
  tab,          ///< key TAB text
  kaldi,        ///< key blank text; the text may be missing
  ljspeech,     ///< key|text, or key|text|normalised text, of which the last one is taken
  librispeech,  ///< Lines as in kaldi; a folder stands for all .trans.txt files below it.
};

using Texts = std::map<std::string, std::string, std::less<>>;

/// Reads a table of texts by key. A byte order mark, CR at the end of lines and empty lines are
/// passed over. Threads: any.
/// Errors: invalid_argument, naming file and line: not readable, not so divided, a key twice.
Result<Texts> read_transcripts(const std::filesystem::path& path, TranscriptFormat format);

/// The names that stand for a file: its full one, or otherwise the last part of its path below the
/// folder, since corpora give files short names. A short name that several keys have stands for
/// none.
class ShortNames {
 public:
  void add(std::string_view key);
  /// The entry of `texts` for `key`; end() when there is none.
  Texts::const_iterator find(const Texts& texts, std::string_view key) const;

 private:
  std::map<std::string, std::uint64_t, std::less<>> counts_;
};

}  // namespace batchwright
