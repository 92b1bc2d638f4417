#include "daemon/delivery/feed_registry.h"

#include <algorithm>
#include <utility>

namespace batchwright {
namespace {

/// The pause between two looks at feeds that are to be freed.
constexpr std::chrono::milliseconds kBetweenReturns{20};

}  // namespace

FeedRegistry::FeedRegistry(boost::asio::io_context& loop, std::function<void(Resources)> free)
    : free_(std::move(free)), rounds_(loop, kBetweenReturns, [this] { return free_retired(); }) {}

void FeedRegistry::start() {
  started_ = true;
  for (const auto& feed : all_) feed->start();
}

Feed& FeedRegistry::add(std::unique_ptr<Feed> feed) {
  Feed& added = *all_.emplace_back(std::move(feed));
  if (started_) added.start();
  return added;
}

void FeedRegistry::arrange(const std::vector<std::string>& names) {
  const auto place = [&names](const std::unique_ptr<Feed>& feed) {
    return std::find(names.begin(), names.end(), feed->name()) - names.begin();
  };
  std::stable_sort(all_.begin(), all_.end(), [&place](const auto& one, const auto& other) {
    return place(one) < place(other);
  });
}

Feed& FeedRegistry::replace(std::unique_ptr<Feed> feed, const Error& why) {
  Feed& added = *feed;
  std::swap(*place_of(added.name()), feed);
  retire(std::move(feed), why);
  if (started_) added.start();
  return added;
}

void FeedRegistry::retire(std::string_view name, const Error& why) {
  const auto place = place_of(name);
  if (place == all_.end()) return;
  auto feed = std::move(*place);
  all_.erase(place);
  retire(std::move(feed), why);
}

void FeedRegistry::retire(std::unique_ptr<Feed> feed, const Error& why) {
  feed->retire(why);
  retired_.push_back(std::move(feed));
  if (retired_.size() == 1) rounds_.start();
}

/// Unmapping an arena takes long, and is left to another thread.
bool FeedRegistry::free_retired() {
  Resources resources;
  for (auto& feed : retired_) {
    if (!feed->at_rest()) continue;
    for (auto& each : feed->resources()) resources.push_back(std::move(each));
    feed.reset();
  }
  std::erase(retired_, nullptr);
  free_(std::move(resources));
  return !retired_.empty();
}

FeedRegistry::Place FeedRegistry::place_of(std::string_view name) {
  return std::find_if(all_.begin(), all_.end(),
                      [name](const auto& feed) { return feed->name() == name; });
}

Feed* FeedRegistry::find(std::string_view name) const {
  const auto found = std::find_if(all_.begin(), all_.end(),
                                  [name](const auto& feed) { return feed->name() == name; });
  return found == all_.end() ? nullptr : found->get();
}

Feed* FeedRegistry::find(const SubscriptionKey& key) const {
  const auto found =
      std::find_if(all_.begin(), all_.end(), [&key](const auto& feed) { return feed->has(key); });
  return found == all_.end() ? nullptr : found->get();
}

const Arena* FeedRegistry::find_arena(ArenaNumber number) const {
  for (const auto* feeds : {&all_, &retired_}) {
    for (const auto& feed : *feeds) {
      if (const Arena* arena = feed->find_arena(number)) return arena;
    }
  }
  return nullptr;
}

std::string FeedRegistry::names() const {
  std::string names;
  for (const auto& feed : all_) names += (names.empty() ? "" : ", ") + feed->name();
  return names;
}

}  // namespace batchwright
