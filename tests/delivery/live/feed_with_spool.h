#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/delivery/live/virtual_live_service.h"
#include "tests/support/temporary_folder.h"

namespace batchwright::test {

using NamedRows = std::vector<std::pair<std::string, std::uint64_t>>;
inline constexpr auto kDoneTotal = static_cast<std::size_t>(wire::Outcome::done);
inline constexpr auto kWaitingTotal = static_cast<std::size_t>(wire::Outcome::waiting);
inline constexpr auto kDeliveredTotal = static_cast<std::size_t>(wire::Outcome::delivered);

inline NamedRows rows_of(const std::string& name, std::uint64_t first, std::uint64_t end) {
  NamedRows rows;
  for (std::uint64_t number = first; number < end; ++number) rows.emplace_back(name, number);
  return rows;
}

inline std::vector<Offered> offered_between(std::uint64_t first, std::uint64_t end,
                                            std::uint64_t version = 0) {
  std::vector<Offered> all;
  for (; first < end; ++first)
    all.push_back({first, static_cast<std::uint32_t>(1 + first % 7), version});
  return all;
}

/// A feed with a spool, and its daemon, which can be killed.
class FeedWithSpool {
 public:
  explicit FeedWithSpool(FeedSettings settings) : settings_(std::move(settings)) {
    settings_.live->spool = folder_ / "spool";
    settings_.queue_grace = std::chrono::milliseconds{1000};
    restart();
  }
  VirtualLiveService& operator*() { return *desk_; }
  VirtualLiveService* operator->() { return &*desk_; }
  void restart() {
    desk_.reset();
    desk_.emplace(settings_, ++incarnation_);
  }
  void kill() { desk_.reset(); }
  FeedSettings& settings() { return settings_; }
  std::filesystem::path data() const { return settings_.live->spool / "data.mdb"; }

 private:
  TemporaryFolder folder_;
  FeedSettings settings_;
  std::uint64_t incarnation_ = 0;
  std::optional<VirtualLiveService> desk_;
};

}  // namespace batchwright::test
