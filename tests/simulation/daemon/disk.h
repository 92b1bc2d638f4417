#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "daemon/delivery/feed/queue/queue_service.h"
#include "tests/simulation/world/world.h"

namespace batchwright::simulation {

/// The daemon's files, in a folder in memory that goes with it. The daemon writes them as it always
/// does; a death and a power cut take from them what the kernel or the disk did not have.
class Disk {
 public:
  Disk(World& world, const std::string& folder);
  ~Disk();
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  std::filesystem::path journal() const { return folder_ / "journal"; }
  std::filesystem::path ledger() const { return folder_ / "ledger"; }
  std::filesystem::path spool() const { return folder_ / "spool"; }

  using Work = std::function<Written()>;
  Written carry_out(const Work& work) const;
  /// The daemon dies in the middle of it.
  void tear(const Work& work);
  /// The machine loses its power: of what came after the journal's last sync some may be gone.
  void lose_power();
  /// The file behind the descriptor is on the disk, as far as it goes now.
  int sync(int descriptor);
  void set_full(bool full) { full_ = full; }
  bool is_full() const { return full_; }
  /// Has `work` done as the disk is just now.
  template <class Work>
  auto when_full_or_not(Work work) const {
    const Limit limit(*this, full_);
    return work();
  }

 private:
  /// While it lives no file can become longer, except by a record's part.
  class Limit {
   public:
    Limit(const Disk& disk, bool full);
    ~Limit();
    Limit(const Limit&) = delete;
    Limit& operator=(const Limit&) = delete;

   private:
    const bool full_;
    std::uint64_t before_ = 0;
  };
  std::uint64_t journal_bytes() const;

  World& world_;
  const std::filesystem::path folder_;
  bool full_ = false;
  std::uint64_t synced_ = 0;  ///< The number of the file that was synced last.
};

}  // namespace batchwright::simulation
