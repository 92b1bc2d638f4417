#include "storage/dataset/lmdb/file_system.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

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

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream words(line);
  std::vector<std::string> all;
  for (std::string word; words >> word;) all.push_back(std::move(word));
  return all;
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
  if (statx(AT_FDCWD, path.c_str(), 0, STATX_MNT_ID, &status) != 0 ||
      (status.stx_mask & STATX_MNT_ID) == 0) {
    return false;
  }
  const std::string id = std::to_string(status.stx_mnt_id);
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    const auto words = words_of(line);
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
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t offset = 0;
    std::uint64_t inode = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %" SCNu64, &begin,
                    &end, &offset, &inode) != 4) {
      continue;
    }
    if (wanted < begin || wanted >= end) continue;
    // Memory without a file has no place in one.
    return inode == 0 ? std::nullopt : std::optional(offset + (wanted - begin));
  }
  return std::nullopt;
}

/// A line of locks: "1: FLOCK ADVISORY WRITE PID MAJ:MIN:INODE 0 EOF"; waiting ones have "->"
/// behind their number.
std::optional<int> flock_owner(int descriptor) {
  struct stat status = {};
  if (fstat(descriptor, &status) != 0) return std::nullopt;
  const std::string inode = fmt::format(":{}", status.st_ino);
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    const auto words = words_of(line);
    if (words.size() < 6 || words[1] != "FLOCK" || !words[5].ends_with(inode)) continue;
    const int owner = std::atoi(words[4].c_str());
    if (owner > 0) return owner;
  }
  return std::nullopt;
}

}  // namespace batchwright
