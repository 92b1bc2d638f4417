#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace batchwright {

/// Who holds what, and what the daemon is yet to be told of it. It is all that a release touches,
/// so that batches can be released while another thread waits on the socket.
///
/// A subscription that is closed stays open towards the daemon until the last of its batches is
/// released, for then the daemon takes its slots back; no credit is given back meanwhile, for
/// nobody would want the batches it buys. The same holds for the whole connection.
/// Threads: any.
class LeaseBook {
 public:
  /// What to tell the daemon, in this order.
  struct News {
    std::vector<std::pair<std::uint32_t, std::vector<std::uint64_t>>> releases;
    std::vector<std::uint32_t> ended;  ///< Subscriptions.
    bool goodbye = false;              ///< The connection; once.
  };

  void open(std::uint32_t subscription);
  void take(std::uint32_t subscription);
  void give_back(std::uint32_t subscription, std::uint64_t lease);
  void close(std::uint32_t subscription);
  void close_all();

  bool closed(std::uint32_t subscription) const;
  bool all_closed() const;
  std::size_t held(std::uint32_t subscription) const;

  bool has_news() const;
  News take_news();

 private:
  struct Account {
    std::size_t held = 0;
    bool closed = false;
    std::vector<std::uint64_t> returned;
  };
  bool may_say_goodbye() const;

  mutable std::mutex mutex_;
  std::map<std::uint32_t, Account> accounts_;  // an ended subscription's is erased
  std::size_t held_ = 0;
  bool all_closed_ = false;
  bool goodbye_said_ = false;
};

}  // namespace batchwright
