#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

// What the file system under a dataset allows, as far as LMDB's own errors do not tell it.

namespace batchwright {

/// Whether this process sees the file system of `path` read-only, whatever others may do with it.
bool is_read_only_here(const std::filesystem::path& path);

/// Whether no process of this machine can write to the file system of `path`: the file system
/// itself is mounted read-only (squashfs, ext4 with -o ro), and not only this mount of it, as in a
/// container or under systemd's ProtectSystem=. Never so for a network's, which others may write.
bool is_read_only_for_all(const std::filesystem::path& path);

/// Bytes that this user can still write to the file system of `path`; empty when it cannot tell.
std::optional<std::uint64_t> room_left(const std::filesystem::path& path);

/// Whether the effective user may open `path` for reading, or for reading and writing. A file that
/// is missing may not.
bool may_read(const std::filesystem::path& path);
bool may_write(const std::filesystem::path& path);

/// The calling user and the file's permissions, for a message: "uid 1000, gid 1000; mode 0644,
/// owner 0:0".
std::string permissions_of(const std::filesystem::path& path);

/// The place in its file of what is mapped at `address`; empty when nothing is, or no file.
std::optional<std::uint64_t> file_offset_of(const void* address);

/// The process that has an flock() on the file of `descriptor`; empty when there is none, or it is
/// in another PID namespace.
std::optional<int> flock_owner(int descriptor);

}  // namespace batchwright
