#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// The bytes of a file of sound, in memory or on the disk, read in the same way: what is decoded
/// where a file is taken in decodes wherever its bytes lie later.
///
/// Parts may be left out, and a few bytes be others than in the file: sizes of a header that are
/// put right. Copies share the file. Lifetime: bytes in memory outlive it.
/// Threads: any number at once.
class SoundBytes {
 public:
  static SoundBytes in_memory(std::span<const std::byte> file);
  /// Errors: invalid_argument, without the file's name: it cannot be opened, or is no file.
  static Result<SoundBytes> open(const std::filesystem::path& path);

  std::uint64_t size() const { return pieces_.empty() ? 0 : pieces_.back().end; }

  /// Reads up to out.size() bytes from `at` on; fewer at the end, or where the disk fails.
  std::size_t read(std::uint64_t at, std::span<std::byte> out) const;
  /// The bytes as text; shorter at the end.
  std::string text(std::uint64_t at, std::size_t size) const;
  /// An unsigned number of sizeof(T) bytes; nothing at the end.
  template <class T>
  std::optional<T> number(std::uint64_t at, bool is_big_endian = false) const {
    std::byte bytes[sizeof(T)];
    if (read(at, bytes) != sizeof(T)) return std::nullopt;
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      const std::size_t place = is_big_endian ? i : sizeof(T) - 1 - i;
      number = number << 8 | std::to_integer<std::uint64_t>(bytes[place]);
    }
    return static_cast<T>(number);
  }

  /// Bytes [begin, end), as far as there are.
  SoundBytes part(std::uint64_t begin, std::uint64_t end) const;
  /// The same with others in the place of those at `at`.
  SoundBytes with(std::uint64_t at, std::string_view bytes) const;
  /// These and `other` behind them, of the same file.
  void append(const SoundBytes& other);

  /// The disk's error, if it had one.
  std::optional<std::string> disk_error() const;

 private:
  struct File {
    Descriptor descriptor;
    std::atomic<int> error{0};
  };
  using Source = std::variant<std::span<const std::byte>, std::shared_ptr<File>>;
  /// Bytes in a row, up to `end` of all: of the file from `place` on, or those of `text`.
  struct Piece {
    std::uint64_t end = 0;
    std::uint64_t place = 0;
    std::shared_ptr<const std::string> text;
  };

  SoundBytes(Source source, std::uint64_t size);
  std::size_t read_source(std::uint64_t at, std::span<std::byte> out) const;

  Source source_;
  std::vector<Piece> pieces_;  // none is empty
};

/// Reads a file forwards, some thousand bytes at once. Threads: one at a time.
class SoundCursor {
 public:
  explicit SoundCursor(const SoundBytes& bytes) : bytes_(bytes), buffer_(kBufferBytes) {}

  std::uint64_t at() const { return at_; }
  void go(std::uint64_t at) { at_ = at; }
  std::size_t read(std::span<std::byte> out);

 private:
  static constexpr std::size_t kBufferBytes = std::size_t{1} << 15;

  const SoundBytes& bytes_;
  std::uint64_t at_ = 0;
  std::vector<std::byte> buffer_;
  std::uint64_t begin_ = 0;  // of what the buffer has
  std::size_t filled_ = 0;
};

}  // namespace batchwright
