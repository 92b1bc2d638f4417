#include "tests/simulation/daemon/disk.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>

#include "formats/journal_records.h"

namespace batchwright::simulation {
namespace fs = std::filesystem;
namespace {

/// A journal that was begun: its plan and its epoch, which were synced before it took its place.
constexpr std::uint64_t kSynced = 2 * sizeof(JournalRecord);

}  // namespace

Disk::Disk(World& world, const std::string& folder) : world_(world), folder_(folder) {
  fs::create_directories(folder_);
}

Disk::~Disk() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::uint64_t Disk::journal_bytes() const {
  std::error_code error;
  const auto size = fs::file_size(journal(), error);
  return error ? 0 : size;
}

/// The kernel refuses to make a file longer than this, with a part of the bytes taken (SIGXFSZ is
/// ignored). Above it lies no file of ours, so reading goes on.
Disk::Limit::Limit(const Disk& disk, bool full) : full_(full) {
  if (!full_) return;
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  before_ = limit.rlim_cur;
  // Half of a record more than there is in the journal, and nothing of any longer file.
  limit.rlim_cur = disk.journal_bytes() + sizeof(JournalRecord) / 2;
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

Disk::Limit::~Limit() {
  if (!full_) return;
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = before_;
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

Written Disk::carry_out(const Work& work) const { return when_full_or_not(work); }

void Disk::tear(const Work& work) {
  const std::uint64_t before = journal_bytes();
  static_cast<void>(carry_out(work));
  const std::uint64_t after = journal_bytes();
  if (before < kSynced || after <= before) return;  // it was begun again, or is no journal's
  world_.sometimes(Mark::record_torn);
  fs::resize_file(journal(), before + world_.dice.below(after - before + 1));
}

int Disk::sync(int descriptor) {
  struct stat status {};
  ::fstat(descriptor, &status);
  synced_ = status.st_ino;
  return 0;
}

void Disk::lose_power() {
  struct stat status {};
  if (::stat(journal().c_str(), &status) != 0) return;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const std::uint64_t synced = status.st_ino == synced_ ? std::min(size, kSynced) : 0;
  const std::uint64_t kept = synced + world_.dice.below(size - synced + 1);
  fs::resize_file(journal(), kept);
  // Or the file's length was there, and not its bytes.
  if (world_.dice.percent(50)) fs::resize_file(journal(), size);
}

}  // namespace batchwright::simulation
