// Loaded before a program's libraries (LD_PRELOAD): notes what it writes to data.mdb, and when the
// disk has it, in the file RECORD_TO. A call of the ledger's, RECORD_ACKS, is noted as such.
//
// A note: kind (w: written, d: written through, s: synced, r: data.mdb has
// its name, a: acknowledged), offset and size as
// 64-bit numbers of this machine, then the bytes.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

template <class Call>
Call* next(const char* name) {
  return reinterpret_cast<Call*>(dlsym(RTLD_NEXT, name));
}

std::string path_of(int file) {
  std::array<char, 4096> path{};
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t size = readlink(link.c_str(), path.data(), path.size());
  return size < 0 ? "" : std::string(path.data(), static_cast<std::size_t>(size));
}

/// data.mdb, and the file that becomes it.
bool is_data(int file) { return path_of(file).find("/data.mdb") != std::string::npos; }

void note(char kind, std::uint64_t offset, std::string_view bytes) {
  static const int log = open(getenv("RECORD_TO"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  static auto* const real = next<decltype(write)>("write");
  const std::uint64_t size = bytes.size();
  std::string all(1, kind);
  all.append(reinterpret_cast<const char*>(&offset), sizeof offset);
  all.append(reinterpret_cast<const char*>(&size), sizeof size);
  all.append(bytes);
  if (real(log, all.data(), all.size()) != static_cast<ssize_t>(all.size())) abort();
}

void note_write(int file, off_t offset, const void* bytes, ssize_t written) {
  if (written <= 0 || !is_data(file)) return;
  const bool through = (fcntl(file, F_GETFL) & (O_DSYNC | O_SYNC)) != 0;
  note(through ? 'd' : 'w', static_cast<std::uint64_t>(offset),
       {static_cast<const char*>(bytes), static_cast<std::size_t>(written)});
}

void note_parts(int file, off_t offset, const iovec* parts, int count, ssize_t written) {
  if (written <= 0 || !is_data(file)) return;
  std::string all;
  for (int i = 0; i < count; ++i) {
    all.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
  }
  note_write(file, offset, all.data(), written);
}

}  // namespace

extern "C" {

ssize_t pwrite(int file, const void* bytes, size_t size, off_t offset) {
  const ssize_t written = next<decltype(pwrite)>("pwrite")(file, bytes, size, offset);
  note_write(file, offset, bytes, written);
  return written;
}

ssize_t pwrite64(int file, const void* bytes, size_t size, off64_t offset) {
  const ssize_t written = next<decltype(pwrite64)>("pwrite64")(file, bytes, size, offset);
  note_write(file, offset, bytes, written);
  return written;
}

ssize_t pwritev(int file, const iovec* parts, int count, off_t offset) {
  const ssize_t written = next<decltype(pwritev)>("pwritev")(file, parts, count, offset);
  note_parts(file, offset, parts, count, written);
  return written;
}

ssize_t pwritev64(int file, const iovec* parts, int count, off64_t offset) {
  const ssize_t written = next<decltype(pwritev64)>("pwritev64")(file, parts, count, offset);
  note_parts(file, offset, parts, count, written);
  return written;
}

ssize_t writev(int file, const iovec* parts, int count) {
  const off_t offset = is_data(file) ? lseek(file, 0, SEEK_CUR) : 0;
  const ssize_t written = next<decltype(writev)>("writev")(file, parts, count);
  note_parts(file, offset, parts, count, written);
  return written;
}

ssize_t write(int file, const void* bytes, size_t size) {
  const off_t offset = is_data(file) ? lseek(file, 0, SEEK_CUR) : 0;
  const ssize_t written = next<decltype(write)>("write")(file, bytes, size);
  note_write(file, offset, bytes, written);
  const char* const acks = getenv("RECORD_ACKS");
  if (written > 0 && acks != nullptr && path_of(file) == acks) {
    note('a', 0, {static_cast<const char*>(bytes), static_cast<std::size_t>(written)});
  }
  return written;
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  const int done = next<decltype(renameat2)>("renameat2")(from_folder, from, to_folder, to, flags);
  if (done == 0 && std::string_view(to).ends_with("/data.mdb")) note('r', 0, {});
  return done;
}

int fdatasync(int file) {
  const int done = next<decltype(fdatasync)>("fdatasync")(file);
  if (done == 0 && is_data(file)) note('s', 0, {});
  return done;
}

int fsync(int file) {
  const int done = next<decltype(fsync)>("fsync")(file);
  if (done == 0 && is_data(file)) note('s', 0, {});
  return done;
}

int msync(void* from, size_t size, int flags) {
  abort();  // not by any writer of ours: what it makes durable would go unnoticed
  static_cast<void>(from);
  static_cast<void>(size);
  static_cast<void>(flags);
}

}  // extern "C"
