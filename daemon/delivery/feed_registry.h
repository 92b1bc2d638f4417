#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/delivery/feed/feed.h"
#include "daemon/delivery/repeating_timer.h"

namespace batchwright {

/// The feeds that are served, the feeds that have ended and that other threads still work for, and
/// the numbers that arenas get.
///
/// Lifetime: destroyed when the loop no longer runs, after the threads that work for feeds.
/// Threads: the event loop only.
class FeedRegistry {
 public:
  /// What a feed leaves behind, and takes long to free.
  using Resources = std::vector<std::shared_ptr<const void>>;

  /// `free` has resources freed on another thread.
  FeedRegistry(boost::asio::io_context& loop, std::function<void(Resources)> free);

  /// Starts all feeds, and from now on each that is put here.
  void start();

  Feed& add(std::unique_ptr<Feed> feed);
  /// Puts a feed in the place of the one with its name, which is retired.
  Feed& replace(std::unique_ptr<Feed> feed, const Error& why);
  /// Ends the feed with this name, if there is one. Its subscriptions are refused with the error,
  /// and it is destroyed once it is at rest.
  void retire(std::string_view name, const Error& why);

  /// Puts them in the order of these names; one that is not among them comes last.
  void arrange(const std::vector<std::string>& names);

  /// A number for the arena of a feed that has none yet.
  ArenaNumber new_number() { return {++last_feed_}; }
  /// Numbers that are left: none is used twice, for clients know arenas by them.
  std::uint32_t numbers_left() const { return ArenaNumber::kMostFeeds - last_feed_; }

  /// Feeds that are served, the oldest first unless they were arranged; one that replaced another
  /// has its place.
  const std::vector<std::unique_ptr<Feed>>& all() const { return all_; }
  /// Null when there is none.
  Feed* find(std::string_view name) const;
  /// The feed of a subscription; null when there is none.
  Feed* find(const SubscriptionKey& key) const;
  /// Also an arena of a feed that has just ended: a client that was granted it asks for its arena
  /// next, and gets the reason after that. Null when there is none.
  const Arena* find_arena(ArenaNumber number) const;
  /// Names as a list for people.
  std::string names() const;

 private:
  using Place = std::vector<std::unique_ptr<Feed>>::iterator;

  Place place_of(std::string_view name);
  void retire(std::unique_ptr<Feed> feed, const Error& why);
  bool free_retired();

  std::vector<std::unique_ptr<Feed>> all_;
  std::vector<std::unique_ptr<Feed>> retired_;  ///< Kept until no other thread works for them.
  std::uint32_t last_feed_ = 0;
  bool started_ = false;
  std::function<void(Resources)> free_;
  RepeatingTimer rounds_;  ///< Looks for retired feeds that are at rest.
};

}  // namespace batchwright
