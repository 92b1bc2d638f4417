#include "storage/dataset/lmdb/file_system.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/stat.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "formats/formats.h"

namespace batchwright {
namespace {

/// File systems whose data live on other machines, which a mount that is read-only here does not
/// keep from writing. FUSE may be one of them.
bool is_of_network(std::string_view type) {
  constexpr std::array<std::string_view, 12> kTypes = {"nfs",  "nfs4", "cifs",   "smb3",
                                                       "ceph", "9p",   "lustre", "virtiofs",
                                                       "afs",  "gfs2", "ocfs2",  "fuse"};
  return std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end() || type.starts_with("fuse.");
}

bool has_option(std::string_view options, std::string_view wanted) {
  while (!options.empty()) {
    const auto end = std::min(options.find(','), options.size());
    if (options.substr(0, end) == wanted) return true;
    options.remove_prefix(std::min(end + 1, options.size()));
  }
  return false;
}

}  // namespace

bool is_read_only_here(const std::filesystem::path& path) {
  struct statvfs status = {};
  return statvfs(path.c_str(), &status) == 0 && (status.f_flag & ST_RDONLY) != 0;
}

/// A line of mountinfo (proc(5)): "ID PARENT MAJ:MIN ROOT POINT OPTIONS [TAGS...] - TYPE SOURCE
/// SUPER_OPTIONS". OPTIONS are this mount's, SUPER_OPTIONS those of the file system itself.
bool is_read_only_for_all(const std::filesystem::path& path) {
  struct statx status = {};
  // Not every libc has statx().
  if (::syscall(SYS_statx, AT_FDCWD, path.c_str(), 0, STATX_MNT_ID, &status) != 0 ||
      (status.stx_mask & STATX_MNT_ID) == 0) {
    return false;
  }
  const std::string id = std::to_string(status.stx_mnt_id);
  const std::string mounts = file_text("/proc/self/mountinfo").value_or("");
  for (const std::string_view line : split_lines(mounts)) {
    const auto words = split_words(line);
    const auto dash = std::find(words.begin(), words.end(), "-");
    // Three words behind the dash; tags before it vary in number.
    if (words.empty() || words.front() != id || words.end() - dash < 4) continue;
    return has_option(*(dash + 3), "ro") && !is_of_network(*(dash + 1));
  }
  return false;
}

std::optional<std::uint64_t> room_left(const std::filesystem::path& path) {
  struct statvfs status = {};
  if (statvfs(path.c_str(), &status) != 0) return std::nullopt;
  return std::uint64_t{status.f_bavail} * status.f_frsize;
}

bool may_read(const std::filesystem::path& path) {
  // As open() sees it: access() would ask for the real user, not the effective one.
  return faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) == 0;
}

bool may_write(const std::filesystem::path& path) {
  return faccessat(AT_FDCWD, path.c_str(), R_OK | W_OK, AT_EACCESS) == 0;
}

std::string permissions_of(const std::filesystem::path& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) {
    return fmt::format("uid {}, gid {}", geteuid(), getegid());
  }
  return fmt::format("uid {}, gid {}; mode {:04o}, owner {}:{}", geteuid(), getegid(),
                     status.st_mode & 07777U, status.st_uid, status.st_gid);
}

/// A line of maps: "BEGIN-END PERMISSIONS OFFSET DEVICE INODE PATH", numbers in hexadecimal.
std::optional<std::uint64_t> file_offset_of(const void* address) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  const std::string maps = file_text("/proc/self/maps").value_or("");
  for (const std::string_view line : split_lines(maps)) {
    const auto words = split_words(line);
    if (words.size() < 5) continue;
    const auto bounds = split(words[0], '-');
    const auto begin = parse_whole<std::uint64_t>(bounds.front(), 16);
    const auto end = parse_whole<std::uint64_t>(bounds.back(), 16);
    const auto offset = parse_whole<std::uint64_t>(words[2], 16);
    if (!begin || !end || !offset || wanted < *begin || wanted >= *end) continue;
    // Memory without a file, whose inode is 0, has no place in one.
    return words[4] == "0" ? std::nullopt : std::optional(*offset + (wanted - *begin));
  }
  return std::nullopt;
}

/// A line of locks: "1: FLOCK ADVISORY WRITE PID MAJ:MIN:INODE 0 EOF"; waiting ones have "->"
/// behind their number.
std::optional<int> flock_owner(int descriptor) {
  struct stat status = {};
  if (fstat(descriptor, &status) != 0) return std::nullopt;
  const std::string inode = fmt::format(":{}", status.st_ino);
  const std::string locks = file_text("/proc/locks").value_or("");
  for (const std::string_view line : split_lines(locks)) {
    const auto words = split_words(line);
    if (words.size() < 6 || words[1] != "FLOCK" || !words[5].ends_with(inode)) continue;
    // Of another process namespace it is -1 or 0.
    const auto owner = parse_whole<unsigned>(words[4]);
    if (owner && *owner > 0) return static_cast<int>(*owner);
  }
  return std::nullopt;
}

}  // namespace batchwright
