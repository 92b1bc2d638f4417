#include "storage/features/sound/files/sound_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace batchwright {

SoundBytes::SoundBytes(Source source, std::uint64_t size) : source_(std::move(source)) {
  if (size > 0) pieces_.push_back({size, 0, nullptr});
}

SoundBytes SoundBytes::in_memory(std::span<const std::byte> file) {
  return {Source(file), file.size()};
}

Result<SoundBytes> SoundBytes::open(const std::filesystem::path& path) {
  const auto failed = [](int error) {
    return Error{ErrorCode::invalid_argument, std::strerror(error)};
  };
  // Not blocked by a pipe, which is then refused.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return failed(errno);
  struct stat found {};
  if (::fstat(file.get(), &found) != 0) return failed(errno);
  if (S_ISDIR(found.st_mode)) return failed(EISDIR);
  if (!S_ISREG(found.st_mode)) {
    return Error{ErrorCode::invalid_argument, "not a regular file"};
  }
  auto source = std::make_shared<File>();
  source->descriptor = std::move(file);
  return SoundBytes(Source(std::move(source)), static_cast<std::uint64_t>(found.st_size));
}

std::size_t SoundBytes::read_source(std::uint64_t at, std::span<std::byte> out) const {
  if (const auto* const memory = std::get_if<std::span<const std::byte>>(&source_)) {
    std::memcpy(out.data(), memory->data() + at, out.size());
    return out.size();
  }
  File& file = *std::get<std::shared_ptr<File>>(source_);
  std::size_t got = 0;
  while (got < out.size()) {
    const ssize_t count = ::pread(file.descriptor.get(), out.data() + got, out.size() - got,
                                  static_cast<off_t>(at + got));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) file.error = errno;
    if (count <= 0) break;
    got += static_cast<std::size_t>(count);
  }
  return got;
}

std::size_t SoundBytes::read(std::uint64_t at, std::span<std::byte> out) const {
  auto piece = std::upper_bound(pieces_.begin(), pieces_.end(), at,
                                [](std::uint64_t place, const Piece& p) { return place < p.end; });
  std::size_t got = 0;
  for (; piece != pieces_.end() && got < out.size(); ++piece) {
    const std::uint64_t begin = piece == pieces_.begin() ? 0 : std::prev(piece)->end;
    const std::uint64_t within = at + got - begin;
    const std::size_t count = std::min<std::uint64_t>(out.size() - got, piece->end - at - got);
    const auto to = out.subspan(got, count);
    if (piece->text) {
      std::memcpy(to.data(), piece->text->data() + piece->place + within, count);
    } else if (const std::size_t read = read_source(piece->place + within, to); read < count) {
      return got + read;
    }
    got += count;
  }
  return got;
}

std::string SoundBytes::text(std::uint64_t at, std::size_t size) const {
  std::string text(at < this->size() ? std::min<std::uint64_t>(size, this->size() - at) : 0, '\0');
  text.resize(read(at, std::as_writable_bytes(std::span(text))));
  return text;
}

SoundBytes SoundBytes::part(std::uint64_t begin, std::uint64_t end) const {
  SoundBytes made(source_, 0);
  std::uint64_t piece_begin = 0;
  for (const Piece& piece : pieces_) {
    const std::uint64_t from = std::max(begin, piece_begin);
    const std::uint64_t to = std::min(end, piece.end);
    if (from < to) {
      made.pieces_.push_back(
          {made.size() + (to - from), piece.place + (from - piece_begin), piece.text});
    }
    piece_begin = piece.end;
  }
  return made;
}

SoundBytes SoundBytes::with(std::uint64_t at, std::string_view bytes) const {
  SoundBytes made = part(0, at);
  made.pieces_.push_back({made.size() + bytes.size(), 0, std::make_shared<std::string>(bytes)});
  made.append(part(at + bytes.size(), size()));
  return made;
}

void SoundBytes::append(const SoundBytes& other) {
  const std::uint64_t before = size();
  for (const Piece& piece : other.pieces_) {
    pieces_.push_back({before + piece.end, piece.place, piece.text});
  }
}

std::optional<std::string> SoundBytes::disk_error() const {
  const auto* const file = std::get_if<std::shared_ptr<File>>(&source_);
  const int error = file == nullptr ? 0 : (*file)->error.load();
  if (error == 0) return std::nullopt;
  return std::strerror(error);
}

std::size_t SoundCursor::read(std::span<std::byte> out) {
  std::size_t got = 0;
  while (got < out.size()) {
    if (at_ < begin_ || at_ >= begin_ + filled_) {
      // What is larger than the buffer goes past it.
      if (out.size() - got >= buffer_.size()) {
        const std::size_t count = bytes_.read(at_, out.subspan(got));
        at_ += count;
        return got + count;
      }
      begin_ = at_;
      filled_ = bytes_.read(at_, buffer_);
      if (filled_ == 0) break;
    }
    const std::size_t within = at_ - begin_;
    const std::size_t count = std::min(out.size() - got, filled_ - within);
    std::memcpy(out.data() + got, buffer_.data() + within, count);
    got += count;
    at_ += count;
  }
  return got;
}

}  // namespace batchwright
